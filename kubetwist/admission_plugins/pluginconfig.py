"""Strict decoding of plugin configurations: checks of kinds, types and unknown fields."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from ..api.admission import AdmissionContext
from ..api.errors import (
    FieldError,
    aggregate,
)
from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject

#: Maximum length of lists in a configuration.
MAX_ITEMS: Final = 10_000


class InvalidConfiguration(ValueError):
    """The configuration of a plugin cannot be used; the text has the reason."""


def release_minor(server: AdmissionContext) -> int:
    """Return the minor version of the release, C{36} for 1.36, for checks that not every release has."""
    return int(server.release.partition(".")[2])


def decode_configuration(
    configuration: JSONValue, kind: str, api_versions: Collection[str], fields: Collection[str]
) -> JSONObject:
    """
    Check the kind and the fields of a configuration and return it.

    @param configuration: The value decoded from JSON or YAML.
    @param kind: The expected kind.
    @param api_versions: The accepted apiVersions.
    @param fields: The allowed fields besides kind and apiVersion.
    @raise InvalidConfiguration: The kind is different or a field is unknown.
    """
    if not isinstance(configuration, dict):
        raise InvalidConfiguration(f"expected {kind}, got {type(configuration).__name__}")
    actual_kind, version = configuration.get("kind"), configuration.get("apiVersion")
    if actual_kind != kind or version not in api_versions:
        raise InvalidConfiguration(f'no kind "{actual_kind}" is registered for version "{version}"; it is {kind}')
    return strict_object(configuration, {"kind", "apiVersion", *fields}, "")


def strict_object(value: JSONValue, fields: Collection[str], path: str) -> JSONObject:
    """
    Return an object that has only these fields; an empty object for null.

    @raise InvalidConfiguration: It is not an object or has other fields.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidConfiguration(f"{path or 'the configuration'}: expected an object")
    unknown = [f'unknown field "{path}{"." if path else ""}{name}"' for name in value if name not in fields]
    if unknown:
        raise InvalidConfiguration(f"strict decoding error: {', '.join(unknown)}")
    return value


def list_field(value: JSONValue, path: str) -> list[JSONValue]:
    """
    Return a list; an empty list for null.

    @raise InvalidConfiguration: It is not a list, or too long.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidConfiguration(f"{path}: expected a list")
    if len(value) > MAX_ITEMS:
        raise InvalidConfiguration(f"{path}: more than {MAX_ITEMS} items")
    return value


def string_field(value: JSONValue, path: str) -> str:
    """
    Return a string; C{""} for null.

    @raise InvalidConfiguration: It is not a string.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidConfiguration(f"{path}: expected a string")
    return value


@contextmanager
def collect_causes() -> Iterator[list[FieldError]]:
    """
    Collect field errors in a C{with} block and raise them at its end.

    @raise InvalidConfiguration: There are errors.
    """
    causes: list[FieldError] = []
    yield causes
    if causes:
        raise InvalidConfiguration(aggregate(causes).removeprefix(": "))
