"""Bytes from clients to values: JSON and YAML, with the reference's limits, leniencies and error texts."""

from __future__ import annotations

from .documents import (
    ENCODER_DEPTH,
    MAX_DEPTH,
    BodyError,
    Decoded,
    json_type,
)
from .jsondecoding import decode_json

__all__ = ["ENCODER_DEPTH", "MAX_DEPTH", "BodyError", "Decoded", "decode_json", "decode_yaml", "json_type"]


def decode_yaml(data: bytes) -> Decoded:
    """
    Read the first document of a YAML stream.

    @raise BodyError: It is not YAML, nests too deep, or grows too much when its aliases are expanded.
    """
    # Most servers are never sent any, and the library takes its time to be imported.
    from ._yamldecoding import decode_yaml

    return decode_yaml(data)
