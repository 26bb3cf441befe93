"""Creates the objects that a server makes for itself; the modules C{bootstrap} of the groups say which."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...api import times
from ...api.errors import APIStatusError, FieldError
from ...api.options import CreateOptions, UpdateOptions
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from .updates import UpdateRules

if TYPE_CHECKING:
    from .store import Store


#: The manager of fields that the server itself writes, as in the reference; and of those about fairness.
SERVER: Final = "kube-apiserver"


async def ensure(
    store: Store,
    obj: JSONObject,
    manager: str = SERVER,
    status_manager: str = SERVER,
    ignores_error: Callable[[FieldError], bool] | None = None,
) -> None:
    """
    Create an object unless it exists, with its C{status}, which a create would drop.

    @param manager: The field manager of the object.
    @param status_manager: The field manager of the status.
    @param ignores_error: See L{RequestScope.ignores_error}.
    """
    meta = obj["metadata"]
    namespace = meta.get("namespace", "")
    if store.cache.get(store.cache_key(namespace, meta["name"])) is not None:
        return
    status = obj.get("status")
    store.strategy.default(obj)
    store.update_managed_fields(None, obj, "", manager)
    scope = RequestScope(namespace, ignores_error=ignores_error)
    try:
        await store.create(scope, obj, CreateOptions())
    except APIStatusError as error:
        if error.reason != "AlreadyExists":
            raise
        return
    if status is not None:
        await apply_status(store, scope, meta["name"], status, status_manager)


async def apply_status(store: Store, scope: RequestScope, name: str, status: JSONObject, manager: str) -> None:
    """Write an object's status as the parts of the server may that see to it."""
    gvk = store.gvk

    def changed(obj: JSONObject | None) -> JSONObject:
        assert obj is not None, "a status is no object"
        applied = {
            "apiVersion": gvk.api_version,
            "kind": gvk.kind,
            "metadata": {"name": name},
            "status": status,
        }
        return store.apply(obj, applied, "status", manager)

    rules = UpdateRules("status", lambda obj, old: None, lambda obj, old: ())
    await store.update(scope, name, changed, UpdateOptions(), rules, patching=True)


def new_condition(kind: str, status: str, reason: str, message: str) -> JSONObject:
    """Return a condition that changes now; C{reason} may be empty."""
    now = times.now()
    condition = {"type": kind, "status": status, "lastTransitionTime": now, "message": message}
    return {**condition, "reason": reason} if reason else condition
