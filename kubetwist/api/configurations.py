"""
Decoding of configuration files of the server: strictly, as Go decodes them into its types.

Absent fields get the zero value of their type, so readers need no check for absence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from attrs import frozen

from .decoding import BodyError, decode_yaml, json_type
from .go.quote import quoted
from .jsontypes import JSONValue
from .resource import JSONObject

#: Maximum size of a file, in bytes.
MAX_FILE_SIZE: Final = 3 * 1024 * 1024


class ConfigurationError(ValueError):
    """A configuration is invalid; the text is the reason."""


@frozen
class Struct:
    """
    The name and fields of a Go struct.

    @ivar optional: Whether it is a pointer: L{None} if absent.
    """

    name: str
    fields: Mapping[str, Kind]
    optional: bool = False


@frozen
class ListOf:
    """A list of C{STRING} or of structs."""

    item: Struct | str


#: The type of a field: a struct, a list, or the name of a scalar in Go.
Kind: TypeAlias = Struct | ListOf | str

STRING: Final = "string"
BOOL: Final = "bool"
#: A string pointer: L{None} if absent.
OPTIONAL_STRING: Final = "*string"
#: A boolean pointer: L{None} if absent.
OPTIONAL_BOOL: Final = "*bool"
#: An integer pointer: L{None} if absent.
OPTIONAL_INT32: Final = "*int32"

_ZERO: Final = {STRING: "", BOOL: False, OPTIONAL_STRING: None, OPTIONAL_BOOL: None, OPTIONAL_INT32: None}


def decode_configuration(
    content: bytes, kind: str, versions: Mapping[str, Struct], scheme: str, *, secret: bool = False
) -> JSONObject:
    """
    Decode a configuration file in YAML or JSON.

    @param content: The content of the file.
    @param kind: The expected kind.
    @param versions: The struct of the kind by C{apiVersion}.
    @param scheme: The file in which the reference registers the kind, for an error message.
    @param secret: Whether error messages must not quote the content.
    @raise ConfigurationError: The content is invalid; the message is the reference's.
    """
    if not content:
        raise ConfigurationError("empty config data")
    if len(content) > MAX_FILE_SIZE:
        raise ConfigurationError(f"file is larger than {MAX_FILE_SIZE} bytes")
    try:
        document = decode_yaml(content)
    except BodyError as error:
        raise ConfigurationError(" ".join(error.as_body_of_object().split())) from None
    value = document.value
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise ConfigurationError(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {json_type(value)} into Go value of"
            ' type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string'
            ' "json:\\"kind,omitempty\\"" }'
        )
    actual_kind, version = value.pop("kind", None), value.pop("apiVersion", None)
    for name, text in (("Kind", actual_kind), ("apiVersion", version)):
        if not text or not isinstance(text, str):
            quote = "REDACTED" if secret else " ".join(content.decode("utf-8", "replace").split())
            raise ConfigurationError(f"Object '{name}' is missing in '{quote}'")
    if actual_kind != kind or version not in versions:
        raise ConfigurationError(
            f"no kind {quoted(actual_kind)} is registered for version {quoted(version)} in scheme {quoted(scheme)}"
        )
    unknown = list(document.duplicates)
    decoded = _struct(value, versions[version], "", unknown)
    if unknown:
        raise ConfigurationError(f"strict decoding error: {', '.join(unknown)}")
    return decoded


def _struct(value: JSONObject, struct: Struct, path: str, unknown: list[str]) -> JSONObject:
    unknown += [f'unknown field "{_below(path, name)}"' for name in value if name not in struct.fields]
    return {
        name: _value(value.get(name), kind, struct, _below(path, name), unknown) for name, kind in struct.fields.items()
    }


def _value(value: JSONValue, kind: Kind, owner: Struct, path: str, unknown: list[str]) -> JSONValue:
    if isinstance(kind, Struct):
        if value is None:
            return None if kind.optional else _struct({}, kind, path, unknown)
        if not isinstance(value, dict):
            raise _mistyped(value, owner, path, f"v1.{kind.name}")
        return _struct(value, kind, path, unknown)
    if isinstance(kind, ListOf):
        if value is None:
            return []
        if not isinstance(value, list):
            inner = kind.item
            raise _mistyped(value, owner, path, f"[]v1.{inner.name}" if isinstance(inner, Struct) else f"[]{inner}")
        return [_value(one, kind.item, owner, f"{path}[{index}]", unknown) for index, one in enumerate(value)]
    if value is None:
        return _ZERO[kind]
    kind = kind.removeprefix("*")
    if kind == "int32":
        if isinstance(value, bool) or not isinstance(value, int):
            raise _mistyped(value, owner, path, kind)
        if not -(1 << 31) <= value < 1 << 31:
            raise ConfigurationError(
                f"json: cannot unmarshal number {value} into Go struct field {owner.name}.{path} of type {kind}"
            )
        return value
    if not isinstance(value, bool if kind == BOOL else str):
        raise _mistyped(value, owner, path, kind)
    return value


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _mistyped(value: JSONValue, owner: Struct, path: str, expected: str) -> ConfigurationError:
    # Go names fields without list indexes.
    field_path = "".join(part.partition("]")[2] if number else part for number, part in enumerate(path.split("[")))
    return ConfigurationError(
        f"json: cannot unmarshal {json_type(value)} into Go struct field {owner.name}.{field_path} of type {expected}"
    )
