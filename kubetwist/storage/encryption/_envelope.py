"""
Envelope encryption: each value is stored with its data encryption key, which a key management service has encrypted.

One such key, or seed of keys, encrypts many values; the service is called for a new one, and to decrypt an unknown one
for a read.

@see: kubernetes/apiserver, C{pkg/storage/value/encrypt/envelope/kmsv2/envelope.go}.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Final, Protocol

from attrs import field, frozen

from twisted.internet.defer import Deferred

from ...api.errors import (
    invalid,
    required,
)
from ...api.names import (
    validate_dns1123_label,
    validate_dns1123_subdomain,
)
from ...schema.protobuf.fields import (
    Annotations,
    Fields,
    count,
    number,
    octets,
    pairs,
)
from ...schema.protobuf.wire import (
    LENGTH,
    WireError,
    length,
)
from ._ciphers import (
    GCM,
    Cipher,
    SeededGCM,
    TransformError,
)
from ._transformers import Plain
from .metrics import KeyIDMetrics

#: The kind of the encrypted key: a key of AES-GCM, or a seed of such keys.
KEY, SEED = 0, 1

_MAX_ANNOTATIONS: Final = 32 * 1024
_MAX_KEY_ID_LENGTH: Final = 1024
_MAX_SOURCE_LENGTH: Final = 1024
#: Maximum number of cached keys: one of each server and key of the service that has ever written.
CACHE_SIZE: Final = 10_000

_FIRST: Final = 1 << 3 | LENGTH


@frozen
class DEKSource:
    """
    The envelope of a value: its data encryption key, as the service encrypted it.

    @ivar key_id: The id of the service's key.
    @ivar encrypted: The encrypted key or seed.
    @ivar annotations: The annotations that the service needs to decrypt the key.
    @ivar kind: C{KEY} or C{SEED}.
    """

    key_id: str
    encrypted: bytes = field(repr=False)
    annotations: Annotations = ()
    kind: int = SEED

    def wire(self) -> bytes:
        """Return the stored message without the value."""
        return (
            octets(2, self.key_id.encode())
            + octets(3, self.encrypted)
            + pairs(4, self.annotations)
            + count(5, self.kind)
        )

    def validation_error(self) -> str:
        """Return the error of an invalid envelope; C{""} if it is valid."""
        if self.kind not in (KEY, SEED):
            return f"unknown encryptedDEKSourceType: {self.kind}"
        if not self.encrypted:
            return "failed to validate encrypted DEK source: encrypted DEK source is empty"
        if len(self.encrypted) > _MAX_SOURCE_LENGTH:
            return (
                f"failed to validate encrypted DEK source: encrypted DEK source is {len(self.encrypted)} bytes, which "
                f"exceeds the max size of {_MAX_SOURCE_LENGTH}"
            )
        reason = key_id_problem(self.key_id)
        if reason:
            return f"failed to validate key id: {reason}"
        reason = _annotations_problem(self.annotations)
        return f"failed to validate annotations: {reason}" if reason else ""


def key_id_problem(key_id: str) -> str:
    """Return the error of an invalid key id; C{""} if it is valid."""
    size = len(key_id.encode())
    if not size:
        return "keyID is empty"
    if size > _MAX_KEY_ID_LENGTH:
        return f"keyID is {size} bytes, which exceeds the max size of {_MAX_KEY_ID_LENGTH}"
    return ""


def key_id_hash(key_id: str) -> str:
    """Return the hash that logs and errors show instead of a key id."""
    return f"sha256:{sha256(key_id.encode()).hexdigest()}" if key_id else ""


def _annotations_problem(annotations: Annotations) -> str:
    problems = [validation_error for name, _ in annotations if (validation_error := _domain_problem(name))]
    size = sum(len(name.encode()) + len(value) for name, value in annotations)
    if size > _MAX_ANNOTATIONS:
        problems.append(f"total size of annotations is {size}, which exceeds the max size of {_MAX_ANNOTATIONS}")
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else ""


def _domain_problem(name: str) -> str:
    if not name:
        return str(required("annotations"))
    name = name.removesuffix(".")
    part, reason = name, ",".join(validate_dns1123_subdomain(name))
    if not reason and "." not in name:
        reason = "should be a domain with at least two segments separated by dots"
    if not reason:
        for part in name.split("."):
            reason = ",".join(validate_dns1123_label(part))
            if reason:
                break
    return str(invalid("annotations", part, reason)) if reason else ""


class DEKFetcher(Protocol):
    """Fetches data encryption keys from a key management service."""

    def fetch(self, source: DEKSource) -> Deferred[None]:
        """
        Fetch a key and pass it to its L{Envelope}.

        The Deferred fails with L{TransformError} if the key cannot be fetched.
        """


class MissingKey(Exception):
    """
    A value cannot be decrypted before its key is fetched: await C{fetch}, then try again.

    @ivar authenticated_data: The storage key of the value.
    """

    def __init__(self, fetcher: DEKFetcher, source: DEKSource, authenticated_data: bytes) -> None:
        super().__init__("the key of a value is not known yet")
        self.fetcher = fetcher
        self.source = source
        self.authenticated_data = authenticated_data

    def fetch(self) -> Deferred[None]:
        """See L{DEKFetcher.fetch}."""
        return self.fetcher.fetch(self.source)


class EncryptionState:
    """The present key for writes, with its envelope."""

    def __init__(self, source: DEKSource, seed: bytes) -> None:
        """
        @raise TransformError: The seed is too short.
        """
        self.source = source
        self.cipher: Cipher = SeededGCM(seed)
        self._wire = source.wire()

    def seal(self, value: bytes, authenticated_data: bytes) -> bytes:
        """Return the message to store."""
        data = self.cipher.encrypt(value, authenticated_data)
        return b"%c%b%b%b" % (_FIRST, number(len(data)), data, self._wire)


class Envelope:
    """
    The transformer of one service.

    @ivar uses: Counts the uses of the service's own keys.
    """

    def __init__(
        self, fetcher: DEKFetcher, reading: Callable[[], EncryptionState], writing: Callable[[], EncryptionState]
    ) -> None:
        """
        @param reading: Returns the present key; raises L{TransformError} if it is unknown yet.
        @param writing: The same, but also raises if the service did not respond for too long.
        """
        self._fetcher = fetcher
        self._reading = reading
        self._writing = writing
        self.uses = KeyIDMetrics()
        self._ciphers: dict[DEKSource, Cipher] = {}
        #: The ciphers by the encoded envelope, which many values have in common.
        self._sources: dict[bytes, DEKSource] = {}

    def encrypt(self, value: bytes, authenticated_data: bytes) -> bytes:
        """See L{kubetwist.storage.encryption._transformers.Transformer.encrypt}."""
        state = self._writing()
        data = state.seal(value, authenticated_data)
        self.uses.wrote(state.source.key_id)
        return data

    def decrypt(self, data: bytes, authenticated_data: bytes) -> Plain:
        """See L{kubetwist.storage.encryption._transformers.Transformer.decrypt}."""
        try:
            source, sealed = self._split(data)
        except WireError as error:
            raise TransformError(str(error)) from None
        current = self._reading().source
        cipher = self._ciphers.get(source)
        if cipher is None:
            raise MissingKey(self._fetcher, source, authenticated_data)
        value = cipher.decrypt(sealed, authenticated_data)
        self.uses.read(source.key_id)
        return Plain(value, source.key_id != current.key_id or source.kind != current.kind)

    @property
    def cached_keys(self) -> int:
        """Return the number of cached keys."""
        return len(self._ciphers)

    def has_key(self, source: DEKSource) -> bool:
        """Return whether the key of such values is cached."""
        return source in self._ciphers

    def cache_cipher(self, source: DEKSource, cipher: Cipher) -> None:
        """Decrypt values of C{source} with C{cipher} from now on."""
        while len(self._ciphers) >= CACHE_SIZE:
            self._ciphers.pop(next(iter(self._ciphers)))
        self._ciphers[source] = cipher

    def cache_plaintext_key(self, source: DEKSource, key: bytes) -> None:
        """
        Decrypt values of C{source} with the key or seed that the service has decrypted.

        @raise TransformError: It is not valid as either.
        """
        if source.kind == SEED:
            self.cache_cipher(source, SeededGCM(key))
        elif len(key) not in (16, 24, 32):
            raise TransformError(f"crypto/aes: invalid key size {len(key)}")
        else:
            self.cache_cipher(source, GCM(key))

    def _split(self, data: bytes) -> tuple[DEKSource, bytes]:
        """
        Parse a stored message.

        @raise WireError: It is malformed.
        @raise TransformError: A required field is missing.
        """
        if data and data[0] == _FIRST:
            try:
                start, end = length(data, 1, len(data))
            except IndexError:
                raise WireError("proto: cannot parse invalid wire-format data") from None
            source = self._sources.get(data[end:])
            if source is not None and end > start:
                return source, data[start:end]
        message = Fields(data)
        source = DEKSource(message.text(2), message.octets(3), message.annotations(4), message.number(5))
        sealed = message.octets(1)
        if source.kind in (KEY, SEED) and not sealed:
            raise TransformError("encrypted data is empty")
        validation_error = source.validation_error()
        if validation_error:
            raise TransformError(validation_error)
        if len(self._sources) >= CACHE_SIZE:
            self._sources.clear()
        if data[0] == _FIRST:
            rest = data[length(data, 1, len(data))[1] :]
            # The value may occur more than once; the last one counts.
            if Fields(rest).octets(1) == b"":
                self._sources[rest] = source
        return source, sealed
