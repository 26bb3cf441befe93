"""
CBOR with the rules of the reference (apimachinery, C{pkg/runtime/serializer/cbor}).

cbor2 parses and writes data items. This module converts between its values and JSON values: strings are written as byte
strings, and may be read from text or byte strings; tags do not change their content, except for times and for byte
strings that become base64 or hexadecimal texts; values without a counterpart in JSON are rejected. Values of cbor2 that
such tags would create, such as shared ones, never occur.
"""

from __future__ import annotations

import math
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, Final

import cbor2

from .documents import CBOR_MAGIC, MAX_DEPTH, BodyError, Decoded
from .jsontypes import JSONValue

_MIN_INT: Final = -(1 << 63)
_MAX_INT: Final = (1 << 63) - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def encode_cbor(value: JSONValue) -> bytes:
    """Encode a JSON value as a document."""
    return CBOR_MAGIC + encode_item(value)


def encode_item(value: JSONValue) -> bytes:
    """Encode a JSON value as a data item: with sorted keys, and with numbers in the shortest form."""
    return cbor2.dumps(_with_byte_strings(value), canonical=True)


def _with_byte_strings(value: JSONValue) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict):
        return {key.encode(): _with_byte_strings(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_byte_strings(item) for item in value]
    return value


def base64_later(content: bytes) -> cbor2.CBORTag:
    """Return the value to encode for bytes that are base64 in JSON."""
    return cbor2.CBORTag(22, content)


def collection_head(major: int, size: int) -> bytes:
    """
    Encode the head of an array or a map.

    @param major: The major type: L{ARRAY} or L{MAP}.
    @param size: The number of its items or entries.
    """
    if size < 24:
        return bytes((major | size,))
    for info, octets in ((24, 1), (25, 2), (26, 4)):
        if size < 1 << 8 * octets:
            return bytes((major | info,)) + size.to_bytes(octets, "big")
    return bytes((major | 27,)) + size.to_bytes(8, "big")


ARRAY: Final = 0x80
MAP: Final = 0xA0


def split_map(item: bytes) -> tuple[int, bytes]:
    """Return the number of entries of an encoded map, and its entries."""
    info = item[0] & 31
    if info < 24:
        return info, item[1:]
    end = 1 + (1 << (info - 24))
    return int.from_bytes(item[1:end], "big"), item[end:]


def decode_cbor(data: bytes) -> Decoded:
    """
    Decode a document.

    @raise BodyError: The document is invalid, nested too deep, or has no counterpart in JSON.
    """
    try:
        return Decoded(_decode(data))
    except BodyError as error:
        raise BodyError(f"cbor: {error}", json=False) from None


def _decode(data: bytes) -> JSONValue:
    if not data:
        raise BodyError("EOF")
    stream = BytesIO(data)
    try:
        value = cbor2.CBORDecoder(
            stream,
            semantic_decoders=_TAGS,
            tag_hook=_content_of_tag,
            max_depth=MAX_DEPTH,
            allow_duplicate_keys=False,
            strict_hashable_types=True,
        ).decode()
    except cbor2.CBORDecodeEOF:
        raise BodyError("unexpected EOF") from None
    except cbor2.CBORDecodeError as error:
        raise _reason(error) from None
    if rest := stream.read():
        raise BodyError(f"{len(rest)} bytes of extraneous data starting at index {len(data) - len(rest)}")
    return _json_value(value, _text)


def _reason(error: BaseException) -> BodyError:
    """Return the error for a document that cbor2 rejects."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BodyError):
            return cause
        if isinstance(cause, UnicodeDecodeError):
            return BodyError("invalid UTF-8 string")
        cause = cause.__cause__
    return BodyError(str(error))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _json_value(value: Any, convert: Callable[[bytes], str]) -> JSONValue:
    """
    Return a decoded value as a JSON value; lists are changed in place.

    @param convert: Converts byte strings, except for keys.
    @raise BodyError: The value has no counterpart in JSON.
    """
    if isinstance(value, bytes):
        return convert(value)
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        if not _MIN_INT <= value <= _MAX_INT:
            raise BodyError(f"cannot unmarshal {value} into Go value of type int64 (overflow)")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            kind = "NaN" if math.isnan(value) else "infinity"
            raise BodyError(f"data item of cbor type primitives is not accepted by protocol: floating-point {kind}")
        return value
    # Within unknown tags cbor2 creates immutable collections.
    if isinstance(value, (list, tuple)):
        items = value if isinstance(value, list) else list(value)
        for index, item in enumerate(items):
            items[index] = _json_value(item, convert)
        return items
    if isinstance(value, Mapping):
        converted = {
            _text(key) if isinstance(key, bytes) else key: _json_value(item, convert) for key, item in value.items()
        }
        if len(converted) < len(value):
            raise BodyError("found duplicate map key")
        return converted
    raise BodyError("data item of cbor type primitives is not accepted by protocol: simple value")


def _content_of_tag(tag: cbor2.CBORTag, immutable: bool) -> Any:
    return tag.value


def _content(value: Any, immutable: bool) -> Any:
    """Return the content of a tag that changes nothing."""
    return value


def _bignum(value: Any, immutable: bool) -> Any:
    raise BodyError("data item of cbor type tag is not accepted by protocol: bignum")


def _later_encoding(convert: Callable[[bytes], str]) -> Callable[[Any, bool], Any]:
    """Return a decoder of a tag for byte strings that are a text in JSON."""

    def decode(value: Any, immutable: bool) -> Any:
        return _json_value(value, convert)

    return decode


def _time_text(value: Any, immutable: bool) -> str:
    text = _text(value) if isinstance(value, bytes) else value
    try:
        if isinstance(text, str) and len(text) > 10 and text[10] == "T" and datetime.fromisoformat(text).tzinfo:
            return text
    except ValueError:
        pass
    raise BodyError("cannot set the content of tag 0 for time.Time: not an RFC 3339 time")


def _epoch_time(value: Any, immutable: bool) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            time = _EPOCH + timedelta(seconds=value)
        except (OverflowError, ValueError):
            pass
        else:
            return time.isoformat().replace("+00:00", "Z")
    raise BodyError("cannot set the content of tag 1 for time.Time: not a time")


#: Decoders of tags; those that cbor2 knows must be listed, since it would create other values.
_TAGS: Final[dict[int, Callable[[Any, bool], Any]]] = {
    **dict.fromkeys((4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43000, 55799), _content),
    0: _time_text,
    1: _epoch_time,
    2: _bignum,
    3: _bignum,
    21: _later_encoding(lambda value: urlsafe_b64encode(value).rstrip(b"=").decode()),
    22: _later_encoding(lambda value: b64encode(value).decode()),
    23: _later_encoding(bytes.hex),
}
