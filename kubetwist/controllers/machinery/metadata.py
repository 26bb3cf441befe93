"""Reads owner references of records. Records without owners are not decoded."""

from __future__ import annotations

from typing import Any, Final

import orjson

from ...api.record import Record
from ...api.resource import JSONObject

_MARK: Final = b'"ownerReferences":['


def _owners_view() -> None:
    """The cache key of owner references in C{Record.views}."""


def owner_references(record: Record) -> tuple[JSONObject, ...]:
    """Return the C{ownerReferences} of an object. The result is shared and must not be changed."""
    if _MARK not in record.item:
        return ()
    views: dict[Any, Any] | None = record.views
    if views is None:
        views = record.views = {}
    references: tuple[JSONObject, ...] | None = views.get(_owners_view)
    if references is None:
        references = views[_owners_view] = tuple(orjson.loads(record.item)["metadata"].get("ownerReferences") or ())
    return references


def owner_uids(record: Record) -> list[str]:
    """Return the uids of an object's owners. An index function."""
    return [owner["uid"] for owner in owner_references(record)]


def controller_of(record: Record) -> JSONObject | None:
    """Return the owner reference of the controller of an object."""
    for owner in owner_references(record):
        if owner.get("controller"):
            return owner
    return None


def controller_uid(record: Record) -> list[str]:
    """Return the uid of an object's controller in a list, which may be empty. An index function."""
    owner = controller_of(record)
    return [] if owner is None else [owner["uid"]]


def controller_reference(kind: str, api_version: str, owner: JSONObject) -> JSONObject:
    """Return the controller reference to an owner (Go: metav1.NewControllerRef)."""
    meta = owner["metadata"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
