"""
Which built-in resources a server serves, and in which versions: the table of kinds, a release and --runtime-config.

The facts are in L{kubetwist.registry.kindtable}.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Container, Iterable, Mapping
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Final

from attrs import define, frozen

from ..api.resource import GroupKind, GroupResource, GroupVersionKind
from .kindtable import (
    BETAS_ON_BY_DEFAULT,
    GROUP_PRIORITIES,
    KINDS,
    VERSION_PRIORITIES,
    Kind,
    SubresourceInfo,
)

__all__ = [
    "KINDS",
    "ResourceInfo",
    "SubresourceInfo",
    "group_priority",
    "groups_in_order",
    "kinds_for",
    "parse_runtime_config",
    "storage_version_hash",
    "version_preference",
    "version_priority",
]


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
    @ivar hash_version: The version that C{storageVersionHash} tells of.
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
    """What discovery tells clients, so that they notice when stored objects change their version."""
    return b64encode(sha256(f"{group}/{version}/{kind}".encode()).digest()[:8]).decode()


def kinds_for(
    definitions_gvks: Container[tuple[str, str, str]],
    minor: int,
    runtime_config: Mapping[str, str] | None = None,
) -> list[ResourceInfo]:
    """
    The resources that a release serves, in the order of C{/apis} and, within a group, of their names.

    @param definitions_gvks: The kinds that the release has types for, as C{(group, version, kind)}.
    @param minor: The release's minor version: 36.
    @param runtime_config: --runtime-config, from L{parse_runtime_config}.
    @raise ValueError: C{runtime_config} names something unknown, or has a bad value.
    """
    present = [
        (kind, [version for version, _ in kind.versions if (kind.group, version, kind.kind) in definitions_gvks])
        for kind in KINDS
    ]
    switches = _Switches.make(present, runtime_config or {})
    infos = []
    for kind, known in present:
        served = [version for version in known if switches.enabled(kind.group, version, kind.resource)]
        if served:
            infos.append(_resource_info(kind, known, served, minor))
    infos.sort(key=lambda info: (*_group_order(info.group), info.resource))
    return infos


def groups_in_order(groups: Iterable[str]) -> list[str]:
    """Each group once, in the order of C{/apis}; the core group, should it be there, behind apiregistration.k8s.io."""
    return sorted(set(groups), key=_group_order)


def group_priority(group: str) -> int:
    """C{groupPriorityMinimum} of the APIService of a built-in group."""
    return GROUP_PRIORITIES[group]


def version_priority(group: str, version: str) -> int:
    """C{versionPriority} of the APIService of a built-in version."""
    by_stability = 15 if _GA.fullmatch(version) else 9 if _BETA.fullmatch(version) else 1
    return VERSION_PRIORITIES.get((group, version), by_stability)


@frozen
class Priority:
    """Where a group stands among groups, and a version within its group: greater comes first."""

    group: int
    version: int


@lru_cache(maxsize=256)
def version_preference(version: str) -> tuple[int, int, int, str]:
    """A sort key that puts the best version first: v2, v1, v1beta2, v1beta1, v1alpha1, and then other names."""
    match = _KUBE_VERSION.fullmatch(version)
    if match is None:
        return 3, 0, 0, version
    major, stability, minor = match.groups()
    return ["", "beta", "alpha"].index(stability or ""), -int(major), -int(minor or 0), ""


def parse_runtime_config(text: str) -> dict[str, str]:
    """Split C{"api/all=false,apps/v1=true"}; a key without a value has the value C{""}, which means true."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {key.strip(): value.strip() for key, _, value in pairs}


_KUBE_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_GA: Final = re.compile(r"v\d+")
_BETA: Final = re.compile(r"v\d+beta\d+")
_ALPHA: Final = re.compile(r"v\d+alpha\d+")

#: The keys of --runtime-config that mean many versions, in the order in which they are applied.
_LEVELS: Final = {
    "api/all": re.compile(r".*"),
    "api/ga": _GA,
    "api/beta": _BETA,
    "api/alpha": _ALPHA,
}

#: What Go's strconv.ParseBool takes.
_BOOLEANS: Final = {
    **dict.fromkeys(("", "1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def _group_order(group: str) -> tuple[int, str]:
    return -GROUP_PRIORITIES[group], group


def _resource_info(kind: Kind, known: list[str], served: list[str], minor: int) -> ResourceInfo:
    # A version is stored only one release after it came, so that one can still go back to the release before.
    since = dict(kind.versions)
    storage_version = next((version for version in known if since[version] < minor), known[0])
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
            if subresource.since <= minor and (not subresource.until or minor <= subresource.until)
        ),
        stored=kind.stored,
        hash_version=kind.hash_version or storage_version,
    )


@define
class _Switches:
    """What is on: a word about a resource counts for more than one about its version."""

    versions: dict[tuple[str, str], bool]
    resources: dict[tuple[str, str, str], bool]

    @classmethod
    def make(cls, present: Iterable[tuple[Kind, list[str]]], config: Mapping[str, str]) -> _Switches:
        versions: dict[tuple[str, str], bool] = {}
        resources: dict[tuple[str, str, str], bool] = {}
        for kind, known in present:
            for version in known:
                versions[kind.group, version] = bool(_GA.fullmatch(version))
                if (kind.group, version, kind.resource) in BETAS_ON_BY_DEFAULT:
                    resources[kind.group, version, kind.resource] = True
        switches = cls(versions, resources)
        switches.apply(config)
        return switches

    def enabled(self, group: str, version: str, resource: str) -> bool:
        chosen = self.resources.get((group, version, resource))
        return self.versions[group, version] if chosen is None else chosen

    def apply(self, config: Mapping[str, str]) -> None:
        if dict(config) == {"api/all": "false"}:
            raise ValueError("invalid runtime-config with only api/all=false")
        self._check_groups(config)
        for level, pattern in _LEVELS.items():
            if level in config:
                value = config[level]
                if value not in ("true", "false"):
                    raise ValueError(f"invalid value {level}={value}")
                for group, version in list(self.versions):
                    if pattern.fullmatch(version):
                        self._switch_version(group, version, value == "true")
        parsed = [(*key.split("/"), key) for key in config if key not in _LEVELS]
        for group, version, *_, key in parsed:
            if (group, version) not in self.versions:
                shown = f"{group}/{version}" if group else version
                raise ValueError(f"group version {shown} that has not been registered")
            if config[key] not in _BOOLEANS:
                raise ValueError(
                    f'invalid value of {key}: {config[key]}, err: strconv.ParseBool: parsing "{config[key]}": '
                    "invalid syntax"
                )
        for group, version, *resource, key in parsed:
            if not resource:
                self._switch_version(group, version, _BOOLEANS[config[key]])
        for group, version, *resource, key in parsed:
            if resource:
                if resource[0].lower() != resource[0]:
                    raise ValueError(
                        f"invalid key {key}: group/version/resource and resource is always lowercase plural, "
                        f'not "{resource[0]}"'
                    )
                self.resources[group, version, resource[0]] = _BOOLEANS[config[key]]

    def _check_groups(self, config: Mapping[str, str]) -> None:
        groups = {group for group, _ in self.versions}
        unknown = set()
        for key in config:
            if key in _LEVELS:
                continue
            parts = key.split("/")
            if len(parts) not in (2, 3):
                raise ValueError(f"runtime-config invalid key {key}")
            if parts[0] not in groups:
                unknown.add(f"{parts[0]}/{parts[1]}")
        if unknown:
            raise ValueError(f"unknown api groups {','.join(sorted(unknown))}")

    def _switch_version(self, group: str, version: str, on: bool) -> None:
        self.versions[group, version] = on
        for key in [key for key in self.resources if key[:2] == (group, version)]:
            del self.resources[key]
