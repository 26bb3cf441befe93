"""The documents by which clients find out what is served; L{.discovery} serves them."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable
from typing import Any

from ..api.resource import GroupVersion, JSONObject
from .installed import IInstalled, InstalledResource

#: The first minor releases that tell which release they emulate, and which they are compatible with.
_EMULATION_SINCE = 33


def api_versions(installed: IInstalled, address: str) -> JSONObject:
    """
    C{/api}: the versions of the core group.

    @param address: The server's own, with its port, as it tells clients in any network.
    """
    return {
        "kind": "APIVersions",
        "versions": list(installed.versions("")),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def api_group(installed: IInstalled, group: str) -> JSONObject | None:
    """C{/apis/<group>}, or L{None} where nothing of the group is served."""
    entry = _group_entry(installed, group)
    return None if entry is None else {"kind": "APIGroup", "apiVersion": "v1", **entry}


def api_group_list(installed: IInstalled) -> JSONObject:
    """C{/apis}: the groups besides the core group."""
    entries = (_group_entry(installed, group) for group in named_groups(installed))
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [entry for entry in entries if entry is not None]}


def api_resource_list(installed: IInstalled, group_version: GroupVersion) -> JSONObject | None:
    """C{/api/v1} and C{/apis/<group>/<version>}, or L{None} where nothing of that version is served."""
    resources = installed.resources(group_version)
    if not resources:
        return None
    # The core group's are of a time before these documents had a version.
    versioned = {"apiVersion": "v1"} if group_version.group else {}
    return {
        "kind": "APIResourceList",
        **versioned,
        "groupVersion": str(group_version),
        "resources": [_resource_entry(resource) for resource in resources],
    }


def aggregated_discovery(installed: IInstalled, core: bool, version: str) -> JSONObject:
    """
    Everything in one document.

    @param core: That for C{/api} with the core group alone, or that for C{/apis} with all others.
    @param version: Of the document: C{"v2"} or C{"v2beta1"}, which differ in nothing else.
    """
    groups = [""] if core else named_groups(installed)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {
                        "version": one,
                        "resources": _discovered(installed.resources(GroupVersion(group, one))),
                        "freshness": "Current",
                    }
                    for one in installed.versions(group)
                ],
            }
            for group in groups
            if installed.versions(group)
        ],
    }


def version_info(git_version: str) -> JSONObject:
    """C{/version} of a server that stands in for the release C{git_version}: C{"v1.36.2"}."""
    major, minor = git_version.removeprefix("v").split(".")[:2]
    info: JSONObject = {"major": major, "minor": minor}
    if int(minor) >= _EMULATION_SINCE:
        info |= {
            "emulationMajor": major,
            "emulationMinor": minor,
            "minCompatibilityMajor": major,
            "minCompatibilityMinor": str(int(minor) - 1),
        }
    # Of the rest, clients print what they get; there is no Go here to tell of.
    return info | {
        "gitVersion": git_version,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": sys.implementation.name,
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


def named_groups(installed: IInstalled) -> list[str]:
    """All groups but the core group, in the order of preference."""
    return list(dict.fromkeys(one.group for one in installed.group_versions() if one.group))


def _group_entry(installed: IInstalled, group: str) -> JSONObject | None:
    versions = [
        {"groupVersion": str(GroupVersion(group, version)), "version": version} for version in installed.versions(group)
    ]
    if not versions:
        return None
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resource_entry(resource: InstalledResource) -> JSONObject:
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


def _discovered(resources: Iterable[InstalledResource]) -> list[JSONObject]:
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


def _scope(resource: InstalledResource) -> str:
    return "Namespaced" if resource.namespaced else "Cluster"


def _response_kind(resource: InstalledResource) -> dict[str, str]:
    shown = resource.kind_shown_group_version
    return {
        "group": resource.kind.group if shown else "",
        "version": resource.kind.version if shown else "",
        "kind": resource.kind.kind,
    }


def _add_names(entry: dict[str, Any], resource: InstalledResource) -> None:
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
