"""
The ciphers, each with one key: the stored bytes after the prefix with the name of the key.

The formats are identical to the reference. Where the storage key of a value is authenticated, the value
cannot be decrypted at another key.

@see: kubernetes/apiserver, C{pkg/storage/value/encrypt}.
"""

from __future__ import annotations

import hmac
import os
from typing import Final, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher as BlockCipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

_NONCE: Final = 12
_BLOCK: Final = 16
_BOX_NONCE: Final = 24
_BOX_OVERHEAD: Final = 16
#: The bytes that derive a separate key for each value.
_INFO: Final = 32
SEED: Final = 32

_TOO_SHORT: Final = "the stored data was shorter than the required size"


class TransformError(Exception):
    """
    A value cannot be encrypted or decrypted; the text is the reference's.

    @ivar status: The code of gRPC for metrics, if a service failed.
    """

    status = "unknown-non-grpc"


class TransformUnavailable(TransformError):
    """The transformation is impossible now, but may work later: the key management service does not respond."""


class Cipher(Protocol):
    """Encrypts and decrypts with one key. Any thread may call it."""

    def encrypt(self, value: bytes, authenticated_data: bytes) -> bytes:
        """Encrypt C{value} for the key C{authenticated_data}."""

    def decrypt(self, data: bytes, authenticated_data: bytes) -> bytes:
        """
        Decrypt the value that was encrypted for C{authenticated_data}.

        @raise TransformError: C{data} was not made with this key, or was changed.
        """


class GCM:
    """AES-GCM with a random nonce, which is the first part of the message."""

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)

    def encrypt(self, value: bytes, authenticated_data: bytes) -> bytes:
        """See L{Cipher.encrypt}."""
        nonce = os.urandom(_NONCE)
        return nonce + self._aead.encrypt(nonce, value, authenticated_data)

    def decrypt(self, data: bytes, authenticated_data: bytes) -> bytes:
        """See L{Cipher.decrypt}."""
        if len(data) < _NONCE:
            raise TransformError(_TOO_SHORT)
        try:
            return self._aead.decrypt(data[:_NONCE], data[_NONCE:], authenticated_data)
        except InvalidTag:
            raise TransformError("cipher: message authentication failed") from None


class SeededGCM:
    """
    AES-GCM with a separate key for each value, derived from a seed and random bytes, which precede the message.

    One seed may be used for any number of values.
    """

    def __init__(self, seed: bytes) -> None:
        """
        @raise TransformError: The seed is too short.
        """
        if len(seed) < SEED:
            raise TransformError(f"invalid seed length {len(seed)} used for key generation")
        self._seed = seed

    def encrypt(self, value: bytes, authenticated_data: bytes) -> bytes:
        """See L{Cipher.encrypt}."""
        info = os.urandom(_INFO)
        return info + self._derived(info).encrypt(value, authenticated_data)

    def decrypt(self, data: bytes, authenticated_data: bytes) -> bytes:
        """See L{Cipher.decrypt}."""
        if len(data) < _INFO:
            raise TransformError(_TOO_SHORT)
        return self._derived(data[:_INFO]).decrypt(data[_INFO:], authenticated_data)

    def _derived(self, info: bytes) -> GCM:
        # HKDF's expansion of one block, RFC 5869 2.3: a key is as long as the digest.
        return GCM(hmac.digest(self._seed, info + b"\x01", "sha256"))


class PaddedCBC:
    """AES-CBC with PKCS #7 padding and a random initialization vector in front. It authenticates nothing."""

    def __init__(self, key: bytes) -> None:
        self._algorithm = AES(key)

    def encrypt(self, value: bytes, authenticated_data: bytes) -> bytes:
        """See L{Cipher.encrypt}."""
        padding = _BLOCK - len(value) % _BLOCK
        start = os.urandom(_BLOCK)
        encryptor = BlockCipher(self._algorithm, CBC(start)).encryptor()
        return start + encryptor.update(value + bytes([padding]) * padding) + encryptor.finalize()

    def decrypt(self, data: bytes, authenticated_data: bytes) -> bytes:
        """See L{Cipher.decrypt}."""
        if len(data) < _BLOCK:
            raise TransformError(_TOO_SHORT)
        if len(data) % _BLOCK:
            raise TransformError("the stored data is not a multiple of the block size")
        if len(data) == _BLOCK:
            # The reference crashes here.
            raise TransformError("invalid PKCS7 data (empty or not padded)")
        decryptor = BlockCipher(self._algorithm, CBC(data[:_BLOCK])).decryptor()
        padded = decryptor.update(data[_BLOCK:]) + decryptor.finalize()
        padding = padded[-1]
        if not 0 < padding <= len(padded):
            raise TransformError("invalid PKCS7 data (empty or not padded)")
        if padded[-padding:] != bytes([padding]) * padding:
            raise TransformError("invalid padding on input")
        return padded[:-padding]


class SecretBox:
    """XSalsa20 and Poly1305, after a random nonce. The storage key is not authenticated."""

    def __init__(self, key: bytes) -> None:
        # Imported late, as few configurations use it.
        from nacl.bindings import crypto_secretbox, crypto_secretbox_open
        from nacl.exceptions import CryptoError

        self._key = key
        self._seal = crypto_secretbox
        self._open = crypto_secretbox_open
        self._refused = CryptoError

    def encrypt(self, value: bytes, authenticated_data: bytes) -> bytes:
        """See L{Cipher.encrypt}."""
        nonce = os.urandom(_BOX_NONCE)
        return nonce + self._seal(value, nonce, self._key)

    def decrypt(self, data: bytes, authenticated_data: bytes) -> bytes:
        """See L{Cipher.decrypt}."""
        if len(data) < _BOX_NONCE + _BOX_OVERHEAD:
            raise TransformError(_TOO_SHORT)
        try:
            return self._open(data[_BOX_NONCE:], data[:_BOX_NONCE], self._key)
        except self._refused:
            # The reference has the same text for all errors.
            raise TransformError("output array was not large enough for encryption") from None
