"""Decoding of request bodies in JSON, YAML and CBOR, with the reference's limits, leniencies and error messages."""

from __future__ import annotations

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


def decode_yaml(data: bytes) -> Decoded:
    """
    Decode the first document of a YAML stream.

    @raise BodyError: The stream is not YAML, is nested too deep, or exceeds the limits with expanded aliases.
    """
    # Imported lazily: few servers receive YAML, and the import is slow.
    from ._yamldecoding import decode_yaml

    return decode_yaml(data)
