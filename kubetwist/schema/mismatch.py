"""Values that do not fit their type, in the words of Go's decoders."""

from __future__ import annotations

import json

from ..api.decoding import json_type
from ..api.jsontypes import JSONValue


class UnmarshalTypeError(Exception):
    """
    A value that does not fit, seen from where it stands; L{DecodeError} adds where that is.

    @ivar value: The value.
    @ivar go_type: The Go type that it should have had.
    @ivar kind: The kind of Go type (C{"struct"}, C{"slice"}, C{"int32"}), C{""} if it unmarshals its own JSON.
    @ivar numeric: Whether the value is a number, and of a numeric type, but not one that the type can hold.
    """

    def __init__(self, value: JSONValue, go_type: str, kind: str, numeric: bool = False) -> None:
        super().__init__(go_type)
        self.value = value
        self.go_type = go_type
        self.kind = kind
        self.numeric = numeric

    @property
    def number(self) -> str:
        """Return the number as the message quotes it, C{""} if it quotes none."""
        return format_number(self.value) if self.numeric else ""


class UnmarshalerError(Exception):
    """
    The unmarshaler of a type refuses a value; the text is shown to clients.

    @ivar converted: The text of apimachinery's converter of unstructured objects, if it differs.
    """

    def __init__(self, message: str, converted: str = "") -> None:
        super().__init__(message)
        self.converted = converted or message


class DecodeError(Exception):
    """
    An object that does not fit its Go type; C{str} of it is what C{encoding/json} says about that.

    @ivar converted: What apimachinery's converter of unstructured objects says instead, which is what decodes the
        result of a strategic merge patch.
    @ivar path: The path of the value: keys of objects and indexes of lists.
    """

    def __init__(self, message: str, converted: str, path: tuple[str | int, ...], number: str = "") -> None:
        super().__init__(message)
        self.converted = converted
        self.path = path
        self._number = number

    def as_written(self, document: bytes) -> str:
        """
        Return the message, with a number in it quoted as the document has it: C{1e1} and not C{10.0}.

        @param document: The JSON that the object was read from.
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
    """Return the kind of the Go value that a JSON value becomes when its type is not known."""
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
    """Return a number as a client will most likely have written it."""
    return repr(value)


def json_message(mismatch: UnmarshalTypeError, struct: str, fields: str) -> str:
    """
    Return the message of C{encoding/json}.

    @param struct: The Go struct with the field where the value stands, C{""} when it stands in none.
    @param fields: The names of the fields that lead there.
    """
    described = json_type(mismatch.value)
    if mismatch.numeric:
        described += f" {mismatch.number}"
    target = f"struct field {struct}.{fields}" if fields else "value"
    return f"json: cannot unmarshal {described} into Go {target} of type {mismatch.go_type}"


def converter_message(mismatch: UnmarshalTypeError) -> str:
    """Return the message of apimachinery's converter."""
    kind = mismatch.kind
    if not kind:
        return json_message(mismatch, "", "")
    kind_name = go_kind(mismatch.value)
    if kind == "struct":
        return f"cannot restore struct from: {kind_name}"
    if kind in ("slice", "map"):
        return f"cannot restore {kind} from {kind_name}"
    # Go converts between numbers, and from integers to strings; but the converter allows only what JSON knows.
    if mismatch.numeric or (kind_name == "int64" and kind == "string"):
        return f"cannot convert {kind_name} to {mismatch.go_type}"
    return f"unrecognized type: {kind}"
