"""Tests for L{kubetwist.api.cbor}."""

from __future__ import annotations

from typing import Any

import cbor2
import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.cbor import ARRAY, MAP, collection_head, decode_cbor, encode_cbor, split_map
from kubetwist.api.documents import CBOR_MAGIC, MAX_DEPTH, BodyError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda values: st.lists(values) | st.dictionaries(TEXTS, values),
    max_leaves=20,
)


def decoded(data: bytes) -> Any:
    """Decode a document."""
    return decode_cbor(data).value


class RoundTripTests(SynchronousTestCase):
    """L{encode_cbor} and L{decode_cbor}."""

    @given(VALUES)
    def test_round_trip(self, value: Any) -> None:
        """A JSON value is decoded as it was encoded, with the types of its numbers."""
        again = decoded(encode_cbor(value))
        self.assertEqual(
            orjson.dumps(again, option=orjson.OPT_SORT_KEYS), orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        )

    @given(VALUES)
    def test_plain(self, value: Any) -> None:
        """Documents of encoders that write text strings, in any order and without the tag, are decoded, too."""
        self.assertEqual(decoded(cbor2.dumps(value)), value)

    @given(st.dictionaries(TEXTS, VALUES))
    def test_deterministic(self, value: dict[str, Any]) -> None:
        """Equal values have equal encodings."""
        self.assertEqual(encode_cbor(value), encode_cbor(dict(reversed(value.items()))))

    def test_bytes(self) -> None:
        """A document is tagged as CBOR; strings are byte strings, keys are sorted, floats have the shortest form."""
        self.assertEqual(
            encode_cbor({"kind": "A", "b": [1.5, 1, True, None]}).hex(), "d9d9f7a2416284f93e0001f5f6446b696e644141"
        )

    @given(st.integers(0, 1 << 40), st.sampled_from((ARRAY, MAP)))
    def test_heads(self, size: int, major: int) -> None:
        """The head of a collection has its size."""
        self.assertEqual(split_map(collection_head(major, size) + b"rest"), (size, b"rest"))

    def test_head_of_map(self) -> None:
        """Another implementation encodes the same heads of maps."""
        for size in (0, 23, 24, 255, 256, 65535, 65536):
            self.assertTrue(cbor2.dumps(dict.fromkeys(range(size))).startswith(collection_head(MAP, size)))


class DecodeTests(SynchronousTestCase):
    """L{decode_cbor}."""

    def refused(self, data: bytes) -> str:
        """Return the error for a document."""
        return str(self.assertRaises(BodyError, decode_cbor, data))

    def test_strings(self) -> None:
        """Text and byte strings, also in chunks, are strings; invalid UTF-8 is replaced in byte strings only."""
        for data in (b"\x43abc", b"\x63abc", b"\x5f\x41a\x42bc\xff", b"\x7f\x61a\x62bc\xff"):
            self.assertEqual(decoded(data), "abc")
        self.assertEqual(decoded(b"\x42a\xff"), "a\ufffd")
        self.assertEqual(self.refused(b"\x62a\xff"), "cbor: invalid UTF-8 string")

    def test_indefinite(self) -> None:
        """Arrays and maps of indefinite length are accepted."""
        self.assertEqual(decoded(b"\xbf\x41a\x9f\x01\x02\xff\xff"), {"a": [1, 2]})

    def test_duplicates(self) -> None:
        """Duplicate keys are rejected, also if one is a text and one a byte string."""
        for data in (b"\xa2\x41a\x01\x41a\x02", b"\xa2\x41a\x01\x61a\x02", b"\xa1\x41b\xbf\x61a\x01\x61a\x02\xff"):
            self.assertIn("uplicate map key", self.refused(data))

    def test_keys(self) -> None:
        """Keys are strings."""
        for key in (b"\x01", b"\xf6", b"\x80", b"\xa0", b"\xf9\x3e\x00"):
            self.assertIn("map key", self.refused(b"\xa1" + key + b"\x00"))

    def test_depth(self) -> None:
        """The nesting depth is limited, also of tags and of collections without a length."""
        self.assertEqual(self.refused(b"\x81" * 100_000 + b"\x00"), self.refused(b"\x9f" * 100_000))
        self.assertIn("depth", self.refused(b"\xd9\xd9\xf7" * 100_000 + b"\x00"))
        self.assertIn("depth", self.refused(b"\xa1\x41a" * (MAX_DEPTH + 1) + b"\x00"))
        decoded(b"\x81" * (MAX_DEPTH - 1) + b"\x00")

    def test_lengths(self) -> None:
        """A length beyond the end of the data is rejected without an allocation of that size."""
        for first in (b"\x5b", b"\x7b", b"\x9b", b"\xbb"):
            self.assertEqual(self.refused(first + b"\x7f" + b"\xff" * 7), "cbor: unexpected EOF")

    @given(VALUES, st.data())
    def test_truncated(self, value: Any, data: st.DataObject) -> None:
        """A document without its end is rejected."""
        document = encode_cbor(value)
        self.refused(document[: data.draw(st.integers(0, len(document) - 1))])

    @given(st.binary())
    def test_any_bytes(self, data: bytes) -> None:
        """Any bytes are decoded to a JSON value or rejected."""
        try:
            value = decoded(data)
        except BodyError:
            return
        orjson.dumps(value)

    def test_extraneous(self) -> None:
        """A second item after the document is rejected."""
        self.assertEqual(self.refused(b"\xa0\x00\x00"), "cbor: 2 bytes of extraneous data starting at index 1")
        self.assertEqual(self.refused(b""), "cbor: EOF")

    def test_numbers(self) -> None:
        """Integers have 64 bits; numbers that JSON lacks are rejected."""
        self.assertEqual(decoded(b"\x1b\x7f" + b"\xff" * 7), (1 << 63) - 1)
        for data in (
            b"\x1b\x80" + bytes(7),
            b"\x3b\x80" + bytes(7),
            b"\xf9\x7e\x00",
            b"\xf9\xfc\x00",
            b"\xc2\x41\x01",
            b"\xc3\x41\x01",
        ):
            self.refused(data)

    def test_simple_values(self) -> None:
        """Of the simple values, false, true and null are accepted."""
        self.assertEqual(decoded(b"\x83\xf4\xf5\xf6"), [False, True, None])
        for data in (b"\xf7", b"\xe0", b"\xf8\xff"):
            self.refused(data)

    def test_tags(self) -> None:
        """Tags do not change their content, including those for shared values, sets and fractions."""
        for tag in (4, 5, 24, 25, 28, 29, 30, 32, 35, 36, 37, 52, 100, 256, 258, 260, 1004, 43000, 55799, 12345):
            item = collection_head(0xC0, tag) + b"\x82\x01\x61a"
            self.assertEqual((tag, decoded(item)), (tag, [1, "a"]))
            self.assertEqual(decoded(b"\xa1\x41k" + item), {"k": [1, "a"]})
            item = collection_head(0xC0, tag) + b"\xa1\x61a\x81\xf6"
            self.assertEqual(decoded(b"\x81" + item), [{"a": [None]}])

    def test_cyclic(self) -> None:
        """A reference to an enclosing value is a number."""
        self.assertEqual(decoded(b"\xd8\x1c\x81\xd8\x1d\x00"), [0])

    def test_later_encodings(self) -> None:
        """Byte strings with an expected encoding are texts in that encoding, within collections, too."""
        self.assertEqual(decoded(b"\xd6\x43\xff\xfe\xfd"), "//79")
        self.assertEqual(decoded(b"\xd5\x42\xff\xfe"), "__4")
        self.assertEqual(decoded(b"\xd7\x42\xff\xfe"), "fffe")
        self.assertEqual(decoded(b"\xd6\x82\x41a\xa1\x41k\xd7\x41b"), ["YQ==", {"k": "62"}])

    def test_times(self) -> None:
        """Tagged times are RFC 3339 texts."""
        self.assertEqual(decoded(b"\xc0\x74" + b"2024-01-02T03:04:05Z"), "2024-01-02T03:04:05Z")
        self.assertEqual(decoded(b"\xc1\x1a\x65\x93\x7b\xa5"), "2024-01-02T02:57:41Z")
        for data in (b"\xc0\x61a", b"\xc0\x01", b"\xc1\x61a", b"\xc1\x1b\x7f" + b"\xff" * 7, b"\xc1\xf5"):
            self.refused(data)

    def test_self_described(self) -> None:
        """The tag of CBOR may be missing or repeated."""
        for tags in range(3):
            self.assertEqual(decoded(CBOR_MAGIC * tags + b"\xa1\x41a\x80"), {"a": []})
