"""C{PodSecurityConfiguration}: what holds where no label says otherwise, and for whom nothing holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from attrs import Factory, frozen

from ...api.errors import FieldError, duplicate, invalid
from ...api.jsontypes import JSONValue
from ...api.names import validate_dns1123_label, validate_dns1123_subdomain
from ...api.resource import JSONObject
from ..pluginconfig import (
    collected,
    items,
    of_kind,
    only,
    text,
)
from .levels import LATEST, MODES, PRIVILEGED, LevelVersion, Policy, level_problem, parse_version

_API_VERSIONS: Final = tuple(f"pod-security.admission.config.k8s.io/{one}" for one in ("v1", "v1beta1", "v1alpha1"))


@frozen
class Configuration:
    """
    The configuration of the plugin.

    @ivar defaults: The policy of namespaces without labels.
    @ivar usernames: Exempt users, who may create any pod.
    @ivar namespaces: Exempt namespaces, in which any pod may be created.
    @ivar runtime_classes: Exempt runtime classes, whose pods are not checked.
    """

    defaults: Policy = Factory(Policy)
    usernames: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    runtime_classes: frozenset[str] = frozenset()


def load(configuration: JSONValue) -> Configuration:
    """
    Read the configuration.

    @param configuration: As decoded; L{None} for none.
    @raise InvalidConfiguration: It cannot be used.
    """
    if configuration is None:
        return Configuration()
    level_version = of_kind(configuration, "PodSecurityConfiguration", _API_VERSIONS, ("defaults", "exemptions"))
    fields = [field for mode in MODES for field in (mode, f"{mode}-version")]
    defaults = only(level_version.get("defaults"), fields, "defaults")
    exempt = only(level_version.get("exemptions"), ("usernames", "namespaces", "runtimeClasses"), "exemptions")
    with collected() as causes:
        levels = {mode: _level(defaults, mode, causes) for mode in ("enforce", "warn", "audit")}
        namespaces = _names(exempt, "namespaces", validate_dns1123_label, causes)
        classes = _names(exempt, "runtimeClasses", validate_dns1123_subdomain, causes)
        usernames = _names(exempt, "usernames", _username_problems, causes)
    return Configuration(Policy(**levels), usernames, namespaces, classes)


def _level(defaults: JSONObject, mode: str, causes: list[FieldError]) -> LevelVersion:
    path = f"defaults.{mode}"
    level = text(defaults.get(mode), path) or PRIVILEGED
    problem = level_problem(level)
    if problem:
        causes.append(invalid(path, level, problem))
    version, minor = text(defaults.get(f"{mode}-version"), f"{path}-version") or LATEST, None
    try:
        minor = parse_version(version)
    except ValueError as error:
        causes.append(invalid(f"{path}-version", version, str(error)))
    return LevelVersion(level, minor)


def _names(
    exempt: JSONObject, field: str, problems_of: Callable[[str], Sequence[str]], causes: list[FieldError]
) -> frozenset[str]:
    names: set[str] = set()
    for index, value in enumerate(items(exempt.get(field), f"exemptions.{field}")):
        path = f"exemptions.{field}[{index}]"
        name = text(value, path)
        problems = problems_of(name)
        if problems:
            causes.append(invalid(path, name, ", ".join(problems)))
        elif name in names:
            causes.append(duplicate(path, name))
        names.add(name)
    return frozenset(names)


def _username_problems(name: str) -> Sequence[str]:
    return () if name else ("username must not be empty",)
