"""Rows of Tables for ResourceQuotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from ...generic.printers.ages import Cell, age
from ...generic.printers.columns import AGE, NAME, Column, Rows
from ...generic.printers.texts import name_of, status_of


def resource_quota(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a quota: used and hard amounts of requests and limits."""
    status = status_of(obj)
    used = status.get("used") or {}
    texts: tuple[list[str], list[str]] = [], []
    for resource, hard in sorted((status.get("hard") or {}).items()):
        texts[resource.startswith("limits.")].append(f"{resource}: {used.get(resource, '0')}/{hard}")
    yield name_of(obj)
    yield ", ".join(texts[0])
    yield ", ".join(texts[1])
    yield age(obj)


def resource_quota_before(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a quota before 1.33, with the age after the name."""
    name, requests, limits, created = resource_quota(obj)
    yield from (name, created, requests, limits)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "ResourceQuota": (
        NAME,
        AGE._replace(when="<1.33"),
        Column("Request", "Request represents a minimum amount of cpu/memory that a container may consume."),
        Column(
            "Limit",
            "Limits control the maximum amount of cpu/memory that a container may use independent of contention on "
            "the node.",
        ),
        AGE._replace(when=">=1.33"),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Rows]] = {
    "ResourceQuota": {"<1.33": resource_quota_before, "": resource_quota},
}
