"""The storage objects of subresources, and of resources that have no objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from .authentication.store import SelfSubjectReview, TokenReview
from .authorization.store import AccessReview, RulesReview
from .certificates.subresources import approval_rules
from .core.componentstatus.store import ComponentStatuses
from .core.connection import ALL_METHODS, ConnectSubresource
from .core.namespace.store import finalize_rules
from .core.node.proxy import NodeProxy
from .core.pod.binding import Bindings, PodBinding
from .core.pod.connections import PodLog, PodProxy, PodStream
from .core.pod.eviction import PodEviction
from .core.pod.subresources import ephemeral_containers_rules, resize_rules
from .core.service.proxy import ServiceProxy
from .core.serviceaccount.tokenrequest import TokenRequests
from .generic.parts import StatusStore, SubresourceStore, SubresourceUpdater
from .generic.resourceinfo import ResourceInfo, SubresourceInfo
from .generic.scalestore import ScaleStore

if TYPE_CHECKING:
    from .core.servercontext import ServerContext
    from .generic.store import Store

#: Subresources that act on an object.
Action = PodBinding | PodEviction | TokenRequests
#: Storage of resources without objects.
Virtual = Bindings | ComponentStatuses | TokenReview | SelfSubjectReview | RulesReview | AccessReview

#: Factories for the storage of subresources that write a part of the object, by subresource or resource/subresource.
_PARTS: dict[str, Callable[[Store], SubresourceStore | SubresourceUpdater]] = {
    "status": StatusStore,
    "namespaces/finalize": lambda store: SubresourceUpdater(store, "finalize", finalize_rules),
    "certificatesigningrequests/approval": lambda store: SubresourceStore(store, "approval", approval_rules),
    "pods/ephemeralcontainers": lambda store: SubresourceStore(
        store, "ephemeralcontainers", ephemeral_containers_rules
    ),
    "pods/resize": lambda store: SubresourceStore(store, "resize", resize_rules),
}


def subresource_storage(
    info: ResourceInfo, version: str, subresource: SubresourceInfo, context: ServerContext
) -> SubresourceStore | SubresourceUpdater | ScaleStore | Action | ConnectSubresource | PodLog:
    """
    Return the storage object of a subresource.

    @param info: The resource.
    @param version: The version in which it is served.
    @param subresource: The subresource.
    @param context: The stores and further components of the server.
    """
    store = context.stores.get(info.group, info.resource)
    if subresource.view == "part":
        make = _PARTS.get(f"{info.resource}/{subresource.name}") or _PARTS[subresource.name]
        return make(store)
    if subresource.view == "scale":
        return ScaleStore(store, version)
    if subresource.view == "action":
        return action_storage(info, subresource, context)
    if subresource.view == "log":
        return PodLog(info, context)
    return connection_storage(info, subresource, context)


def virtual_storage(info: ResourceInfo, context: ServerContext) -> Virtual:
    """Return the storage object of a resource without objects: reviews, bindings and component statuses."""
    return review_storage(info, context)


def action_storage(info: ResourceInfo, subresource: SubresourceInfo, context: ServerContext) -> Action:
    """Return the storage object of an action: C{binding}, C{eviction} or C{token}."""
    store = context.stores.get(info.group, info.resource)
    if subresource.name == "binding":
        return PodBinding(store)
    if subresource.name == "eviction":
        return PodEviction(store, context.stores.find("policy", "poddisruptionbudgets"))
    return TokenRequests(store, context)


_PROXIES: Final = {"pods": PodProxy, "services": ServiceProxy, "nodes": NodeProxy}


def connection_storage(info: ResourceInfo, subresource: SubresourceInfo, context: ServerContext) -> ConnectSubresource:
    """Return the storage object of a subresource that connects to a backend: C{proxy}, C{exec}, ..."""
    if subresource.name == "proxy":
        return _PROXIES[info.resource](info, "proxy", ALL_METHODS, context)
    return PodStream(info, subresource.name, ("GET", "POST"), context)


def review_storage(info: ResourceInfo, context: ServerContext) -> Virtual:
    """Return the storage object of a resource without objects."""
    if info.kind == "Binding":
        return Bindings(info, context.stores.get("", "pods"))
    if info.kind == "ComponentStatus":
        return ComponentStatuses(info, context)
    if info.kind == "TokenReview":
        return TokenReview(info, context)
    if info.kind == "SelfSubjectReview":
        return SelfSubjectReview(info, context)
    if info.kind == "SelfSubjectRulesReview":
        return RulesReview(info, context)
    return AccessReview(info, context)
