"""
The built-in resources and versions that a server serves, from the table of kinds, the release and --runtime-config.

The table is in L{kubetwist.registry.kindtable}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Final

from attrs import frozen

from ..api.featuregates import FeatureGates, format_release
from .emulation import Enabled, ForwardCompatibility, introduced_kinds
from .generic.resourceinfo import Kind, ResourceInfo
from .kindtable import GROUP_PRIORITIES, KINDS, VERSION_PRIORITIES
from .runtimeconfig import Switches


def kinds_for(
    definitions_gvks: Container[tuple[str, str, str]],
    features: FeatureGates,
    runtime_config: Mapping[str, str] | None = None,
    forward: ForwardCompatibility | None = None,
    warn: Callable[[str], object] = lambda text: None,
) -> list[ResourceInfo]:
    """
    Return the resources that a release serves, in the order of C{/apis} and, within a group, by name.

    @param definitions_gvks: The kinds with type definitions in the release, as C{(group, version, kind)}.
    @param features: The release, the emulated one, and the feature gates, which some resources need.
    @param runtime_config: The keys and values of --runtime-config.
    @param forward: Which APIs are served although they are newer than the emulated release; none by default.
    @param warn: Called with a text for each resource that a feature gate disables, and for each alpha version that is
        served in an emulated release.
    @raise BadRuntimeConfig: C{runtime_config} has an unknown key, a malformed value, or names a newer API.
    """
    present = [
        (kind, [version for version, _ in kind.versions if (kind.group, version, kind.kind) in definitions_gvks])
        for kind in KINDS
    ]
    forward = forward or ForwardCompatibility()
    switches = Switches.make(present, runtime_config or {}, newer=forward.versions)
    switched_on = [
        (kind, [version for version in known if switches.enabled(kind.group, version, kind.resource)])
        for kind, known in present
    ]
    enabled: list[Enabled] = []
    for kind, versions in switched_on:
        if not kind.gate or features.enabled(kind.gate):
            enabled.append((kind, versions))
        elif versions:
            warn(f"{kind.resource} storage is disabled because the {kind.gate} feature gate is disabled")
    if features.emulated < features.release:
        enabled = list(introduced_kinds(enabled, features, switches, forward))
        for api in sorted({f"{kind.group}/{one}" for kind, versions in enabled for one in versions if "alpha" in one}):
            warn(
                f"alpha api enabled with emulated version {format_release(features.emulated)} instead of the binary's"
                f" version {format_release(features.release)}, this is unsupported, proceed at your own risk: api={api}"
            )
    known_versions = {(kind.group, kind.resource): known for kind, known in present}
    infos = [
        _resource_info(kind, known_versions[kind.group, kind.resource], served, features)
        for kind, served in enabled
        if served
    ]
    infos.sort(key=lambda info: (*_group_order(info.group), info.resource))
    return infos


def groups_in_order(groups: Iterable[str]) -> list[str]:
    """Return each group once, in the order of C{/apis}; the core group follows apiregistration.k8s.io."""
    return sorted(set(groups), key=_group_order)


def group_priority(group: str) -> int:
    """Return C{groupPriorityMinimum} of the APIService of a built-in group."""
    return GROUP_PRIORITIES[group]


def version_priority(group: str, version: str) -> int:
    """Return C{versionPriority} of the APIService of a built-in version."""
    by_stability = 15 if _GA.fullmatch(version) else 9 if _BETA.fullmatch(version) else 1
    return VERSION_PRIORITIES.get((group, version), by_stability)


@frozen
class Priority:
    """The priorities of a group among groups, and of a version within its group: the highest comes first."""

    group: int
    version: int


_GA: Final = re.compile(r"v\d+")
_BETA: Final = re.compile(r"v\d+beta\d+")


def _group_order(group: str) -> tuple[int, str]:
    return -GROUP_PRIORITIES[group], group


def _resource_info(kind: Kind, known: list[str], served: Sequence[str], features: FeatureGates) -> ResourceInfo:
    # A version is stored from the release after its introduction, which allows a downgrade by one release.
    since = dict(kind.versions)
    minor = features.emulated[1]
    storable = [version for version in known if since[version] <= features.minimum[1]]
    storage_version = (storable or [version for version in known if since[version] <= minor] or known)[0]
    return ResourceInfo(
        group=kind.group,
        resource=kind.resource,
        kind=kind.kind,
        singular=kind.singular,
        versions=tuple(served),
        known_versions=tuple(known),
        storage_version=storage_version,
        namespaced=kind.namespaced,
        short_names=kind.short_names,
        categories=kind.categories,
        key_prefix=kind.key_prefix,
        storage_group=kind.storage_group,
        subresources=tuple(
            subresource
            for subresource in kind.subresources
            if subresource.since <= minor
            and (not subresource.until or minor <= subresource.until)
            and (not subresource.gate or features.enabled(subresource.gate))
        ),
        stored=kind.stored,
        hash_version=kind.hash_version or storage_version,
    )
