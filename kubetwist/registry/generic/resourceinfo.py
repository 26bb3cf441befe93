"""Descriptions of resources for discovery and storage."""

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
    A subresource, as in discovery.

    @ivar name: The name after the slash: C{"status"}.
    @ivar kind: The kind of its requests and responses.
    @ivar group: The group of that kind, if discovery contains it (C{autoscaling} for C{scale}).
    @ivar version: The version of that kind, if discovery contains it.
    @ivar view: The type of the subresource. C{part}: the object, of which only a part can be written (C{status},
        C{finalize}, C{approval}, C{resize}, C{ephemeralcontainers}). C{scale}: a C{Scale} derived from the object.
        C{action}: POST only (C{binding}, C{eviction}, C{token}). C{connect}: the request is proxied to a kubelet or
        an application (C{proxy}, C{exec}, C{attach}, C{portforward}). C{log}: a stream of text.
    @ivar since: The first minor release with the subresource.
    @ivar until: The last minor release with the subresource; 0 if it was not removed.
    @ivar gate: The feature gate that must be enabled; C{""} if there is none.
    """

    name: str
    kind: str
    group: str = ""
    version: str = ""
    view: str = "part"
    since: int = 0
    until: int = 0
    gate: str = ""


@frozen
class Kind:
    """
    A built-in kind in all releases.

    @ivar versions: Its versions in all releases, by preference, each with the minor release that introduced it; 0 if
        it is older than the oldest supported release.
    @ivar key_prefix: The prefix of its storage keys below C{/registry/}, as in kube-apiserver.
    @ivar storage_group: The group in which its objects are stored.
    @ivar hash_version: The version in C{storageVersionHash} of discovery; C{""} for the storage version.
    @ivar stored: Whether it has objects, unlike reviews and bindings.
    @ivar gate: The feature gate that must be enabled; C{""} if there is none.
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
    gate: str = ""


def _versions(text: str) -> tuple[tuple[str, int], ...]:
    """Parse versions with the releases that introduced them: C{"v1:36 v1beta1"}."""
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
    gate: str = "",
) -> Kind:
    """
    Return a built-in kind.

    @param group: The group; C{""} for the core group.
    @param resource: The plural name of the resource.
    @param kind: The kind.
    @param namespaced: Whether objects have a namespace.
    @param versions: The versions by preference, separated by spaces, each with the release that introduced it:
        C{"v1:36 v1beta1"}.
    @param short: The short names, separated by spaces.
    @param categories: The categories, separated by spaces.
    @param singular: The singular name; C{""} for the kind in lower case.
    @param prefix: The prefix of storage keys below C{/registry/}; C{""} for the resource.
    @param storage_group: The group in which objects are stored; L{None} for C{group}.
    @param status: Whether there is a subresource C{status}.
    @param subresources: The subresources, except C{status}.
    @param stored: Whether there are objects of the kind.
    @param hash_version: The version in C{storageVersionHash} of discovery; C{""} for the storage version.
    @param gate: The feature gate that must be enabled, as in the C{RESTStorageProvider} of the reference; C{""} if
        there is none.
    """
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
        gate=gate,
    )


SCALE = SubresourceInfo("scale", "Scale", "autoscaling", "v1", "scale")


@frozen(slots=False)
class ResourceInfo:
    """
    A resource as one release serves it.

    @ivar versions: The served versions, by preference; never empty.
    @ivar known_versions: All versions with type definitions in the release, by preference: stored objects may be in any
        of them.
    @ivar storage_version: The version in which objects are stored and cached, within C{storage_group}.
    @ivar key_prefix: The prefix of storage keys below C{/registry/}, without slashes at the ends: C{"services/specs"}.
    @ivar storage_group: The group in which objects are stored: the core group for C{events.k8s.io}.
    @ivar hash_version: The version from which C{storageVersionHash} is computed.
    @ivar stored: Whether it has objects, unlike reviews and bindings.
    @ivar custom_fields: For custom resources, the selectable fields of each version, besides name and namespace.
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
        """Return the group and resource, for errors."""
        return GroupResource(self.group, self.resource)

    @cached_property
    def group_kind(self) -> GroupKind:
        """Return the group and kind, for errors."""
        return GroupKind(self.group, self.kind)

    @cached_property
    def storage_kind(self) -> GroupVersionKind:
        """Return the kind and version of stored objects."""
        return GroupVersionKind(self.storage_group, self.storage_version, self.kind)

    def gvk(self, version: str) -> GroupVersionKind:
        """Return the kind in one of its versions."""
        return GroupVersionKind(self.group, version, self.kind)

    def subresource(self, name: str) -> SubresourceInfo | None:
        """Return a subresource by its name; L{None} if the resource does not have it."""
        return next((subresource for subresource in self.subresources if subresource.name == name), None)


def storage_version_hash(group: str, version: str, kind: str) -> str:
    """Return C{storageVersionHash} of discovery, by which clients detect a change of the storage version."""
    return b64encode(sha256(f"{group}/{version}/{kind}".encode()).digest()[:8]).decode()
