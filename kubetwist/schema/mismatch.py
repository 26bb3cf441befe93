"""Errors of decoding, with the messages of Go's decoders."""

from __future__ import annotations

import json

from ..api.decoding import json_type
from ..api.jsontypes import JSONValue


class UnmarshalTypeError(Exception):
    """
    A value has the wrong type (Go's C{json.UnmarshalTypeError}); L{DecodeError} adds the path.

    @ivar value: The value.
    @ivar go_type: The expected Go type.
    @ivar kind: The kind of the Go type (C{"struct"}, C{"slice"}, C{"int32"}); C{""} if the type has an unmarshaler.
    @ivar numeric: Whether the value is a number that a numeric type cannot represent.
    """

    def __init__(self, value: JSONValue, go_type: str, kind: str, numeric: bool = False) -> None:
        super().__init__(go_type)
        self.value = value
        self.go_type = go_type
        self.kind = kind
        self.numeric = numeric

    @property
    def number(self) -> str:
        """Return the number as shown in the message; C{""} if the message has none."""
        return format_number(self.value) if self.numeric else ""


class UnmarshalerError(Exception):
    """
    The unmarshaler of a type rejects a value; C{str} of the exception is the message for the client.

    @ivar converted: The message of apimachinery's converter of unstructured objects.
    """

    def __init__(self, message: str, converted: str = "") -> None:
        super().__init__(message)
        self.converted = converted or message


class DecodeError(Exception):
    """
    An object cannot be decoded into its Go type; C{str} of the exception is the message of C{encoding/json}.

    @ivar converted: The message of apimachinery's converter of unstructured objects, which decodes the result of a
        strategic merge patch.
    @ivar path: The path of the value: keys of objects and indices of lists.
    """

    def __init__(self, message: str, converted: str, path: tuple[str | int, ...], number: str = "") -> None:
        super().__init__(message)
        self.converted = converted
        self.path = path
        self._number = number

    def as_written(self, document: bytes) -> str:
        """
        Return the message with a number as it is written in the document: C{1e1}, not C{10.0}.

        @param document: The JSON from which the object was decoded.
        """
        message = str(self)
        if not self._number:
            return message
        try:
            value = json.loads(document, parse_float=str, parse_int=str)
            for element in self.path:
                value = value[element]
        except (ValueError, LookupError, TypeError, RecursionError):
            # The document is not JSON or has duplicate keys; the number as decoded is used.
            return message
        return message.replace(f"number {self._number} ", f"number {value} ", 1) if isinstance(value, str) else message


def go_kind(value: JSONValue) -> str:
    """Return the kind of the Go value to which a JSON value without a type is decoded."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "slice"
    if isinstance(value, dict):
        return "map"
    return "float64" if isinstance(value, float) else "int64"


def format_number(value: float) -> str:
    """Return a number in its most likely JSON form."""
    return repr(value)


def json_message(error: UnmarshalTypeError, struct: str, fields: str) -> str:
    """
    Return the message of C{encoding/json}.

    @param error: The error.
    @param struct: The Go struct that has the field; C{""} if the value is not in a struct.
    @param fields: The path of the field, with the names of embedded structs.
    """
    described = json_type(error.value)
    if error.numeric:
        described += f" {error.number}"
    target = f"struct field {struct}.{fields}" if fields else "value"
    return f"json: cannot unmarshal {described} into Go {target} of type {error.go_type}"


def converter_message(error: UnmarshalTypeError) -> str:
    """Return the message of apimachinery's converter."""
    kind = error.kind
    if not kind:
        return json_message(error, "", "")
    kind_name = go_kind(error.value)
    if kind == "struct":
        return f"cannot restore struct from: {kind_name}"
    if kind in ("slice", "map"):
        return f"cannot restore {kind} from {kind_name}"
    # Go converts between numbers and from integers to strings, but the converter allows only types of JSON.
    if error.numeric or (kind_name == "int64" and kind == "string"):
        return f"cannot convert {kind_name} to {error.go_type}"
    return f"unrecognized type: {kind}"
