"""Tests for L{kubetwist.storage.encryption._ciphers} and L{kubetwist.storage.encryption._transformers}."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC, ECB, GCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.padding import PKCS7
from hypothesis import given
from hypothesis import strategies as st
from nacl.secret import SecretBox as NaClBox

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupResource
from kubetwist.storage.encryption import _ciphers as ciphers
from kubetwist.storage.encryption._ciphers import (
    SecretBox,
    SeededGCM,
    TransformError,
)
from kubetwist.storage.encryption._configuration import (
    Key,
    Provider,
    Rule,
)
from kubetwist.storage.encryption._transformers import (
    IDENTITY,
    Plain,
    Transformers,
)

SECRETS = GroupResource("", "secrets")
PLACE = b"/registry/secrets/default/db"
KEYS = [b"0123456789abcdef", b"0123456789abcdef01234567", b"0123456789abcdef0123456789abcdef"]
LONG = KEYS[2]

_values = st.binary(max_size=100)


def gcm_by_hand(key: bytes, nonce: bytes, value: bytes, authenticated_data: bytes) -> bytes:
    """AES-GCM by NIST SP 800-38D with single AES blocks: an implementation independent of the library's."""
    block = Cipher(AES(key), ECB()).encryptor()

    def multiplied(left: int, right: int) -> int:
        product = 0
        for bit in range(127, -1, -1):
            if left >> bit & 1:
                product ^= right
            right = right >> 1 ^ (0xE1 << 120 if right & 1 else 0)
        return product

    def padded(data: bytes) -> bytes:
        return data + bytes(-len(data) % 16)

    def counted(number: int, data: bytes) -> bytes:
        stream = b""
        while len(stream) < len(data):
            stream += block.update(nonce + number.to_bytes(4, "big"))
            number += 1
        return bytes(one ^ other for one, other in zip(data, stream, strict=False))

    subkey = int.from_bytes(block.update(bytes(16)), "big")
    sealed = counted(2, value)
    lengths = (len(authenticated_data) * 8).to_bytes(8, "big") + (len(sealed) * 8).to_bytes(8, "big")
    tag = 0
    hashed = padded(authenticated_data) + padded(sealed) + lengths
    for start in range(0, len(hashed), 16):
        tag = multiplied(tag ^ int.from_bytes(hashed[start : start + 16], "big"), subkey)
    return nonce + sealed + counted(1, tag.to_bytes(16, "big"))


class CipherTests(SynchronousTestCase):
    """Single ciphers."""

    made = (*(ciphers.GCM(key) for key in KEYS), SeededGCM(LONG), SeededGCM(LONG + b"more"), SecretBox(LONG))
    all = (*made, *(ciphers.PaddedCBC(key) for key in KEYS))

    @given(st.sampled_from(all), _values)
    def test_round_trip(self, cipher: Any, value: bytes) -> None:
        """An encrypted value can be decrypted, and two encryptions of it differ."""
        data = cipher.encrypt(value, PLACE)
        self.assertEqual(cipher.decrypt(data, PLACE), value)
        self.assertNotEqual(cipher.encrypt(value, PLACE), data)

    @given(st.sampled_from(made), _values, st.data())
    def test_tampered(self, cipher: Any, value: bytes, data: Any) -> None:
        """A value with any flipped bit, or truncated anywhere, is rejected."""
        sealed = cipher.encrypt(value, PLACE)
        bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
        flipped = bytearray(sealed)
        flipped[bit // 8] ^= 1 << bit % 8
        self.assertRaises(TransformError, cipher.decrypt, bytes(flipped), PLACE)
        self.assertRaises(TransformError, cipher.decrypt, sealed[: bit // 8], PLACE)

    @given(st.sampled_from(all), _values)
    def test_garbage(self, cipher: Any, data: bytes) -> None:
        """Invalid ciphertext is rejected, except by AES-CBC, which does not authenticate values."""
        try:
            value = cipher.decrypt(data, PLACE)
        except TransformError:
            return
        self.assertIsInstance(cipher, ciphers.PaddedCBC)
        self.assertIsInstance(value, bytes)

    def test_moved(self) -> None:
        """A value cannot be decrypted at another key if the key is authenticated."""
        for cipher in (ciphers.GCM(LONG), SeededGCM(LONG)):
            data = cipher.encrypt(b"value", PLACE)
            error = self.assertRaises(TransformError, cipher.decrypt, data, PLACE + b"2")
            self.assertEqual(str(error), "cipher: message authentication failed")

    def test_other_key(self) -> None:
        """A value cannot be decrypted with another encryption key; the errors are the reference's."""
        for kind, problem in (
            (ciphers.GCM, "cipher: message authentication failed"),
            (SeededGCM, "cipher: message authentication failed"),
            (SecretBox, "output array was not large enough for encryption"),
        ):
            data = kind(LONG).encrypt(b"value", PLACE)
            self.assertEqual(str(self.assertRaises(TransformError, kind(bytes(32)).decrypt, data, PLACE)), problem)

    def test_padding(self) -> None:
        """A value of AES-CBC with an invalid length or padding is rejected."""
        cipher = ciphers.PaddedCBC(LONG)

        def raw(padded: bytes) -> bytes:
            return bytes(16) + Cipher(AES(LONG), CBC(bytes(16))).encryptor().update(padded)

        for data, problem in (
            (bytes(15), "the stored data was shorter than the required size"),
            (bytes(33), "the stored data is not a multiple of the block size"),
            (bytes(16), "invalid PKCS7 data (empty or not padded)"),
            (raw(bytes(16)), "invalid PKCS7 data (empty or not padded)"),
            (raw(bytes(15) + b"\x11"), "invalid PKCS7 data (empty or not padded)"),
            (raw(bytes(15) + b"\x02"), "invalid padding on input"),
        ):
            self.assertEqual(str(self.assertRaises(TransformError, cipher.decrypt, data, PLACE)), problem)

    def test_seed(self) -> None:
        """A seed has the maximum length of a key."""
        error = self.assertRaises(TransformError, SeededGCM, bytes(31))
        self.assertEqual(str(error), "invalid seed length 31 used for key generation")


class FormatTests(SynchronousTestCase):
    """Stored values have the format of the reference's description."""

    @given(st.sampled_from(KEYS), st.binary(min_size=12, max_size=12), _values)
    def test_gcm(self, key: bytes, nonce: bytes, value: bytes) -> None:
        """AES-GCM: a nonce of 12 bytes, the value, the tag; the storage key is authenticated."""
        data = gcm_by_hand(key, nonce, value, PLACE)
        self.assertEqual(ciphers.GCM(key).decrypt(data, PLACE), value)
        ours = ciphers.GCM(key).encrypt(value, PLACE)
        self.assertEqual(gcm_by_hand(key, ours[:12], value, PLACE), ours)

    @given(st.binary(min_size=32, max_size=40), st.binary(min_size=32, max_size=32), _values)
    def test_seeded(self, seed: bytes, info: bytes, value: bytes) -> None:
        """With a seed: 32 bytes for HKDF-Expand, which derives the key, and the value of AES-GCM with that key."""
        key = HKDFExpand(SHA256(), 32, info).derive(seed)
        self.assertEqual(key, hmac.new(seed, info + b"\x01", hashlib.sha256).digest())
        encryptor = Cipher(AES(key), GCM(bytes(12))).encryptor()
        encryptor.authenticate_additional_data(PLACE)
        sealed = encryptor.update(value) + encryptor.finalize() + encryptor.tag
        self.assertEqual(SeededGCM(seed).decrypt(info + bytes(12) + sealed, PLACE), value)
        ours = SeededGCM(seed).encrypt(value, PLACE)
        own_key = HKDFExpand(SHA256(), 32, ours[:32]).derive(seed)
        self.assertEqual(gcm_by_hand(own_key, ours[32:44], value, PLACE), ours[32:])

    @given(st.sampled_from(KEYS), st.binary(min_size=16, max_size=16), _values)
    def test_cbc(self, key: bytes, start: bytes, value: bytes) -> None:
        """AES-CBC: an initialization vector, and the value with PKCS #7 padding."""
        padder = PKCS7(128).padder()
        encryptor = Cipher(AES(key), CBC(start)).encryptor()
        data = start + encryptor.update(padder.update(value) + padder.finalize()) + encryptor.finalize()
        self.assertEqual(ciphers.PaddedCBC(key).decrypt(data, PLACE), value)

    @given(st.binary(min_size=32, max_size=32), _values)
    def test_secretbox(self, key: bytes, value: bytes) -> None:
        """Secretbox: a nonce of 24 bytes and the NaCl box; the storage key is not authenticated."""
        self.assertEqual(SecretBox(key).decrypt(bytes(NaClBox(key).encrypt(value)), PLACE), value)
        self.assertEqual(NaClBox(key).decrypt(SecretBox(key).encrypt(value, PLACE)), value)

    def test_vector(self) -> None:
        """A published vector of AES-GCM, test case 4 of McGrew and Viega, is decrypted."""
        key = bytes.fromhex("feffe9928665731c6d6a8f9467308308")
        nonce = bytes.fromhex("cafebabefacedbaddecaf888")
        value = bytes.fromhex(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
            "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
        )
        authenticated_data = bytes.fromhex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
        data = bytes.fromhex(
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
            "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e0915bc94fbc3221a5db94fae95ae7121a47"
        )
        self.assertEqual(ciphers.GCM(key).decrypt(nonce + data, authenticated_data), value)
        self.assertEqual(gcm_by_hand(key, nonce, value, authenticated_data), nonce + data)


def provider(kind: str, *names: str) -> Provider:
    """Return a provider with keys that are derived from their names."""
    return Provider(kind, tuple(Key(name, hashlib.sha256(name.encode()).digest()) for name in names))


def transformers(*rules: tuple[list[Any], list[Provider]]) -> Transformers:
    """Return the transformers of a configuration."""

    def service(_: Any) -> Any:
        raise AssertionError("there are no services")

    return Transformers([Rule(tuple(resources), tuple(providers)) for resources, providers in rules], service)


def secrets(*providers: Provider) -> Any:
    """Return the transformer of secrets."""
    return transformers(([SECRETS], list(providers))).of(SECRETS)


class TransformerTests(SynchronousTestCase):
    """Selection of the provider and the key."""

    def problem(self, transformer: Any, data: bytes) -> str:
        """Return the error of a value that cannot be decrypted."""
        return str(self.assertRaises(TransformError, transformer.decrypt, data, PLACE))

    def test_prefixes(self) -> None:
        """A stored value begins with the provider and the key's name."""
        for kind in ("aesgcm", "aescbc", "secretbox"):
            data = secrets(provider(kind, "one", "two")).encrypt(b"{}", PLACE)
            self.assertTrue(data.startswith(f"k8s:enc:{kind}:v1:one:".encode()), data)
        self.assertEqual(secrets(Provider("identity")).encrypt(b"{}", PLACE), b"{}")

    def test_rotation(self) -> None:
        """The first key of the first provider encrypts; all decrypt, and values of the other keys are stale."""
        first, second = provider("aesgcm", "one"), provider("secretbox", "one", "two")
        written = {
            "one": secrets(first).encrypt(b"1", PLACE),
            "box": secrets(second).encrypt(b"2", PLACE),
            "two": secrets(provider("secretbox", "two")).encrypt(b"3", PLACE),
            "plain": b"4",
        }
        now = secrets(first, second, Provider("identity"))
        self.assertEqual(
            {name: now.decrypt(data, PLACE) for name, data in written.items()},
            {"one": Plain(b"1", False), "box": Plain(b"2", True), "two": Plain(b"3", True), "plain": Plain(b"4", True)},
        )
        later = secrets(Provider("identity"), second, first)
        self.assertEqual(later.decrypt(written["one"], PLACE), Plain(b"1", True))
        self.assertEqual(later.decrypt(written["plain"], PLACE), Plain(b"4", False))

    def test_same_provider_twice(self) -> None:
        """A provider that is configured twice is tried twice."""
        old = secrets(provider("aescbc", "one")).encrypt(b"1", PLACE)
        both = secrets(provider("aescbc", "two"), provider("aescbc", "one"))
        self.assertEqual(both.decrypt(old, PLACE), Plain(b"1", True))

    def test_unknown(self) -> None:
        """A value that no provider can decrypt is rejected with the reference's message."""
        data = secrets(provider("aesgcm", "one")).encrypt(b"1", PLACE)
        other = Provider("aesgcm", (Key("one", bytes(32)),))
        for transformer, problem in (
            (secrets(provider("secretbox", "one")), "no matching prefix found"),
            (secrets(provider("secretbox", "one"), Provider("identity")), "no matching prefix found"),
            (secrets(provider("aesgcm", "two")), "no matching key was found for the provided AES transformer"),
            (secrets(other), "cipher: message authentication failed"),
            (
                secrets(other, provider("aesgcm", "two")),
                "[cipher: message authentication failed, no matching key was found for the provided AES transformer]",
            ),
            (IDENTITY, "identity transformer tried to read encrypted data"),
        ):
            self.assertEqual(self.problem(transformer, data), problem)
        box = secrets(provider("secretbox", "one")).encrypt(b"1", PLACE)
        problem = "no matching key was found for the provided Secretbox transformer"
        self.assertEqual(self.problem(secrets(provider("secretbox", "two")), box), problem)
        self.assertEqual(self.problem(secrets(provider("aesgcm", "one")), b"{}"), "no matching prefix found")

    def test_rules(self) -> None:
        """A resource has its specific rule, or its group's, or the rule for all; without a rule it is not encrypted."""
        result = transformers(
            ([SECRETS], [provider("aesgcm", "own")]),
            ([GroupResource("apps", "*")], [provider("aesgcm", "group")]),
            ([GroupResource("", "*")], [provider("aesgcm", "core")]),
        )
        everything = transformers(
            ([GroupResource("", "events")], [Provider("identity")]),
            ([GroupResource("*", "*")], [provider("aesgcm", "all")]),
        )
        for authenticated_data, resource, prefix in (
            (result, SECRETS, b"k8s:enc:aesgcm:v1:own:"),
            (result, GroupResource("apps", "deployments"), b"k8s:enc:aesgcm:v1:group:"),
            (result, GroupResource("", "pods"), b"k8s:enc:aesgcm:v1:core:"),
            (result, GroupResource("batch", "jobs"), b"{}"),
            (everything, GroupResource("", "events"), b"{}"),
            (everything, GroupResource("example.com", "swans"), b"k8s:enc:aesgcm:v1:all:"),
        ):
            self.assertTrue(authenticated_data.of(resource).encrypt(b"{}", PLACE).startswith(prefix), resource)

    def test_rules_of_one_resource(self) -> None:
        """Several rules of one resource are joined to one list of providers."""
        data = secrets(provider("secretbox", "one")).encrypt(b"1", PLACE)
        both = transformers(([SECRETS], [provider("aesgcm", "one")]), ([SECRETS], [provider("secretbox", "one")])).of(
            SECRETS
        )
        self.assertEqual(both.decrypt(data, PLACE), Plain(b"1", True))
