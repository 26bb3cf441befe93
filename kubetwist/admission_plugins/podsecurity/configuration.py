"""The configuration C{PodSecurityConfiguration}: the policy of namespaces without labels, and exemptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from attrs import Factory, frozen

from ...api.errors import FieldError, duplicate, invalid
from ...api.jsontypes import JSONValue
from ...api.names import validate_dns1123_label, validate_dns1123_subdomain
from ...api.resource import JSONObject
from ..pluginconfig import (
    collect_causes,
    decode_configuration,
    list_field,
    strict_object,
    string_field,
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

    @param configuration: The decoded configuration; L{None} for none.
    @raise InvalidConfiguration: The configuration is invalid.
    """
    if configuration is None:
        return Configuration()
    decoded = decode_configuration(configuration, "PodSecurityConfiguration", _API_VERSIONS, ("defaults", "exemptions"))
    fields = [field for mode in MODES for field in (mode, f"{mode}-version")]
    defaults = strict_object(decoded.get("defaults"), fields, "defaults")
    exempt = strict_object(decoded.get("exemptions"), ("usernames", "namespaces", "runtimeClasses"), "exemptions")
    with collect_causes() as causes:
        levels = {mode: _level_version(defaults, mode, causes) for mode in ("enforce", "warn", "audit")}
        namespaces = _names(exempt, "namespaces", validate_dns1123_label, causes)
        classes = _names(exempt, "runtimeClasses", validate_dns1123_subdomain, causes)
        usernames = _names(exempt, "usernames", _validate_username, causes)
    return Configuration(Policy(**levels), usernames, namespaces, classes)


def _level_version(defaults: JSONObject, mode: str, causes: list[FieldError]) -> LevelVersion:
    path = f"defaults.{mode}"
    level = string_field(defaults.get(mode), path) or PRIVILEGED
    problem = level_problem(level)
    if problem:
        causes.append(invalid(path, level, problem))
    version, minor = string_field(defaults.get(f"{mode}-version"), f"{path}-version") or LATEST, None
    try:
        minor = parse_version(version)
    except ValueError as error:
        causes.append(invalid(f"{path}-version", version, str(error)))
    return LevelVersion(level, minor)


def _names(
    exempt: JSONObject, field: str, validate_name: Callable[[str], Sequence[str]], causes: list[FieldError]
) -> frozenset[str]:
    names: set[str] = set()
    for index, value in enumerate(list_field(exempt.get(field), f"exemptions.{field}")):
        path = f"exemptions.{field}[{index}]"
        name = string_field(value, path)
        problems = validate_name(name)
        if problems:
            causes.append(invalid(path, name, ", ".join(problems)))
        elif name in names:
            causes.append(duplicate(path, name))
        names.add(name)
    return frozenset(names)


def _validate_username(name: str) -> Sequence[str]:
    return () if name else ("username must not be empty",)
