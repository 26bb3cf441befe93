"""Formats the values of flags for C{/flagz} and C{/configz}."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.resource import JSONObject
from ..logs.redaction import without_passwords
from .flagtypes import (
    DURATION,
    FEATURE_GATES,
    MODULES,
    Flag,
    format_duration,
)


def flags_of(flags: Sequence[Flag], options: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of all flags as command-line arguments, by name, without the passwords in URLs."""
    return {
        flag.name: without_passwords(format_value(flag, options[flag.name]))
        for flag in sorted(flags, key=lambda one: one.name)
        if flag.name in options
    }


def typed_flags(flags: Sequence[Flag], options: Mapping[str, Any]) -> JSONObject:
    """Return the values of all flags as JSON values, by name, without the passwords in URLs."""
    return {flag.name: typed_value(flag, options[flag.name]) for flag in flags}


def format_value(flag: Flag, value: Any) -> str:
    """Return a value in the format of kube-apiserver: lists in brackets, pairs separated by commas."""
    if isinstance(value, bool):
        return str(value).lower()
    if flag.flag_type.kind is DURATION and isinstance(value, (int, float)):
        return format_duration(value)
    if flag.flag_type.kind is FEATURE_GATES and isinstance(value, Mapping):
        return ",".join(f"{component}:{pair}" for component, pairs in sorted(value.items()) for pair in pairs)
    if isinstance(value, Mapping):
        return ",".join(f"{key}={format_value(flag, one)}" for key, one in sorted(value.items()))
    if flag.flag_type.kind is MODULES:
        return ",".join(f"{pattern}={level}" for pattern, level in value)
    if isinstance(value, (tuple, list)):
        return f"[{','.join(format_value(flag, one) for one in value)}]"
    return "" if value is None else str(value)


def typed_value(flag: Flag, value: Any) -> Any:
    """Return a value as JSON. Durations are strings, as in Kubernetes configuration files."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): typed_value(flag, one) for key, one in value.items()}
    if flag.flag_type.kind is not MODULES and isinstance(value, (tuple, list)):
        return [typed_value(flag, one) for one in value]
    if flag.flag_type.kind is not DURATION and isinstance(value, (int, float)):
        return value
    return without_passwords(format_value(flag, value))
