"""Descriptions of resources: what discovery shows of them, and where their objects are stored."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256

from attrs import frozen

from ...api.resource import GroupKind, GroupResource, GroupVersionKind


@frozen
class SubresourceInfo:
    """
    A subresource, as discovery shows it.

    @ivar name: Behind the slash: C{"status"}.
    @ivar kind: What it takes and answers, by its kind.
    @ivar group: The group of that kind, where discovery names it (C{autoscaling} for C{scale}).
    @ivar version: Its version, likewise.
    @ivar view: What it is. C{part}: the object itself, of which only a part can be written (C{status},
        C{finalize}, C{approval}, C{resize}, C{ephemeralcontainers}). C{scale}: a C{Scale} made of the object.
        C{action}: only POST (C{binding}, C{eviction}, C{token}). C{connect}: the request goes on to a kubelet or
        an application (C{proxy}, C{exec}, C{attach}, C{portforward}). C{log}: a stream of text.
    @ivar since: The first minor release that has it.
    @ivar until: The last one; 0 for no end.
    """

    name: str
    kind: str
    group: str = ""
    version: str = ""
    view: str = "part"
    since: int = 0
    until: int = 0


@frozen
class Kind:
    """
    A built-in kind, whatever the release.

    @ivar versions: Every version that any release has of it, best first, with the minor release that brought
        it; 0 for those older than the oldest release known here.
    @ivar key_prefix: Where its objects are, below C{/registry/}, as kube-apiserver lays etcd out.
    @ivar storage_group: The group in whose shape its objects are stored.
    @ivar hash_version: The version that discovery's C{storageVersionHash} is made of; C{""} for the storage version.
    @ivar stored: Whether there are objects of it at all, which there are not of reviews and bindings.
    """

    group: str
    resource: str
    kind: str
    singular: str
    namespaced: bool
    versions: tuple[tuple[str, int], ...]
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    key_prefix: str
    storage_group: str
    subresources: tuple[SubresourceInfo, ...]
    stored: bool = True
    hash_version: str = ""


def _versions(text: str) -> tuple[tuple[str, int], ...]:
    """Read C{"v1:36 v1beta1"}."""
    pairs = (part.partition(":") for part in text.split())
    return tuple((version, int(since or 0)) for version, _, since in pairs)


def define_kind(
    group: str,
    resource: str,
    kind: str,
    *,
    namespaced: bool = False,
    versions: str = "v1",
    short: str = "",
    categories: str = "",
    singular: str = "",
    prefix: str = "",
    storage_group: str | None = None,
    status: bool = False,
    subresources: tuple[SubresourceInfo, ...] = (),
    stored: bool = True,
    hash_version: str = "",
) -> Kind:
    """Return a built-in kind; C{versions}, C{short} and C{categories} are separated by blanks."""
    if status:
        subresources = (*subresources, SubresourceInfo("status", kind))
    return Kind(
        group=group,
        resource=resource,
        kind=kind,
        singular=singular or kind.lower(),
        namespaced=namespaced,
        versions=_versions(versions),
        short_names=tuple(short.split()),
        categories=tuple(categories.split()),
        key_prefix=prefix or resource,
        storage_group=group if storage_group is None else storage_group,
        subresources=tuple(sorted(subresources, key=lambda subresource: subresource.name)),
        stored=stored,
        hash_version=hash_version,
    )


SCALE = SubresourceInfo("scale", "Scale", "autoscaling", "v1", "scale")


@frozen(slots=False)
class ResourceInfo:
    """
    A resource as one release serves it.

    @ivar versions: Served, best first; never empty.
    @ivar known_versions: Every version that the release has types for, best first: objects may come from the
        store in any of them.
    @ivar storage_version: The version in which objects are stored and cached, within C{storage_group}.
    @ivar key_prefix: Below C{/registry/}, without slashes at the ends: C{"services/specs"}.
    @ivar storage_group: The group in whose shape objects are stored: that of C{events.k8s.io} is the core group.
    @ivar hash_version: The version from which C{storageVersionHash} is computed.
    @ivar stored: Whether there are objects of it at all, which there are not of reviews and bindings.
    @ivar custom_fields: For custom resources, what objects can be selected by in each version, besides name and
        namespace.
    """

    group: str
    resource: str
    kind: str
    singular: str
    versions: tuple[str, ...]
    known_versions: tuple[str, ...]
    storage_version: str
    namespaced: bool
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    key_prefix: str
    storage_group: str
    subresources: tuple[SubresourceInfo, ...]
    stored: bool
    hash_version: str
    custom_fields: Mapping[str, frozenset[str]] | None = None

    @cached_property
    def group_resource(self) -> GroupResource:
        """The resource, as errors name it."""
        return GroupResource(self.group, self.resource)

    @cached_property
    def group_kind(self) -> GroupKind:
        """The kind, as errors name it."""
        return GroupKind(self.group, self.kind)

    @cached_property
    def storage_kind(self) -> GroupVersionKind:
        """What stored objects say they are."""
        return GroupVersionKind(self.storage_group, self.storage_version, self.kind)

    @cached_property
    def storage_version_hash(self) -> str:
        """As discovery shows it; C{""} for what is not stored."""
        return storage_version_hash(self.storage_group, self.hash_version, self.kind) if self.stored else ""

    def gvk(self, version: str) -> GroupVersionKind:
        """The kind in one of its versions."""
        return GroupVersionKind(self.group, version, self.kind)

    def subresource(self, name: str) -> SubresourceInfo | None:
        """The subresource of that name, if it has one."""
        return next((subresource for subresource in self.subresources if subresource.name == name), None)


def storage_version_hash(group: str, version: str, kind: str) -> str:
    """Return C{storageVersionHash} of discovery, by which clients detect a change of the storage version."""
    return b64encode(sha256(f"{group}/{version}/{kind}".encode()).digest()[:8]).decode()
