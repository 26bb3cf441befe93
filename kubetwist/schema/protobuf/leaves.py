"""Decoders of messages with a custom JSON form: times, quantities, and JSON within protobuf."""

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
    FieldDescriptor,
    MessageDecoder,
    ValueDecoder,
)
from .wire import (
    WireError,
    int32,
    int64,
)


def decode_bytes(data: bytes, start: int, end: int, depth: int) -> str:
    """
    Decode bytes, which are base64 in JSON.

    @param data: The data.
    @param start: The start of the value.
    @param end: The end of the value.
    @param depth: The nesting depth of messages.
    """
    return b64encode(data[start:end]).decode("ascii")


def _slice(data: bytes, start: int, end: int, depth: int) -> bytes:
    return data[start:end]


def _message(name: str, *descriptors: FieldDescriptor) -> MessageDecoder:
    return MessageDecoder(name, lambda: descriptors)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_timestamp: Final = _message(
    "Timestamp", FieldDescriptor(1, NUMBER, "seconds", int64), FieldDescriptor(2, NUMBER, "nanos", int32)
)


def decode_time(data: bytes, start: int, end: int, depth: int) -> str | None:
    """
    Decode a time with a resolution of seconds; the empty message is the zero time.

    @param data: The data.
    @param start: The start of the message.
    @param end: The end of the message.
    @param depth: The nesting depth of messages.
    """
    if start == end:
        return None
    return f"{_date(_timestamp.decode(data, start, end, depth).get('seconds', 0))}Z"


def decode_micro_time(data: bytes, start: int, end: int, depth: int) -> str | None:
    """
    Decode a time with a resolution of microseconds; the empty message is the zero time.

    @param data: The data.
    @param start: The start of the message.
    @param end: The end of the message.
    @param depth: The nesting depth of messages.
    """
    if start == end:
        return None
    decoded = _timestamp.decode(data, start, end, depth)
    nanoseconds = decoded.get("nanos", 0)
    # Go truncates fractions of a microsecond towards zero.
    microseconds = abs(nanoseconds) // 1000 * (1 if nanoseconds >= 0 else -1)
    carry, microseconds = divmod(microseconds, 1_000_000)
    return f"{_date(decoded.get('seconds', 0) + carry)}.{microseconds:06d}Z"


def _date(seconds: int) -> str:
    try:
        return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    except OverflowError:
        raise WireError("Time.MarshalJSON: year outside of range [0,9999]") from None


_quantity: Final = _message("Quantity", FieldDescriptor(1, TEXT, "string_"))


def decode_quantity(data: bytes, start: int, end: int, depth: int) -> str:
    """
    Decode a quantity.

    @param data: The data.
    @param start: The start of the message.
    @param end: The end of the message.
    @param depth: The nesting depth of messages.
    """
    text: str = _quantity.decode(data, start, end, depth).get("string_", "0")
    return text


_int_or_string: Final = _message(
    "IntOrString",
    FieldDescriptor(1, NUMBER, "type", int64),
    FieldDescriptor(2, NUMBER, "intVal", int32),
    FieldDescriptor(3, TEXT, "strVal"),
)


def decode_int_or_string(data: bytes, start: int, end: int, depth: int) -> JSONValue:
    """
    Decode an C{IntOrString}.

    @param data: The data.
    @param start: The start of the message.
    @param end: The end of the message.
    @param depth: The nesting depth of messages.
    """
    decoded = _int_or_string.decode(data, start, end, depth)
    int_or_string_type = decoded.get("type", 0)
    if int_or_string_type not in (0, 1):
        raise WireError("impossible IntOrString.Type")
    return decoded.get("strVal", "") if int_or_string_type else decoded.get("intVal", 0)


_raw_extension: Final = _message("RawExtension", FieldDescriptor(1, VALUE, "raw", _slice))


def decode_raw_json(data: bytes, start: int, end: int, depth: int) -> JSONValue:
    """
    Decode a message that contains JSON.

    @param data: The data.
    @param start: The start of the message.
    @param end: The end of the message.
    @param depth: The nesting depth of messages.
    """
    raw = _raw_extension.decode(data, start, end, depth).get("raw")
    if not raw:
        return None
    try:
        return decode_json(raw).value
    except BodyError as error:
        raise WireError(error.message) from None


_string_list: Final = _message("list", FieldDescriptor(1, TEXTS, "items"))


def decode_string_list(data: bytes, start: int, end: int, depth: int) -> JSONValue:
    """
    Decode a message that contains a list of strings, as in map values, where protobuf allows no lists.

    @param data: The data.
    @param start: The start of the message.
    @param end: The end of the message.
    @param depth: The nesting depth of messages.
    """
    return _string_list.decode(data, start, end, depth).get("items", [])


def schema_or_list_decoder(schema: MessageDecoder) -> ValueDecoder:
    """Return a decoder of a JSON schema or a list of JSON schemas."""
    message = _message(
        "JSONSchemaPropsOrArray",
        FieldDescriptor(1, MESSAGE, "schema", schema),
        FieldDescriptor(2, MESSAGES, "items", schema),
    )

    def read(data: bytes, start: int, end: int, depth: int) -> JSONValue:
        decoded = message.decode(data, start, end, depth)
        return decoded.get("items") or decoded.get("schema")

    return read


def schema_or_bool_decoder(schema: MessageDecoder) -> ValueDecoder:
    """Return a decoder of a JSON schema or a boolean."""
    message = _message(
        "JSONSchemaPropsOrBool",
        FieldDescriptor(1, NUMBER, "allows", bool),
        FieldDescriptor(2, MESSAGE, "schema", schema),
    )

    def read(data: bytes, start: int, end: int, depth: int) -> JSONValue:
        decoded = message.decode(data, start, end, depth)
        return decoded["schema"] if "schema" in decoded else decoded.get("allows", False)

    return read


def schema_or_string_list_decoder(schema: MessageDecoder) -> ValueDecoder:
    """Return a decoder of a JSON schema or a list of strings."""
    message = _message(
        "JSONSchemaPropsOrStringArray",
        FieldDescriptor(1, MESSAGE, "schema", schema),
        FieldDescriptor(2, TEXTS, "property"),
    )

    def read(data: bytes, start: int, end: int, depth: int) -> JSONValue:
        decoded = message.decode(data, start, end, depth)
        return decoded.get("property") or decoded.get("schema")

    return read


#: Decoders of definitions with a custom JSON form, by the last part of the name.
LEAVES: Final[dict[str, ValueDecoder]] = {
    "Time": decode_time,
    "MicroTime": decode_micro_time,
    "Quantity": decode_quantity,
    "IntOrString": decode_int_or_string,
    "RawExtension": decode_raw_json,
    "FieldsV1": decode_raw_json,
    "JSON": decode_raw_json,
}
SCHEMA_LEAVES: Final = {
    "JSONSchemaPropsOrArray": schema_or_list_decoder,
    "JSONSchemaPropsOrBool": schema_or_bool_decoder,
    "JSONSchemaPropsOrStringArray": schema_or_string_list_decoder,
}

_type_meta: Final = _message("TypeMeta", FieldDescriptor(1, TEXT, "apiVersion"), FieldDescriptor(2, TEXT, "kind"))

#: The envelope of every object, runtime.Unknown; the content encoding is ignored.
unknown_message: Final = _message(
    "Unknown",
    FieldDescriptor(1, MESSAGE, "typeMeta", _type_meta),
    FieldDescriptor(2, VALUE, "raw", _slice),
    FieldDescriptor(3, TEXT, "contentEncoding"),
    FieldDescriptor(4, TEXT, "contentType"),
)
