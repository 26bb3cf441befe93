"""Tests for L{kubetwist.storage.encryption._envelope} and L{kubetwist.schema.protobuf.fields}."""

from __future__ import annotations

import contextlib

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.protobuf.fields import (
    Fields,
    count,
    octets,
    pairs,
)
from kubetwist.schema.protobuf.wire import WireError
from kubetwist.storage.encryption._ciphers import (
    SeededGCM,
    TransformError,
)
from kubetwist.storage.encryption._envelope import (
    KEY,
    SEED,
    DEKSource,
    EncryptionState,
    Envelope,
    MissingKey,
)
from kubetwist.storage.encryption._transformers import Plain

PLACE = b"/registry/secrets/default/db"
BYTES = bytes(range(32))
SOURCE = DEKSource("key-1", b"encrypted seed", (("a.example.com", b"1"), ("b.example.com", b"")), SEED)
#: What Google's protobuf library makes of an EncryptedObject with the source above, a seed of the bytes above, info
#: C{b"i" * 32} and nonce C{b"n" * 12}.
STORED = bytes.fromhex(
    "0a4d69696969696969696969696969696969696969696969696969696969696969696e6e6e6e6e6e6e6e6e6e6e6e62c02cdef7e375a0b42b2d03"
    "e9d5baef0a9cf72412bbdaf527b37d6c599939824312056b65792d311a0e656e63727970746564207365656422120a0d612e6578616d706c652e"
    "636f6d12013122110a0d622e6578616d706c652e636f6d12002801"
)


class UnusedFetcher:
    """A fetcher that must not be called."""

    def fetch(self, source: DEKSource) -> Deferred[None]:
        """See L{kubetwist.storage.encryption._envelope.DEKFetcher.fetch}."""
        raise AssertionError("unexpected fetch")


class EnvelopeTests(SynchronousTestCase):
    """Values with envelope encryption."""

    def setUp(self) -> None:
        """Create an envelope with one cached key."""
        self.sealing = EncryptionState(SOURCE, BYTES)
        self.envelope = Envelope(UnusedFetcher(), lambda: self.sealing, lambda: self.sealing)
        self.envelope.cache_cipher(SOURCE, self.sealing.cipher)

    def test_format(self) -> None:
        """A stored value has the reference's format, and is decoded from it."""
        self.assertEqual(self.envelope.decrypt(STORED, PLACE), Plain(b'{"kind":"Secret"}', False))
        ours = self.envelope.encrypt(b'{"kind":"Secret"}', PLACE)
        self.assertEqual((ours[:2], ours[79:]), (STORED[:2], STORED[79:]))
        self.assertEqual(SeededGCM(BYTES).decrypt(ours[2:79], PLACE), b'{"kind":"Secret"}')

    @given(st.binary(max_size=300))
    def test_round_trip(self, value: bytes) -> None:
        """An encrypted value can be decrypted repeatedly."""
        self.setUp()
        data = self.envelope.encrypt(value, PLACE)
        self.assertEqual([self.envelope.decrypt(data, PLACE) for _ in range(2)], [Plain(value, False)] * 2)

    @given(st.data())
    def test_tampered(self, data: st.DataObject) -> None:
        """
        With any bit flipped, a value is rejected or needs another key, except for bits without meaning.

        An empty value of an annotation may have any field number, since unknown fields are ignored.
        """
        self.setUp()
        bit = data.draw(st.integers(0, len(STORED) * 8 - 1))
        flipped = bytearray(STORED)
        flipped[bit // 8] ^= 1 << bit % 8
        self.envelope.decrypt(STORED, PLACE)
        if bit // 8 == STORED.rindex(b"\x12\x00"):
            with contextlib.suppress(TransformError, MissingKey):
                self.assertEqual(self.envelope.decrypt(bytes(flipped), PLACE), Plain(b'{"kind":"Secret"}', False))
        else:
            self.assertRaises((TransformError, MissingKey), self.envelope.decrypt, bytes(flipped), PLACE)

    @given(st.binary(max_size=60))
    def test_garbage(self, data: bytes) -> None:
        """Invalid messages are rejected."""
        self.setUp()
        for stored in (data, STORED[: len(data)] + data, data + STORED):
            with contextlib.suppress(TransformError, MissingKey):
                self.assertEqual(self.envelope.decrypt(stored, PLACE).value, b'{"kind":"Secret"}')

    def test_missing(self) -> None:
        """A value with a key that is not cached raises MissingKey with that key."""
        other = DEKSource("key-2", b"other seed")
        data = EncryptionState(other, bytes(32)).seal(b"value", PLACE)
        error = self.assertRaises(MissingKey, self.envelope.decrypt, data, PLACE)
        self.assertEqual((error.source, error.authenticated_data), (other, PLACE))
        self.envelope.cache_plaintext_key(other, bytes(32))
        self.assertEqual(self.envelope.decrypt(data, PLACE), Plain(b"value", True))

    def test_stale(self) -> None:
        """A value is stale when the service has another key, not when there is another seed of the same key."""
        data = self.envelope.encrypt(b"value", PLACE)
        self.sealing = EncryptionState(DEKSource("key-1", b"another seed"), BYTES)
        self.assertEqual(self.envelope.decrypt(data, PLACE), Plain(b"value", False))
        self.sealing = EncryptionState(DEKSource("key-2", b"another seed"), BYTES)
        self.assertEqual(self.envelope.decrypt(data, PLACE), Plain(b"value", True))

    def test_plain_key(self) -> None:
        """Values with a key instead of a seed, from before version 1.29, are decrypted, and are stale."""
        source = DEKSource("key-1", b"key", kind=KEY)
        sealed = b"n" * 12 + AESGCM(BYTES).encrypt(b"n" * 12, b"value", PLACE)
        data = octets(1, sealed) + octets(2, b"key-1") + octets(3, b"key")
        self.assertRaises(MissingKey, self.envelope.decrypt, data, PLACE)
        self.envelope.cache_plaintext_key(source, BYTES)
        self.assertEqual(self.envelope.decrypt(data, PLACE), Plain(b"value", True))
        error = self.assertRaises(TransformError, self.envelope.cache_plaintext_key, source, bytes(7))
        self.assertEqual(str(error), "crypto/aes: invalid key size 7")

    def test_order(self) -> None:
        """Fields are accepted in any order, unknown ones are ignored, and the last of several is used."""
        start, tail = STORED[2:79], STORED[79:]
        for data in (
            tail + octets(1, start),
            octets(1, b"wrong") + tail + octets(1, start),
            count(9, 5) + octets(8, b"x") + b"\x55\0\0\0\0" + octets(1, start) + tail,
        ):
            for _ in range(2):
                self.assertEqual(self.envelope.decrypt(data, PLACE).value, b'{"kind":"Secret"}')

    def test_invalid(self) -> None:
        """Messages with missing or too large fields are rejected with the reference's messages."""
        data, key_id, source = octets(1, b"x" * 40), octets(2, b"key"), octets(3, b"seed")
        invalid = "should be a domain with at least two segments separated by dots"
        for message, problem in (
            (key_id + source, "encrypted data is empty"),
            (data + source, "failed to validate key id: keyID is empty"),
            (data + key_id, "failed to validate encrypted DEK source: encrypted DEK source is empty"),
            (data + key_id + source + count(5, 2), "unknown encryptedDEKSourceType: 2"),
            (
                data + key_id + octets(3, b"s" * 1025),
                "failed to validate encrypted DEK source: encrypted DEK source is 1025 bytes, which exceeds the max "
                "size of 1024",
            ),
            (
                data + octets(2, b"k" * 1025) + source,
                "failed to validate key id: keyID is 1025 bytes, which exceeds the max size of 1024",
            ),
            (
                data + key_id + source + pairs(4, (("local", b""),)),
                f'failed to validate annotations: annotations: Invalid value: "local": {invalid}',
            ),
            (
                data + key_id + source + pairs(4, (("a.b", bytes(32 * 1024)),)),
                "failed to validate annotations: total size of annotations is 32771, which exceeds the max size of "
                "32768",
            ),
            (data + octets(2, b"\xff") + source, "proto: string field contains invalid UTF-8"),
            (data + b"\x12\x7f", "proto: cannot parse invalid wire-format data"),
            (b"\x00\x00", "proto: cannot parse invalid wire-format data"),
            (b"\x0a", "proto: cannot parse invalid wire-format data"),
        ):
            error = self.assertRaises(TransformError, self.envelope.decrypt, message, PLACE)
            self.assertEqual(str(error), problem)


class FieldsTests(SynchronousTestCase):
    """Messages of strings, bytes, and maps."""

    @given(st.dictionaries(st.text(max_size=5), st.binary(max_size=200), max_size=4), st.text(max_size=5))
    def test_round_trip(self, values: dict[str, bytes], text: str) -> None:
        """Encoded messages are decoded."""
        message = Fields(octets(1, text.encode()) + pairs(2, tuple(values.items())) + count(3, 300))
        self.assertEqual(message.text(1), text)
        self.assertEqual(dict(message.annotations(2)), values)
        self.assertEqual((message.number(3), message.number(4), message.octets(4)), (300, 0, b""))

    @given(st.binary(max_size=60))
    def test_garbage(self, data: bytes) -> None:
        """Any bytes are a message or are rejected."""
        with contextlib.suppress(WireError):
            message = Fields(data)
            message.annotations(1), message.text(2), message.number(3)
