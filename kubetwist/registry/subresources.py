"""Which storage object answers for a subresource, and for the resources that have no objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .authorization.store import review_storage
from .core.namespace.store import finalize_rules
from .core.pod.binding import action_storage
from .core.pod.connections import connection_storage
from .generic.parts import Part, WritablePart, approval_rules, ephemeral_containers_rules, resize_rules, status_rules
from .generic.resourceinfo import ResourceInfo, SubresourceInfo
from .generic.scalestore import ScaleStore

if TYPE_CHECKING:
    from .generic.store import Store
    from .stores import Stores

#: Parts of an object, by name; those of one resource only are named with it.
_PARTS: dict[str, Callable[[Store], Any]] = {
    "status": lambda store: Part(store, status_rules(store)),
    "namespaces/finalize": lambda store: WritablePart(store, finalize_rules(store)),
    "certificatesigningrequests/approval": lambda store: Part(store, approval_rules(store)),
    "pods/ephemeralcontainers": lambda store: Part(store, ephemeral_containers_rules(store)),
    "pods/resize": lambda store: Part(store, resize_rules(store)),
}


def subresource_storage(
    info: ResourceInfo, version: str, subresource: SubresourceInfo, stores: Stores, context: Any
) -> Any:
    """
    The storage object of a subresource.

    @param version: In which it is served.
    @param context: What actions need of the server besides the stores.
    """
    store = stores.get(info.group, info.resource)
    if subresource.view == "part":
        make = _PARTS.get(f"{info.resource}/{subresource.name}") or _PARTS[subresource.name]
        return make(store)
    if subresource.view == "scale":
        return ScaleStore(store, version)
    if subresource.view == "action":
        return action_storage(info, subresource, stores, context)
    return connection_storage(info, subresource, stores, context)


def virtual_storage(info: ResourceInfo, stores: Stores, context: Any) -> Any:
    """The storage object of a resource that has no objects: reviews, bindings, component statuses."""
    return review_storage(info, stores, context)
