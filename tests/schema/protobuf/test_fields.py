"""Tests for L{kubetwist.schema.protobuf.fields}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.protobuf.fields import Fields, count, fields, octets, pairs
from kubetwist.schema.protobuf.wire import WireError

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)


class FieldTests(SynchronousTestCase):
    """Tests for L{kubetwist.schema.protobuf.fields}."""

    @given(st.binary(max_size=200), st.integers(0, (1 << 63) - 1), st.dictionaries(TEXTS, st.binary(max_size=5)))
    def test_round_trip(self, data: bytes, number: int, values: dict[str, bytes]) -> None:
        """Encoded fields are decoded to the same values."""
        entries = tuple(sorted(values.items()))
        message = Fields(octets(1, data) + count(2, number) + pairs(3, entries))
        self.assertEqual((message.octets(1), message.number(2), message.annotations(3)), (data, number, entries))

    def test_left_out(self) -> None:
        """Empty values are not encoded, and missing fields are empty."""
        self.assertEqual(octets(1, b"") + count(2, 0), b"")
        message = Fields(b"")
        self.assertEqual((message.octets(1), message.text(1)), (b"", ""))
        self.assertEqual((message.number(2), message.annotations(3)), (0, ()))

    def test_last_counts(self) -> None:
        """Of fields with the same number, and entries with the same key, the last one counts."""
        message = Fields(octets(1, b"a") + octets(1, b"b") + count(1, 5) + pairs(3, (("k", b"1"), ("k", b"2"))))
        self.assertEqual((message.octets(1), message.number(1), message.annotations(3)), (b"b", 5, (("k", b"2"),)))

    def test_texts(self) -> None:
        """Bytes that are not UTF-8 are rejected as a string."""
        error = self.assertRaises(WireError, Fields(octets(1, b"\xff")).text, 1)
        self.assertEqual(str(error), "proto: string field contains invalid UTF-8")

    @given(st.binary(max_size=20))
    def test_any_bytes(self, data: bytes) -> None:
        """Arbitrary bytes are a message or rejected with L{WireError}."""
        try:
            found = list(fields(data))
        except WireError as error:
            self.assertEqual(str(error), "proto: cannot parse invalid wire-format data")
        else:
            self.assertTrue(all(tag > 0 for tag, _ in found))
