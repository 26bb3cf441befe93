"""
The resources that the servers of the chain serve, as listed in discovery and OpenAPI.

The installer adds an entry here for every route it registers, so that no document lists a path without a handler.
Each server has separate L{ServedResources}; L{MergedServedResources} combines the servers of a chain.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from attrs import field, frozen

from ..api.resource import GroupVersion, GroupVersionKind
from ..registry.generic.versionorder import version_preference
from ..registry.kinds import Priority as Priority
from ..registry.kinds import group_priority, version_priority
from ..registry.kindtable import GROUP_PRIORITIES

if TYPE_CHECKING:
    from .capabilities import ProducedResponse


@frozen
class APIResource:
    """
    A resource or subresource that has routes: one entry of an C{APIResourceList}.

    @ivar resource: The plural: C{"deployments"}.
    @ivar subresource: C{"scale"}; C{""} for the resource itself.
    @ivar kind: The kind of its responses: C{autoscaling/v1, Scale} for C{deployments/scale}. For connecting
        subresources, the kind of their options: C{v1, PodExecOptions}.
    @ivar kind_shown_group_version: Whether documents list the kind's group and version, because they differ from the
        document's.
    @ivar verbs: The verbs in the order of discovery; sorted except for custom resources.
    @ivar storage_version_hash: Changes with the version in which objects are stored; C{""} if they are not stored.
    @ivar list_kind: The kind of its collections.
    @ivar delete_returns_object: Returns whether DELETE returns the object instead of a Status; called when a document
        is built.
    @ivar connect_methods: The HTTP methods that are forwarded to another server.
    @ivar connect_subpath: Whether paths below it are forwarded, too.
    @ivar options: The kind of the options of reads, whose fields are parameters of the query; C{""} without options.
    @ivar produced: The responses by verb that do not only have objects of the kind.
    @ivar documented: Whether OpenAPI documents have it.
    @ivar custom: Builds the schemas of a custom resource: a L{kubetwist.resources.openapi.custom.CustomSchemas}.
    """

    group: str
    version: str
    resource: str
    subresource: str
    kind: GroupVersionKind
    kind_shown_group_version: bool
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    storage_version_hash: str = ""
    list_kind: str = ""
    delete_returns_object: Callable[[], bool] = lambda: False
    connect_methods: tuple[str, ...] = ()
    connect_subpath: bool = False
    options: str = ""
    produced: Mapping[str, ProducedResponse] = field(factory=dict)
    documented: bool = True
    custom: Any = None

    @property
    def group_version(self) -> GroupVersion:
        """Return the group-version under which it is served."""
        return GroupVersion(self.group, self.version)

    @property
    def name(self) -> str:
        """Return the name in discovery: C{"deployments/scale"}."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def built_in_priority(group_version: GroupVersion) -> Priority:
    """Return the priority of a built-in group-version; (0, 0), the lowest, for any other."""
    group, version = group_version
    if group not in GROUP_PRIORITIES:
        return Priority(0, 0)
    return Priority(group_priority(group), version_priority(group, version))


class IServedResources(Protocol):
    """The interface for builders of documents, of L{ServedResources} and L{MergedServedResources}."""

    @property
    def generation(self) -> int:
        """Return a number that changes with every update."""

    @property
    def priorities(self) -> Mapping[GroupVersion, Priority]:
        """Return the priorities of the group-versions that are not built in."""

    def group_versions(self) -> Sequence[GroupVersion]:
        """
        Return all group-versions, preferred ones first: by the priorities of the group and of the version.
        """

    def versions(self, group: str) -> Sequence[str]:
        """Return the versions of C{group}, the preferred one first; empty if no version is served."""

    def resources(self, group_version: GroupVersion) -> Sequence[APIResource]:
        """Return the resources of a group-version in the order of documents."""


class ServedResources:
    """The groups, versions and resources of one server; they may change while it runs."""

    def __init__(self) -> None:
        self.generation = 0
        self.priorities: dict[GroupVersion, Priority] = {}
        self._resources: dict[GroupVersion, list[APIResource]] = {}
        self._listeners: list[Callable[[], None]] = []

    def add(self, resource: APIResource) -> None:
        """Add a resource, sorted by name in its group-version; replaces one of the same name."""
        listed = self._resources.setdefault(resource.group_version, [])
        listed[:] = [other for other in listed if other.name != resource.name]
        insort(listed, resource, key=lambda one: one.name)
        self._changed()

    def set_group_version(
        self, group_version: GroupVersion, resources: Iterable[APIResource], priority: Priority | None = None
    ) -> None:
        """Serve exactly C{resources} in C{group_version}, and list them in this order."""
        if priority is not None:
            self.priorities[group_version] = priority
        self._resources[group_version] = list(resources)
        self._changed()

    def remove_group_version(self, group_version: GroupVersion) -> None:
        """Remove all resources of C{group_version}."""
        if self._resources.pop(group_version, None) is not None:
            self._changed()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call C{listener} after every change, until the function that is returned is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def group_versions(self) -> Sequence[GroupVersion]:
        """@see: L{IServedResources}."""
        return preferred(self._resources, self.priorities)

    def versions(self, group: str) -> Sequence[str]:
        """@see: L{IServedResources}."""
        return [one.version for one in self.group_versions() if one.group == group]

    def resources(self, group_version: GroupVersion) -> Sequence[APIResource]:
        """@see: L{IServedResources}."""
        return tuple(self._resources.get(group_version, ()))

    def _changed(self) -> None:
        self.generation += 1
        for listener in tuple(self._listeners):
            listener()


@frozen(eq=False)
class MergedServedResources:
    """
    The combined groups of several servers.

    @ivar layers: The servers in the order of the chain; only one of them serves a group and version.
    """

    layers: Sequence[ServedResources] = field()

    @property
    def generation(self) -> int:
        """@see: L{IServedResources}."""
        return sum(layer.generation for layer in self.layers)

    @property
    def priorities(self) -> Mapping[GroupVersion, Priority]:
        """@see: L{IServedResources}."""
        priorities: dict[GroupVersion, Priority] = {}
        for layer in reversed(self.layers):
            priorities.update(layer.priorities)
        return priorities

    def group_versions(self) -> Sequence[GroupVersion]:
        """@see: L{IServedResources}."""
        return preferred({one for layer in self.layers for one in layer.group_versions()}, self.priorities)

    def versions(self, group: str) -> Sequence[str]:
        """@see: L{IServedResources}."""
        return [one.version for one in self.group_versions() if one.group == group]

    def resources(self, group_version: GroupVersion) -> Sequence[APIResource]:
        """@see: L{IServedResources}."""
        for layer in self.layers:
            resources = layer.resources(group_version)
            if resources:
                return resources
        return ()


def preferred(served: Iterable[GroupVersion], priorities: Mapping[GroupVersion, Priority]) -> list[GroupVersion]:
    """Sort C{served} in the order of documents; C{priorities} contains those that are not built in."""
    ranks = {one: priorities.get(one) or built_in_priority(one) for one in served}
    groups: dict[str, int] = {}
    for one, rank in ranks.items():
        groups[one.group] = max(groups.get(one.group, 0), rank.group)
    return sorted(
        ranks,
        key=lambda one: (-groups[one.group], one.group, -ranks[one].version, version_preference(one.version)),
    )
