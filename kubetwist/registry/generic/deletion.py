"""
The rules of ending an object's life: grace periods, finalizers, propagation.

Pure functions on an object's metadata; the store applies their verdicts. The rules are those of
kubernetes/apiserver, C{pkg/registry/rest/delete.go} and C{pkg/registry/generic/registry/store.go}.
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
    """A moment as objects carry it: whole seconds, UTC."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def read_timestamp(text: str) -> datetime:
    """The moment that an object carries."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def check_preconditions(options: DeleteOptions, meta: JSONObject, kind: GroupKind, name: str) -> None:
    """
    Compare the preconditions of a DELETE with what is there.

    @raise APIStatusError: They differ (409). Its details name the kind, where other errors name the resource.
    """
    uid = options.precondition_uid
    if uid is not None and uid != meta.get("uid", ""):
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({meta.get('uid', '')}). "
            "The object might have been deleted and then recreated"
        )
        raise APIStatusError.conflict(GroupResource(kind.group, kind.kind), name, why)
    version = options.precondition_resource_version
    if version is not None and version != meta.get("resourceVersion", ""):
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({meta.get('resourceVersion', '')}). The object might have been modified"
        )
        raise APIStatusError.conflict(GroupResource(kind.group, kind.kind), name, why)


def check_first_preconditions(options: DeleteOptions, meta: JSONObject, resource: GroupResource, name: str) -> None:
    """
    Compare the preconditions of a DELETE with the stored object, for kinds whose deletion begins with a mark.

    Rule: C{REST.Delete} of namespaces (C{pkg/registry/core/namespace/storage/storage.go}) and of definitions of custom
    resources (apiextensions' C{pkg/registry/customresourcedefinition/etcd.go}).

    @raise APIStatusError: They differ (409).
    """
    for what, wanted, found in (
        ("UID", options.precondition_uid, meta.get("uid", "")),
        ("ResourceVersion", options.precondition_resource_version, meta.get("resourceVersion", "")),
    ):
        if wanted is not None and wanted != found:
            why = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
            raise APIStatusError.conflict(resource, name, why)


def before_delete(
    strategy: Strategy, obj: JSONObject, options: DeleteOptions, now: datetime
) -> tuple[bool, bool, int | None]:
    """
    Start, or shorten, the grace period of C{obj}, whose metadata is changed.

    @return: Whether it ends gracefully (its metadata changed), whether it is ending already so that nothing is
        to be done, and the seconds it has left when it ends gracefully.
    """
    meta = obj["metadata"]
    period = options.grace_period_seconds
    if period is not None and period < 0:
        period = 1
    ending = meta.get("deletionTimestamp")
    if ending is not None:
        left = meta.get("deletionGracePeriodSeconds")
        if not left:
            return False, False, None
        if period is None or period >= left:
            return False, True, None
        begun = read_timestamp(ending) - timedelta(seconds=left)
        meta["deletionTimestamp"] = timestamp(begun + timedelta(seconds=period))
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
    """Show in C{meta} that the object only waits for its finalizers."""
    if meta.get("deletionTimestamp") is None and meta.get("generation"):
        meta["generation"] += 1
    ending = meta.get("deletionTimestamp")
    if ending is None or read_timestamp(ending) > now:
        meta["deletionTimestamp"] = timestamp(now)
    meta["deletionGracePeriodSeconds"] = 0


def deletion_finalizers_for_garbage_collection(
    strategy: Strategy, meta: JSONObject, options: DeleteOptions
) -> list[str] | None:
    """The finalizers that the propagation policy leads to, or L{None} when those that are there will do."""
    present = meta.get("finalizers") or []
    orphan, foreground = _orphans(strategy, present, options), _foreground(present, options)
    wanted = [name for name in present if name not in (ORPHAN, FOREGROUND)]
    if orphan:
        wanted.append(ORPHAN)
    if foreground:
        wanted.append(FOREGROUND)
    return wanted if set(wanted) != set(present) else None


def set_finalizers(meta: JSONObject, finalizers: list[str]) -> None:
    """Put C{finalizers} in, or leave the field out when there are none, as the reference writes it."""
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
    """Whether an update takes away the last thing that kept a deleted object."""
    meta, before = obj["metadata"], old["metadata"]
    return (
        before.get("deletionTimestamp") is not None
        and not meta.get("finalizers")
        and not before.get("deletionGracePeriodSeconds")
    )
