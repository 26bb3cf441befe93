"""
The versions of built-in resources that a server serves when it emulates an older release.

@see: k8s.io/apiserver, C{pkg/server/deleted_kinds.go}: C{removeUnintroducedKinds}; and
    C{pkg/server/resourceconfig/helpers.go}: C{EmulationForwardCompatibleResourceConfig}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from ..api.featuregates import FeatureGates, Release, format_release
from .generic.resourceinfo import Kind
from .runtimeconfig import BadRuntimeConfig, Switches, version_rank

#: A kind with its enabled versions.
Enabled = tuple[Kind, Sequence[str]]


@frozen
class ForwardCompatibility:
    """
    Which APIs are served although they are newer than the emulated release.

    @ivar versions: Versions of a resource, but for alpha versions, if an older version of it is served
        (C{--emulation-forward-compatible}).
    @ivar explicit: Those that C{--runtime-config} names (C{--runtime-config-emulation-forward-compatible}).
    """

    versions: bool = False
    explicit: bool = False


def introduced_kinds(
    enabled: Iterable[Enabled], features: FeatureGates, switches: Switches, forward: ForwardCompatibility
) -> Iterator[Enabled]:
    """
    Return the kinds with the versions that the emulated release has, and those for which C{forward} makes exceptions.

    @raise BadRuntimeConfig: --runtime-config names a resource, or a version without a resource, that is newer.
    """
    removed: set[tuple[str, str]] = set()
    kept: set[tuple[str, str]] = set()
    for kind, versions in enabled:
        served = _introduced(kind, versions, features, switches, forward)
        kept.update((kind.group, version) for version in served)
        removed.update((kind.group, version) for version in versions if version not in served)
        yield kind, [version for version in versions if version in served]
    for group, version in sorted(removed - kept):
        if switches.is_explicit(group, version):
            raise BadRuntimeConfig(
                f"cannot enable version {group}/{version} in runtime-config because all the resources have been"
                f" introduced after the current version {format_release(features.emulated)}. Consider setting"
                " --runtime-config-emulation-forward-compatible=true"
            )


def _introduced(
    kind: Kind, versions: Sequence[str], features: FeatureGates, switches: Switches, forward: ForwardCompatibility
) -> set[str]:
    served: set[str] = set()
    since = dict(kind.versions)
    older_served = False
    # From the least preferred version on.
    for version in sorted(versions, key=version_rank):
        introduced = features.release[0], since[version]
        explicit_version = switches.is_explicit(kind.group, version)
        explicit = switches.is_explicit(kind.group, version, kind.resource)
        if (
            introduced <= features.emulated
            or (forward.versions and older_served)
            or (forward.explicit and (explicit or explicit_version))
        ):
            served.add(version)
            older_served = older_served or "alpha" not in version
        elif explicit:
            raise BadRuntimeConfig(_newer_resource(kind, version, introduced, features.emulated))
    return served


def _newer_resource(kind: Kind, version: str, introduced: Release, emulated: Release) -> str:
    return (
        f"cannot enable resource {kind.group}/{version}, Resource={kind.resource} in runtime-config because it is"
        f" introduced at {format_release(introduced)} after the current version {format_release(emulated)}. Consider"
        " setting --runtime-config-emulation-forward-compatible=true"
    )
