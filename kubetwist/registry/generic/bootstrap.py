"""Creation of the objects that a server requires; the modules C{bootstrap} of the groups define them."""

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


#: The field manager of writes by the server itself, as in the reference.
SERVER: Final = "kube-apiserver"


async def ensure(
    store: Store,
    obj: JSONObject,
    manager: str = SERVER,
    status_manager: str = SERVER,
    ignores_error: Callable[[FieldError], bool] | None = None,
) -> None:
    """
    Create an object unless it exists, and write its C{status}, which creation drops.

    @param obj: The object in the stored version; its defaults are set.
    @param manager: The field manager of the object.
    @param status_manager: The field manager of the status.
    @param ignores_error: See L{RequestScope.ignores_error}.
    """
    meta = obj["metadata"]
    namespace = meta.get("namespace", "")
    await store.cache.on_demand.ensure()
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
    """
    Apply the status of an object as a component of the server.

    @param name: The name of the object.
    @param status: The status.
    @param manager: The field manager of the status.
    """
    gvk = store.gvk

    def with_status(obj: JSONObject | None) -> JSONObject:
        assert obj is not None, "the status rules do not create objects"
        applied = {
            "apiVersion": gvk.api_version,
            "kind": gvk.kind,
            "metadata": {"name": name},
            "status": status,
        }
        return store.apply(obj, applied, "status", manager)

    rules = UpdateRules("status", lambda obj, old: None, lambda obj, old: ())
    await store.update(scope, name, with_status, UpdateOptions(), rules, patching=True)


def new_condition(kind: str, status: str, reason: str, message: str) -> JSONObject:
    """
    Return a condition whose last transition is now.

    @param kind: The type of the condition.
    @param status: C{"True"}, C{"False"} or C{"Unknown"}.
    @param reason: The reason; C{""} to omit it.
    @param message: The message.
    """
    now = times.now()
    condition = {"type": kind, "status": status, "lastTransitionTime": now, "message": message}
    return {**condition, "reason": reason} if reason else condition
