"""Tests for L{kubetwist.schema.protobuf.wire}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.protobuf.wire import (
    END_GROUP,
    FIXED32,
    FIXED64,
    GROUP,
    LENGTH,
    OVERFLOW,
    UNEXPECTED_EOF,
    VARINT,
    WireError,
    encode_length_delimited,
    encode_tag,
    encode_varint,
    int32,
    int64,
    length,
    skip_unknown_field,
    varint,
)
from kubetwist.schema.protobuf.wire import (
    skip as skip_value,
)


class NumberTests(SynchronousTestCase):
    """Tests for varints."""

    @given(st.integers(-(1 << 63), (1 << 63) - 1))
    def test_round_trip(self, value: int) -> None:
        """A number is decoded with its sign, and encoded in the minimum number of bytes."""
        data = encode_varint(value)
        read, position = varint(data + b"\x01", 0)
        self.assertEqual((int64(read), position), (value, len(data)))
        self.assertLessEqual(len(data), 10 if value < 0 else value.bit_length() // 7 + 1)

    def test_overflow(self) -> None:
        """A varint of more than ten bytes is rejected, and a truncated one is an error."""
        self.assertEqual(str(self.assertRaises(WireError, varint, b"\xff" * 11, 0)), OVERFLOW)
        self.assertRaises(IndexError, varint, b"\xff", 0)

    def test_halves(self) -> None:
        """A 32-bit number is the lower half of a varint."""
        self.assertEqual([int32(1), int32((1 << 32) - 1), int32(1 << 32), int32(1 << 31)], [1, -1, 0, -(1 << 31)])


class FieldTests(SynchronousTestCase):
    """Tests for length-delimited and skipped fields."""

    @given(st.integers(1, 1000), st.binary(max_size=300))
    def test_length_delimited(self, number: int, content: bytes) -> None:
        """A length-delimited field is found and skipped as a whole."""
        data = encode_length_delimited(number, content)
        key, position = varint(data, 0)
        self.assertEqual(key, number << 3 | LENGTH)
        self.assertEqual(skip_value(data, position, len(data), LENGTH), len(data))
        start, stop = length(data, position, len(data))
        self.assertEqual(data[start:stop], content)

    def test_skip(self) -> None:
        """Values of every wire type are skipped, including nested groups."""
        group = (
            encode_tag(1, VARINT) + b"\x05" + encode_tag(2, GROUP) + encode_tag(2, END_GROUP) + encode_tag(3, END_GROUP)
        )
        for wire_type, data in ((VARINT, b"\x96\x01"), (FIXED64, b"x" * 8), (FIXED32, b"x" * 4), (GROUP, group)):
            self.assertEqual(skip_value(data + b"rest", 0, len(data), wire_type), len(data), wire_type)

    def test_cut_short(self) -> None:
        """A value that ends after the data, or has an invalid wire type, is rejected."""
        for wire_type, data in ((FIXED64, b"x"), (FIXED32, b"x"), (LENGTH, b"\x05x")):
            self.assertEqual(
                str(self.assertRaises(WireError, skip_value, data, 0, len(data), wire_type)), UNEXPECTED_EOF
            )
        self.assertEqual(str(self.assertRaises(WireError, skip_value, b"", 0, 0, 7)), "proto: illegal wireType 7")
        huge = encode_varint(-1)
        self.assertIn("negative length", str(self.assertRaises(WireError, length, huge, 0, len(huge))))

    def test_other_fields(self) -> None:
        """
        An unknown field is skipped; a known one with another wire type, field 0 and the end of a group are rejected.
        """
        self.assertEqual(skip_unknown_field(b"\x05", 0, 1, 9 << 3 | VARINT, "Pod", {1: "name"}), 1)
        for tag, message in (
            (1 << 3 | VARINT, "proto: wrong wireType = 0 for field Name"),
            (VARINT, "proto: Pod: illegal tag 0 (wire type 0)"),
            (9 << 3 | END_GROUP, "proto: Pod: wiretype end group for non-group"),
        ):
            error = self.assertRaises(WireError, skip_unknown_field, b"\x05", 0, 1, tag, "Pod", {1: "name"})
            self.assertEqual(str(error), message)
