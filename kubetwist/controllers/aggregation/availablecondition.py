"""Writes the condition C{Available} of APIServices."""

from __future__ import annotations

from collections.abc import Sequence

from ...api import times
from ...api.errors import APIStatusError
from ...api.options import UpdateOptions
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from ...registry.generic.bootstrap import SERVER
from ...registry.generic.parts import status_rules
from ...registry.generic.store import Store
from .apiservices import (
    LOCAL,
    Condition,
)


async def set_available(store: Store, name: str, condition: Condition, *, remote: bool) -> None:
    """
    Write the condition C{Available} of an APIService. Nothing is written if nothing changes.

    @param store: The store of APIServices.
    @param name: The name of the APIService.
    @param condition: The new condition.
    @param remote: Whether the APIService must have a service. If this does not hold, nothing is written.
    @raise APIStatusError: It does not exist (404).
    """

    def changed(obj: JSONObject | None) -> JSONObject:
        assert obj is not None, "an update creates no objects"
        if (obj["spec"].get("service") is not None) != remote:
            return obj
        status = obj.get("status") or {}
        conditions = with_condition(status.get("conditions") or (), condition)
        new = {**obj, "metadata": {**obj["metadata"]}, "status": {**status, "conditions": conditions}}
        store.update_managed_fields(obj, new, "status", SERVER)
        return new

    await store.update(RequestScope(), name, changed, UpdateOptions(), status_rules(store), patching=True)


def with_condition(conditions: Sequence[JSONObject], condition: Condition) -> list[JSONObject]:
    """Return conditions with C{Available} replaced. The transition time is kept if the status does not change."""
    now = times.now()
    result = []
    new: JSONObject = {"type": "Available", "status": condition.status, "lastTransitionTime": now}
    replaced = False
    for one in conditions:
        if one.get("type") == "Available" and not replaced:
            replaced = True
            if one.get("status") == condition.status:
                new["lastTransitionTime"] = one.get("lastTransitionTime")
            one = new
        result.append(one)
    if not replaced:
        result.append(new)
    for key, value in (("reason", condition.reason), ("message", condition.message)):
        if value:
            new[key] = value
    return result


async def reset_local_condition(store: Store, name: str) -> None:
    """Reset the condition of a local APIService if another client changed it."""
    try:
        await set_available(store, name, LOCAL, remote=False)
    except APIStatusError as error:
        if error.code not in (404, 409):
            raise
