"""Tests for L{kubetwist.api.documents}."""

from __future__ import annotations

from kubetwist.api.decoding import MAX_DEPTH, decode_json
from tests.api.jsoncase import JSONTestCase


def nested(depth: int, within: bytes = b"") -> bytes:
    """Return nested lists around a value."""
    return b"[" * depth + within + b"]" * depth


class DepthTests(JSONTestCase):
    """Tests for the depth of documents."""

    def test_depth(self) -> None:
        """Documents may nest as deep as can be encoded within other values, and no deeper."""
        self.assertEqual(decode_json(nested(MAX_DEPTH)).duplicates, [])
        decode_json(nested(MAX_DEPTH, b'"\xff"'))
        decode_json(nested(MAX_DEPTH - 1, b'{"a":1,"a":2}'))
        for depth in (MAX_DEPTH + 1, 1000, 1025, 100_000):
            for within in (b"", b'"\xff"', b'{"a":1,"a":2}'):
                self.assert_rejected(nested(depth, within), "exceeded max depth")
        self.assert_rejected(b'{"a":' * 100_000, "exceeded max depth")
