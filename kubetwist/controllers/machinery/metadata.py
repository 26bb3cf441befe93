"""What the metadata of records says of owners, without decoding those that have none."""

from __future__ import annotations

from typing import Any, Final

import orjson

from ...api.record import Record
from ...api.resource import JSONObject

_MARK: Final = b'"ownerReferences":['


def _owners_view() -> None:
    """The key of what is remembered in a record's C{views}."""


def owner_references(record: Record) -> tuple[JSONObject, ...]:
    """Return the C{ownerReferences} of an object; shared, not to be changed."""
    if _MARK not in record.item:
        return ()
    views: dict[Any, Any] | None = record.views
    if views is None:
        views = record.views = {}
    known: tuple[JSONObject, ...] | None = views.get(_owners_view)
    if known is None:
        known = views[_owners_view] = tuple(orjson.loads(record.item)["metadata"].get("ownerReferences") or ())
    return known


def owner_uids(record: Record) -> list[str]:
    """Return the uids of an object's owners: a function for an index."""
    return [owner["uid"] for owner in owner_references(record)]


def controller_of(record: Record) -> JSONObject | None:
    """Return the owner reference of the controller of an object."""
    for owner in owner_references(record):
        if owner.get("controller"):
            return owner
    return None


def controller_uid(record: Record) -> list[str]:
    """Return the uid of an object's controller: a function for an index."""
    owner = controller_of(record)
    return [] if owner is None else [owner["uid"]]


def controller_reference(kind: str, api_version: str, owner: JSONObject) -> JSONObject:
    """Return the reference by which an object says who controls it."""
    meta = owner["metadata"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
