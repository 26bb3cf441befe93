"""
Rules of deletion: grace periods, finalizers and propagation, as functions on the metadata of objects.

They are those of kubernetes/apiserver, C{pkg/registry/rest/delete.go} and C{pkg/registry/generic/registry/store.go}.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from ...api.errors import APIStatusError
from ...api.options import DeleteOptions
from ...api.resource import GroupKind, GroupResource, JSONObject
from .strategy import Strategy

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"


def timestamp(moment: datetime) -> str:
    """Return the text of a time in objects: RFC 3339 with whole seconds in UTC."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def read_timestamp(text: str) -> datetime:
    """Parse a time in an object."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def check_preconditions(options: DeleteOptions, meta: JSONObject, kind: GroupKind, name: str) -> None:
    """
    Compare the preconditions of a DELETE with the stored object.

    @param options: The options of the request.
    @param meta: The metadata of the stored object.
    @param kind: The kind for the error, whose details name the kind instead of the resource.
    @param name: The name of the object.
    @raise APIStatusError: They differ (409).
    """
    uid = options.precondition_uid
    if uid is not None and uid != meta.get("uid", ""):
        reason = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({meta.get('uid', '')}). "
            "The object might have been deleted and then recreated"
        )
        raise APIStatusError.conflict(GroupResource(kind.group, kind.kind), name, reason)
    version = options.precondition_resource_version
    if version is not None and version != meta.get("resourceVersion", ""):
        reason = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({meta.get('resourceVersion', '')}). The object might have been modified"
        )
        raise APIStatusError.conflict(GroupResource(kind.group, kind.kind), name, reason)


def check_first_preconditions(options: DeleteOptions, meta: JSONObject, resource: GroupResource, name: str) -> None:
    """
    Compare the preconditions of a DELETE with the stored object, for kinds that are deleted in two steps.

    The rule is in C{REST.Delete} of namespaces (C{pkg/registry/core/namespace/storage/storage.go}) and of
    CustomResourceDefinitions (apiextensions' C{pkg/registry/customresourcedefinition/etcd.go}).

    @param options: The options of the request.
    @param meta: The metadata of the stored object.
    @param resource: The resource for the error.
    @param name: The name of the object.
    @raise APIStatusError: They differ (409).
    """
    for field, required, actual in (
        ("UID", options.precondition_uid, meta.get("uid", "")),
        ("ResourceVersion", options.precondition_resource_version, meta.get("resourceVersion", "")),
    ):
        if required is not None and required != actual:
            reason = f"Precondition failed: {field} in precondition: {required}, {field} in object meta: {actual}"
            raise APIStatusError.conflict(resource, name, reason)


def before_delete(
    strategy: Strategy, obj: JSONObject, options: DeleteOptions, now: datetime
) -> tuple[bool, bool, int | None]:
    """
    Start, or shorten, the grace period of an object (C{rest.BeforeDelete}).

    @param obj: The object; its metadata is modified.
    @param options: The options of the request.
    @param now: The current time.
    @return: Whether the deletion is graceful, so that the metadata changed; whether the object is already being deleted
        and nothing changes; and the remaining seconds of a graceful deletion.
    """
    meta = obj["metadata"]
    period = options.grace_period_seconds
    if period is not None and period < 0:
        period = 1
    deletion_timestamp = meta.get("deletionTimestamp")
    if deletion_timestamp is not None:
        current_period = meta.get("deletionGracePeriodSeconds")
        if not current_period:
            return False, False, None
        if period is None or period >= current_period:
            return False, True, None
        start = read_timestamp(deletion_timestamp) - timedelta(seconds=current_period)
        meta["deletionTimestamp"] = timestamp(start + timedelta(seconds=period))
        meta["deletionGracePeriodSeconds"] = period
        return True, False, period
    grace = strategy.grace_period(obj, options)
    if grace is None:
        return False, False, None
    meta["deletionTimestamp"] = timestamp(now + timedelta(seconds=grace))
    meta["deletionGracePeriodSeconds"] = grace
    if meta.get("generation"):
        meta["generation"] += 1
    return True, False, grace


def mark_as_deleting(meta: JSONObject, now: datetime) -> None:
    """Set the deletion timestamp of an object that is deleted except for its finalizers."""
    if meta.get("deletionTimestamp") is None and meta.get("generation"):
        meta["generation"] += 1
    deletion_timestamp = meta.get("deletionTimestamp")
    if deletion_timestamp is None or read_timestamp(deletion_timestamp) > now:
        meta["deletionTimestamp"] = timestamp(now)
    meta["deletionGracePeriodSeconds"] = 0


def deletion_finalizers_for_garbage_collection(
    strategy: Strategy, meta: JSONObject, options: DeleteOptions
) -> list[str] | None:
    """Return the finalizers after the propagation policy is applied; L{None} if they do not change."""
    existing = meta.get("finalizers") or []
    orphan, foreground = _orphans(strategy, existing, options), _foreground(existing, options)
    finalizers = [name for name in existing if name not in (ORPHAN, FOREGROUND)]
    if orphan:
        finalizers.append(ORPHAN)
    if foreground:
        finalizers.append(FOREGROUND)
    return finalizers if set(finalizers) != set(existing) else None


def set_finalizers(meta: JSONObject, finalizers: list[str]) -> None:
    """Set the finalizers; an empty list removes the field, as in the reference."""
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)


def _orphans(strategy: Strategy, finalizers: list[str], options: DeleteOptions) -> bool:
    if options.orphan_dependents is not None:
        return options.orphan_dependents
    if options.propagation_policy is not None:
        return options.propagation_policy == "Orphan"
    for name in finalizers:
        if name == ORPHAN:
            return True
        if name == FOREGROUND:
            return False
    return strategy.default_garbage_collection == "orphan"


def _foreground(finalizers: list[str], options: DeleteOptions) -> bool:
    if options.orphan_dependents is not None:
        return False
    if options.propagation_policy is not None:
        return options.propagation_policy == "Foreground"
    for name in finalizers:
        if name == FOREGROUND:
            return True
        if name == ORPHAN:
            return False
    return False


def should_delete_during_update(obj: JSONObject, old: JSONObject) -> bool:
    """Return whether an update removes the last finalizer of an object that is being deleted."""
    meta, before = obj["metadata"], old["metadata"]
    return (
        before.get("deletionTimestamp") is not None
        and not meta.get("finalizers")
        and not before.get("deletionGracePeriodSeconds")
    )
