"""Builds the discovery documents; L{.endpoints} serves them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import orjson

from ...api.jsontypes import JSONValue
from ...api.resource import GroupVersion, JSONObject
from ...registry.kinds import Priority
from ..servedresources import APIResource, IServedResources, preferred


def api_versions(served_resources: IServedResources, address: str) -> JSONObject:
    """
    Return the document of C{/api}: the versions of the core group.

    @param address: The address and port of this server, for clients in all networks.
    """
    return {
        "kind": "APIVersions",
        "versions": list(served_resources.versions("")),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def api_group(served_resources: IServedResources, group: str) -> JSONObject | None:
    """Return C{/apis/<group>}, or L{None} if no version of the group is served."""
    versions = served_resources.versions(group)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group_entry(group, versions)} if versions else None


def api_group_list(served_resources: IServedResources) -> JSONObject:
    """Return C{/apis}: the groups besides the core group."""
    grouped = _grouped(served_resources.group_versions())
    groups = [_group_entry(group, versions) for group, versions in grouped.items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_resource_list(served_resources: IServedResources, group_version: GroupVersion) -> JSONObject | None:
    """Return C{/api/v1} or C{/apis/<group>/<version>}, or L{None} if no resource of the version is served."""
    resources = served_resources.resources(group_version)
    if not resources:
        return None
    # The core group's document is older than the apiVersion of these documents.
    versioned = {"apiVersion": "v1"} if group_version.group else {}
    return {
        "kind": "APIResourceList",
        **versioned,
        "groupVersion": str(group_version),
        "resources": [_resource_entry(resource) for resource in resources],
    }


class IRemoteVersions(Protocol):
    """The resources of other servers: L{kubetwist.resources.aggregation.discovery.RemoteDiscovery}."""

    @property
    def generation(self) -> int:
        """Return a number that changes with every update."""

    @property
    def entries(self) -> Mapping[GroupVersion, JSONObject]:
        """Return the entries of the versions in aggregated documents."""

    @property
    def priorities(self) -> Mapping[GroupVersion, Priority]:
        """Return the priorities of these versions."""


class EncodedVersions:
    """
    The entries of the local group-versions in aggregated documents, as JSON.

    An entry is rebuilt only after a change, as there may be thousands of custom resources.
    """

    def __init__(self, served_resources: IServedResources) -> None:
        self._served_resources = served_resources
        self._cached: dict[GroupVersion, tuple[tuple[APIResource, ...], orjson.Fragment]] = {}
        self._previous = self._cached

    def begin(self) -> None:
        """Start a new document; entries that it does not use are dropped."""
        self._previous, self._cached = self._cached, {}

    def __call__(self, group_version: GroupVersion) -> orjson.Fragment:
        """Return the encoded entry of a version."""
        resources = tuple(self._served_resources.resources(group_version))
        cached = self._previous.get(group_version)
        if cached is None or cached[0] != resources:
            cached = resources, orjson.Fragment(orjson.dumps(_entry(resources, group_version.version)))
        self._cached[group_version] = cached
        return cached[1]


def aggregated_discovery(
    served_resources: IServedResources,
    core: bool,
    version: str,
    remote: IRemoteVersions | None = None,
    encoded_entry: Callable[[GroupVersion], JSONValue] | None = None,
) -> JSONObject:
    """
    Return the document of aggregated discovery, which lists all groups, versions and resources.

    @param served_resources: The local resources.
    @param core: Whether to return the document of C{/api}, with the core group only, instead of C{/apis}.
    @param version: The version of the document: C{"v2"} or C{"v2beta1"}, which do not differ otherwise.
    @param remote: The entries of aggregated servers, which replace local entries of the same group-version.
    @param encoded_entry: Returns the cached entry of a local group-version: L{EncodedVersions}; L{None} builds it.
    """
    served: Sequence[GroupVersion] = served_resources.group_versions()
    entries: Mapping[GroupVersion, JSONObject] = {}
    if remote is not None and remote.entries and not core:
        entries = remote.entries
        served = preferred({*served, *entries}, {**served_resources.priorities, **remote.priorities})

    def entry_of(group: str, one: str) -> JSONValue:
        group_version = GroupVersion(group, one)
        entry = entries.get(group_version)
        if entry is not None:
            return entry
        return (
            _entry(served_resources.resources(group_version), one)
            if encoded_entry is None
            else encoded_entry(group_version)
        )

    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group} if group else {},
                "versions": [entry_of(group, one) for one in versions],
            }
            for group, versions in _grouped(served).items()
            if core == (not group)
        ],
    }


def _entry(resources: Iterable[APIResource], version: str) -> JSONObject:
    return {"version": version, "resources": _discovered(resources), "freshness": "Current"}


def _grouped(served: Iterable[GroupVersion]) -> dict[str, list[str]]:
    """Return the versions of each group, both in the order of preference."""
    groups: dict[str, list[str]] = {}
    for group, version in served:
        groups.setdefault(group, []).append(version)
    return groups


def _group_entry(group: str, versions: Sequence[str]) -> JSONObject:
    entries = [{"groupVersion": str(GroupVersion(group, version)), "version": version} for version in versions]
    return {"name": group, "versions": entries, "preferredVersion": entries[0]}


def _resource_entry(resource: APIResource) -> JSONObject:
    entry: JSONObject = {
        "name": resource.name,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
    }
    if resource.kind_shown_group_version:
        if resource.kind.group:
            entry["group"] = resource.kind.group
        entry["version"] = resource.kind.version
    entry["kind"] = resource.kind.kind
    entry["verbs"] = list(resource.verbs)
    _add_names(entry, resource)
    if resource.storage_version_hash:
        entry["storageVersionHash"] = resource.storage_version_hash
    return entry


def _discovered(resources: Iterable[APIResource]) -> list[JSONObject]:
    entries: dict[str, JSONObject] = {}
    for resource in resources:
        entry = entries.setdefault(resource.resource, {"resource": resource.resource})
        if resource.subresource:
            entry.setdefault("subresources", []).append(
                {
                    "subresource": resource.subresource,
                    "responseKind": _response_kind(resource),
                    "verbs": list(resource.verbs),
                }
            )
            entry.setdefault("scope", _scope(resource))
            continue
        subresources = entry.pop("subresources", None)
        entry["responseKind"] = _response_kind(resource)
        entry["scope"] = _scope(resource)
        entry["singularResource"] = resource.singular
        entry["verbs"] = list(resource.verbs)
        _add_names(entry, resource)
        if subresources:
            entry["subresources"] = subresources
    return list(entries.values())


def _scope(resource: APIResource) -> str:
    return "Namespaced" if resource.namespaced else "Cluster"


def _response_kind(resource: APIResource) -> dict[str, str]:
    # The reference always names them for custom resources (apiextensions-apiserver,
    # pkg/apiserver/customresource_discovery_controller.go), and for built-in ones only if they differ.
    is_listed = resource.kind_shown_group_version or resource.custom is not None
    return {
        "group": resource.kind.group if is_listed else "",
        "version": resource.kind.version if is_listed else "",
        "kind": resource.kind.kind,
    }


def _add_names(entry: JSONObject, resource: APIResource) -> None:
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
