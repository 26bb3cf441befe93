"""The types that are one JSON value, though messages in protobuf: times, quantities, JSON within protobuf."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Final

from ...api.decoding import (
    BodyError,
    decode_json,
)
from ...api.jsontypes import JSONValue
from .messages import (
    MESSAGE,
    MESSAGES,
    NUMBER,
    TEXT,
    TEXTS,
    VALUE,
    Message,
    Step,
    ValueReader,
)
from .wire import (
    WireError,
    int32,
    int64,
)


def octets(data: bytes, start: int, end: int, depth: int) -> str:
    """Decode bytes, which are base64 in JSON."""
    return b64encode(data[start:end]).decode("ascii")


def _slice(data: bytes, start: int, end: int, depth: int) -> bytes:
    return data[start:end]


def _message(name: str, *steps: Step) -> Message:
    return Message(name, lambda: steps)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_timestamp: Final = _message("Timestamp", Step(1, NUMBER, "seconds", int64), Step(2, NUMBER, "nanos", int32))


def time(data: bytes, start: int, end: int, depth: int) -> str | None:
    """Return a time of whole seconds; without any content it is the zero time."""
    if start == end:
        return None
    return f"{_date(_timestamp.value(data, start, end, depth).get('seconds', 0))}Z"


def micro_time(data: bytes, start: int, end: int, depth: int) -> str | None:
    """Return a time of microseconds; without any content it is the zero time."""
    if start == end:
        return None
    found = _timestamp.value(data, start, end, depth)
    nanoseconds = found.get("nanos", 0)
    # Go truncates fractions of a microsecond towards zero.
    microseconds = abs(nanoseconds) // 1000 * (1 if nanoseconds >= 0 else -1)
    carried, microseconds = divmod(microseconds, 1_000_000)
    return f"{_date(found.get('seconds', 0) + carried)}.{microseconds:06d}Z"


def _date(seconds: int) -> str:
    try:
        return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    except OverflowError:
        raise WireError("Time.MarshalJSON: year outside of range [0,9999]") from None


_quantity: Final = _message("Quantity", Step(1, TEXT, "string_"))


def quantity(data: bytes, start: int, end: int, depth: int) -> str:
    """Return a quantity as it was written."""
    text: str = _quantity.value(data, start, end, depth).get("string_", "0")
    return text


_int_or_string: Final = _message(
    "IntOrString", Step(1, NUMBER, "type", int64), Step(2, NUMBER, "intVal", int32), Step(3, TEXT, "strVal")
)


def int_or_string(data: bytes, start: int, end: int, depth: int) -> JSONValue:
    """Return a number or a string, as the type field of the message selects."""
    found = _int_or_string.value(data, start, end, depth)
    which = found.get("type", 0)
    if which not in (0, 1):
        raise WireError("impossible IntOrString.Type")
    return found.get("strVal", "") if which else found.get("intVal", 0)


_raw: Final = _message("RawExtension", Step(1, VALUE, "raw", _slice))


def raw_json(data: bytes, start: int, end: int, depth: int) -> JSONValue:
    """Return a message that holds JSON."""
    raw = _raw.value(data, start, end, depth).get("raw")
    if not raw:
        return None
    try:
        return decode_json(raw).value
    except BodyError as error:
        raise WireError(error.message) from None


_list: Final = _message("list", Step(1, TEXTS, "items"))


def text_list(data: bytes, start: int, end: int, depth: int) -> JSONValue:
    """Return a message that holds a list of strings, used where protobuf allows no lists, as in maps."""
    return _list.value(data, start, end, depth).get("items", [])


def schema_or_list(schema: Message) -> ValueReader:
    """Return a JSON schema, or a list of them."""
    either = _message("JSONSchemaPropsOrArray", Step(1, MESSAGE, "schema", schema), Step(2, MESSAGES, "items", schema))

    def read(data: bytes, start: int, end: int, depth: int) -> JSONValue:
        found = either.value(data, start, end, depth)
        return found.get("items") or found.get("schema")

    return read


def schema_or_bool(schema: Message) -> ValueReader:
    """Return a JSON schema, or whether anything is allowed."""
    either = _message("JSONSchemaPropsOrBool", Step(1, NUMBER, "allows", bool), Step(2, MESSAGE, "schema", schema))

    def read(data: bytes, start: int, end: int, depth: int) -> JSONValue:
        found = either.value(data, start, end, depth)
        return found["schema"] if "schema" in found else found.get("allows", False)

    return read


def schema_or_texts(schema: Message) -> ValueReader:
    """Return a JSON schema, or a list of names."""
    either = _message("JSONSchemaPropsOrStringArray", Step(1, MESSAGE, "schema", schema), Step(2, TEXTS, "property"))

    def read(data: bytes, start: int, end: int, depth: int) -> JSONValue:
        found = either.value(data, start, end, depth)
        return found.get("property") or found.get("schema")

    return read


#: Definitions that have a reader of their own, by the last part of their name.
LEAVES: Final[dict[str, ValueReader]] = {
    "Time": time,
    "MicroTime": micro_time,
    "Quantity": quantity,
    "IntOrString": int_or_string,
    "RawExtension": raw_json,
    "FieldsV1": raw_json,
    "JSON": raw_json,
}
SCHEMA_LEAVES: Final = {
    "JSONSchemaPropsOrArray": schema_or_list,
    "JSONSchemaPropsOrBool": schema_or_bool,
    "JSONSchemaPropsOrStringArray": schema_or_texts,
}

_type_meta: Final = _message("TypeMeta", Step(1, TEXT, "apiVersion"), Step(2, TEXT, "kind"))

#: The fields of the envelope of every object; the content encoding is ignored.
unknown: Final = _message(
    "Unknown",
    Step(1, MESSAGE, "typeMeta", _type_meta),
    Step(2, VALUE, "raw", _slice),
    Step(3, TEXT, "contentEncoding"),
    Step(4, TEXT, "contentType"),
)
