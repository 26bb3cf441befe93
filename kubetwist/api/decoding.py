"""Decoding of request bodies in JSON, YAML and CBOR, with the reference's limits, leniencies and error messages."""

from __future__ import annotations

import re
from typing import Final

from .documents import (
    ENCODER_DEPTH,
    MAX_DEPTH,
    BodyError,
    Decoded,
    json_type,
)
from .jsondecoding import decode_json

__all__ = [
    "ENCODER_DEPTH",
    "MAX_DEPTH",
    "BodyError",
    "Decoded",
    "decode_cbor",
    "decode_json",
    "decode_yaml",
    "json_type",
]


def decode_cbor(data: bytes) -> Decoded:
    """
    Decode a CBOR document.

    @raise BodyError: The document is invalid, nested too deep, or has no counterpart in JSON.
    """
    # Imported lazily: few servers enable CBOR.
    from .cbor import decode_cbor

    return decode_cbor(data)


#: Maximum length of JSON that is not parsed as YAML; the limits of YAML allow all documents of this length.
_MAX_PLAIN_LENGTH: Final = 256 << 10
# JSON that has the same value as YAML. Not matched: keys that are too long for YAML, or on another line than their
# colon; characters beyond ASCII, some of which are line breaks in YAML; floats and large integers; other escapes.
_is_plain_json = re.compile(
    rb"""(?:
      [{}\[\],:\ \n]++
    | "[\ !\#-\[\]-~]{0,900}+"\ {0,100}+:
    | "(?:[\ !\#-\[\]-~]++|\\(?:["\\nt]|u00[2-7][0-9a-fA-F]))*+"(?![\ \n]*+:)
    | true | false | null
    | (?:0|-?[1-9][0-9]{0,17}+)(?![0-9.eE])
    )++""",
    re.VERBOSE,
).fullmatch


def decode_yaml(data: bytes, max_nodes: int | None = None) -> Decoded:
    """
    Decode the first document of a YAML stream.

    Most clients send JSON, of which YAML is a superset. A parser of JSON takes a tenth of the time.

    @param max_nodes: Maximum number of values and keys with expanded aliases; L{None} for the limit of request bodies.
    @raise BodyError: The stream is not YAML, is nested too deep, or exceeds the limits with expanded aliases.
    """
    if len(data) <= _MAX_PLAIN_LENGTH and _is_plain_json(data):
        try:
            decoded = decode_json(data)
        except BodyError:
            # The parser of YAML has another message.
            pass
        else:
            # A duplicate key has another message, too.
            if not decoded.duplicates:
                decoded.by_map = True
                return decoded
    # Imported lazily: few servers receive YAML, and the import is slow.
    from ._yamldecoding import MAX_NODES, decode_yaml

    return decode_yaml(data, MAX_NODES if max_nodes is None else max_nodes)
