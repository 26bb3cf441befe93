"""Bytes from clients to values: JSON and YAML, with the reference's limits, leniencies and error texts."""

from __future__ import annotations

from ._documents import ENCODER_DEPTH, MAX_DEPTH, BodyError, Decoded, json_type
from ._jsondecoding import decode_json
from ._yamldecoding import decode_yaml

__all__ = ["ENCODER_DEPTH", "MAX_DEPTH", "BodyError", "Decoded", "decode_json", "decode_yaml", "json_type"]
