"""
The rows and columns that C{kubectl get} prints, for every built-in kind.

A row depends on the object alone, so that it can be made once per state and kept; ages in it are L{AgeCell}s, which are
filled in per request. Kinds without a row of their own show their name and when they were made.

A module C{printers} holds C{COLUMNS} and C{ROWS} by kind. The modules of a group are imported for its first Table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Final, NamedTuple

from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject
from .core.pod.printers import row_conditions as pod_conditions
from .flowcontrol.printers import flow_schema_order
from .generic.printers.ages import AgeCell, Cell, human_age, human_duration
from .generic.printers.columns import DEFAULT, Column, Describe, Row

__all__ = ["AgeCell", "Describe", "cells", "columns", "human_age", "human_duration", "row", "row_conditions"]


def columns(group: str, kind: str, version: str = "", describe: Describe | None = None) -> list[JSONObject]:
    """
    The C{columnDefinitions} of a kind's Tables.

    @param version: Of the request. All versions of a kind have the same columns; it tells where to look for
        descriptions when the release does not have the version that usually has them.
    @param describe: Looks up the descriptions of fields, C{""} for those there are not; without it those columns
        have none. Types are called as in the definitions, without the leading C{io.k8s.}:
        C{describe("api.core.v1.PodStatus", "podIP")}.
    """

    def look_up(type_name: str, field: str) -> str:
        if describe is None:
            return ""
        package, _, name = type_name.rpartition(".")
        other = f"{package.rpartition('.')[0]}.{version}.{name}"
        return describe(type_name, field) or describe(other, field)

    return [column.definition(look_up) for column in _PRINTERS[_key(group, kind)].columns]


def row(group: str, kind: str, obj: JSONObject) -> tuple[Cell, ...]:
    """
    The cells of an object, those for wide output included; as many as there are columns, but for IPAddress.

    @param obj: In any version of the kind, with its C{apiVersion}; it may be a zero object, as bookmarks have.
    """
    return tuple(_PRINTERS[_key(group, kind)].row(obj))


def cells(group: str, kind: str, obj: JSONObject, now: float) -> list[Cell]:
    """The cells of an object as they are shown at C{now}."""
    return [cell.text(now) if isinstance(cell, AgeCell) else cell for cell in row(group, kind, obj)]


def row_order(group: str, kind: str) -> Callable[[JSONObject], JSONValue] | None:
    """What rows of a list are sorted by, from an object as it is stored; L{None} for most, which keep their order."""
    return flow_schema_order if (group, kind) == ("flowcontrol.apiserver.k8s.io", "FlowSchema") else None


def has_printer(group: str, kind: str) -> bool:
    """Return whether Tables of a kind have columns besides name and age."""
    return _PRINTERS[_key(group, kind)] is not _DEFAULT


def row_conditions(group: str, kind: str, obj: JSONObject) -> list[JSONObject]:
    """The C{conditions} of an object's row; most have none."""
    return pod_conditions(obj) if (group, kind) == ("", "Pod") else []


def _key(group: str, kind: str) -> tuple[str, str]:
    # A Scale is asked for by the group of what it scales.
    return ("autoscaling", kind) if kind == "Scale" else (group, kind)


def _default_row(obj: JSONObject) -> Iterator[Cell]:
    metadata = obj.get("metadata") or {}
    yield metadata.get("name", "")
    yield metadata.get("creationTimestamp") or "0001-01-01T00:00:00Z"


class Printer(NamedTuple):
    """The columns of a kind's Tables, and what makes the cells of a row."""

    columns: tuple[Column, ...]
    row: Row


_DEFAULT: Final = Printer(DEFAULT, _default_row)

#: By group, the modules below this package that have the printers of its kinds.
_MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "": (
        "core.componentstatus.printers",
        "core.configmap.printers",
        "core.endpoints.printers",
        "core.event.printers",
        "core.namespace.printers",
        "core.node.printers",
        "core.persistentvolume.printers",
        "core.persistentvolumeclaim.printers",
        "core.pod.printers",
        "core.podtemplate.printers",
        "core.replicationcontroller.printers",
        "core.resourcequota.printers",
        "core.secret.printers",
        "core.service.printers",
        "core.serviceaccount.printers",
        "generic.printers.rows",
    ),
    "admissionregistration.k8s.io": ("admissionregistration.printers",),
    "apiregistration.k8s.io": ("apiregistration.printers",),
    "apps": ("apps.printers",),
    "autoscaling": ("autoscaling.printers",),
    "batch": ("batch.printers",),
    "certificates.k8s.io": ("certificates.printers",),
    "coordination.k8s.io": ("coordination.printers",),
    "discovery.k8s.io": ("discovery.printers",),
    "events.k8s.io": ("core.event.printers",),
    "flowcontrol.apiserver.k8s.io": ("flowcontrol.printers",),
    "internal.apiserver.k8s.io": ("apiserverinternal.printers",),
    "networking.k8s.io": ("networking.printers",),
    "node.k8s.io": ("node.printers",),
    "policy": ("policy.printers",),
    "rbac.authorization.k8s.io": ("rbac.printers",),
    "resource.k8s.io": ("resource.printers",),
    "scheduling.k8s.io": ("scheduling.printers",),
    "storage.k8s.io": ("storage.printers",),
    "storagemigration.k8s.io": ("storagemigration.printers",),
}


class _Printers(dict[tuple[str, str], Printer]):
    """Printers by group and kind, which import the modules of a group when one of its kinds is first looked up."""

    def __missing__(self, key: tuple[str, str]) -> Printer:
        group, _ = key
        if group not in _MODULES:
            return _DEFAULT
        for name in _MODULES[group]:
            module = import_module(f".{name}", __package__)
            for kind, row in module.ROWS.items():
                self[group, kind] = Printer(module.COLUMNS[kind], row)
        return self.setdefault(key, _DEFAULT)


_PRINTERS: Final = _Printers()
