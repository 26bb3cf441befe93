"""
The flag --runtime-config, which enables and disables groups, versions and resources.

See k8s.io/apiserver, C{pkg/server/options/api_enablement.go} and C{pkg/server/resourceconfig/helpers.go}, and
kubernetes/kubernetes, C{pkg/controlplane/apiserver/options}.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from attrs import define, field

from ..api.go.parsebool import parse_bool
from .generic.resourceinfo import Kind
from .kindtable import BETAS_ON_BY_DEFAULT, KINDS


class BadRuntimeConfig(ValueError):
    """The error for a malformed or unknown key or value of --runtime-config; the message is the reference's."""


_CORE: Final = re.compile(r"(api/)?v1(/.*)?", re.S)
_GA: Final = re.compile(r"v[0-9]+")
_BETA: Final = re.compile(r"v[0-9]+beta[0-9]+")
_ALPHA: Final = re.compile(r"v[0-9]+alpha[0-9]+")
_VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")

#: Keys that stand for several versions, in the order in which they are applied.
_LEVELS: Final = {
    "api/all": re.compile(r".*"),
    "api/ga": _GA,
    "api/beta": _BETA,
    "api/alpha": _ALPHA,
}

#: Keys that must be true for priority and fairness; the first given one decides.
_FAIRNESS_KEYS: Final = ("flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all")

#: Versions without served resources that the reference still registers, so that they may be named.
_REGISTERED: Final = frozenset(
    (group, version)
    for group, versions in (
        ("admission.k8s.io", "v1 v1beta1"),
        ("apiextensions.k8s.io", "v1beta1"),
        ("apiregistration.k8s.io", "v1beta1"),
        ("apps", "v1beta1 v1beta2"),
        ("authentication.k8s.io", "v1alpha1 v1beta1"),
        ("authorization.k8s.io", "v1beta1"),
        ("batch", "v1beta1"),
        ("certificates.k8s.io", "v1alpha1 v1beta1"),
        ("discovery.k8s.io", "v1beta1"),
        ("events.k8s.io", "v1beta1"),
        ("extensions", "v1beta1"),
        ("flowcontrol.apiserver.k8s.io", "v1beta1 v1beta2 v1beta3"),
        ("imagepolicy.k8s.io", "v1alpha1"),
        ("networking.k8s.io", "v1beta1"),
        ("node.k8s.io", "v1beta1"),
        ("policy", "v1beta1"),
        ("rbac.authorization.k8s.io", "v1alpha1 v1beta1"),
        ("scheduling.k8s.io", "v1beta1"),
        ("storage.k8s.io", "v1alpha1 v1beta1"),
    )
    for version in versions.split()
)
_GROUPS: Final = frozenset(kind.group for kind in KINDS) | frozenset(group for group, _ in _REGISTERED)


def check_runtime_config(config: Mapping[str, str], *, fairness: bool) -> None:
    """
    Check the format and the groups of keys, which do not depend on the type definitions of a release.

    @param fairness: Whether --enable-priority-and-fairness is true.
    @raise BadRuntimeConfig: The configuration is invalid; the message contains all problems.
    """
    problems = []
    decisive = next((key for key in _FAIRNESS_KEYS if config.get(key) in ("true", "false")), None)
    if fairness and decisive is not None and config[decisive] == "false":
        problems.append(f"--runtime-config={decisive}=false conflicts with --enable-priority-and-fairness=true")
    try:
        _check_keys(_normalized(config))
    except BadRuntimeConfig as error:
        problems.append(str(error))
    if problems:
        raise BadRuntimeConfig(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")


def _normalized(config: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration with older spellings of the core group replaced, and without C{api/legacy}."""
    normalized = {}
    for key, value in config.items():
        if key != "api/legacy":
            normalized["/v1" if _CORE.fullmatch(key) else key] = value
    return normalized


def _check_keys(config: Mapping[str, str]) -> None:
    if dict(config) == {"api/all": "false"}:
        raise BadRuntimeConfig("invalid runtime-config with only api/all=false")
    unknown = set()
    for key in config:
        if key in _LEVELS:
            continue
        parts = key.split("/")
        if len(parts) not in (2, 3):
            raise BadRuntimeConfig(f"runtime-config invalid key {key}")
        if parts[0] not in _GROUPS:
            unknown.add(f"{parts[0]}/{parts[1]}")
    if unknown:
        raise BadRuntimeConfig(f"unknown api groups {','.join(sorted(unknown))}")


@define
class Switches:
    """The enabled versions and resources; a setting of a resource has precedence over one of its version."""

    _versions: dict[tuple[str, str], bool]
    _resources: dict[tuple[str, str, str], bool]
    _explicit: set[tuple[str, ...]] = field(factory=set)

    @classmethod
    def make(
        cls, present: Iterable[tuple[Kind, list[str]]], config: Mapping[str, str], *, newer: bool = False
    ) -> Switches:
        """
        Apply a configuration to the defaults.

        @param present: The kinds, each with the versions that have type definitions in the release.
        @param newer: Whether also to enable the versions of a group, but for alpha versions, that are preferred to an
            enabled one.
        @raise BadRuntimeConfig: A key or value is malformed or unknown.
        """
        versions: dict[tuple[str, str], bool] = {}
        resources: dict[tuple[str, str, str], bool] = {}
        for kind, known in present:
            for version in known:
                versions[kind.group, version] = bool(_GA.fullmatch(version))
                if (kind.group, version, kind.resource) in BETAS_ON_BY_DEFAULT:
                    resources[kind.group, version, kind.resource] = True
        switches = cls(versions, resources)
        normalized = _normalized(config)
        switches._apply(normalized)
        if newer:
            switches._enable_preferred()
            switches._apply_keys(normalized)
        return switches

    def enabled(self, group: str, version: str, resource: str) -> bool:
        """Return whether a resource is served in a version."""
        explicit = self._resources.get((group, version, resource))
        return self._versions[group, version] if explicit is None else explicit

    def is_explicit(self, group: str, version: str, *resource: str) -> bool:
        """Return whether the configuration enables a version, or a resource of it, by its name."""
        return (group, version, *resource) in self._explicit

    def _apply(self, config: Mapping[str, str]) -> None:
        _check_keys(config)
        for level, pattern in _LEVELS.items():
            if level in config:
                value = config[level]
                if value not in ("true", "false"):
                    raise BadRuntimeConfig(f"invalid value {level}={value}")
                for group, version in list(self._versions):
                    if pattern.fullmatch(version):
                        self._switch_version(group, version, value == "true")
        self._apply_keys(config)

    def _apply_keys(self, config: Mapping[str, str]) -> None:
        parsed = [(*key.split("/"), key) for key in config if key not in _LEVELS]
        for group, version, *_, key in parsed:
            if (group, version) not in self._versions and (group, version) not in _REGISTERED:
                group_version = f"{group}/{version}" if group else version
                raise BadRuntimeConfig(f"group version {group_version} that has not been registered")
            try:
                _enabled(config[key])
            except ValueError as error:
                raise BadRuntimeConfig(f"invalid value of {key}: {config[key]}, err: {error}") from None
        for group, version, *resource, key in parsed:
            if not resource:
                self._switch_version(group, version, _enabled(config[key]))
                self._note((group, version), _enabled(config[key]))
        for group, version, *resource, key in parsed:
            if resource:
                if resource[0].lower() != resource[0]:
                    raise BadRuntimeConfig(
                        f"invalid key {key}: group/version/resource and resource is always lowercase plural, "
                        f'not "{resource[0]}"'
                    )
                self._resources[group, version, resource[0]] = _enabled(config[key])
                self._note((group, version, resource[0]), _enabled(config[key]))

    def _note(self, key: tuple[str, ...], on: bool) -> None:
        (self._explicit.add if on else self._explicit.discard)(key)

    def _enable_preferred(self) -> None:
        """Enable the versions, but for alpha versions, that are preferred to an enabled version of their group."""
        for (group, version), on in list(self._versions.items()):
            for key in list(self._versions):
                if on and key[0] == group and _precedes(version, key[1]):
                    self._versions[key] = True
        for (group, version, resource), on in list(self._resources.items()):
            for key in list(self._versions):
                if on and key[0] == group and _precedes(version, key[1]):
                    self._resources[*key, resource] = True

    def _switch_version(self, group: str, version: str, on: bool) -> None:
        self._versions[group, version] = on
        for key in [key for key in self._resources if key[:2] == (group, version)]:
            del self._resources[key]


def version_rank(version: str) -> tuple[int, int, int]:
    """Return the rank of a version: alpha before beta before stable ones, and each by number."""
    match = _VERSION.fullmatch(version)
    assert match is not None, version
    stability = {"alpha": 0, "beta": 1}.get(match[2], 2)
    return stability, int(match[1]), int(match[3] or 0)


def _precedes(version: str, newer: str) -> bool:
    """Return whether C{newer} is preferred to C{version}, which is no alpha version."""
    return not _ALPHA.fullmatch(version) and version_rank(version) < version_rank(newer)


def _enabled(value: str) -> bool:
    """Return the value of a key; a key without a value enables."""
    return not value or parse_bool(value)
