"""The transformers of a resource's values: its providers, their order, and their keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Final, NamedTuple, Protocol

from ...api.resource import GroupResource
from . import _configuration as configuration
from ._ciphers import (
    GCM,
    Cipher,
    PaddedCBC,
    SecretBox,
    TransformError,
    TransformUnavailable,
)
from ._configuration import (
    KeyService,
    Provider,
    Rule,
)
from .metrics import TransformMetrics

#: The prefix of all encrypted values.
ENCRYPTED: Final = b"k8s:enc:"

_EVERYTHING: Final = GroupResource("*", "*")
_CIPHERS: Final[Mapping[str, tuple[type, str]]] = {
    configuration.AESGCM: (GCM, "AES"),
    configuration.AESCBC: (PaddedCBC, "AES"),
    configuration.SECRETBOX: (SecretBox, "Secretbox"),
}


class Plain(NamedTuple):
    """
    A decrypted value.

    @ivar stale: Whether it would now be encrypted in another way, so that it is written even if it is unchanged.
    """

    value: bytes
    stale: bool


class Transformer(Protocol):
    """Transforms values to their stored form, and back. Any thread may call it, and it never blocks."""

    def encrypt(self, value: bytes, authenticated_data: bytes) -> bytes:
        """
        Return the stored form of C{value} at the key C{authenticated_data}.

        @raise TransformError: It cannot be encrypted now.
        """

    def decrypt(self, data: bytes, authenticated_data: bytes) -> Plain:
        """
        Return the value of the stored form at the key C{authenticated_data}.

        @raise TransformError: It cannot be decrypted.
        @raise kubetwist.storage.encryption._envelope.MissingKey: Its key must be fetched first.
        """


class Identity:
    """Leaves values unchanged, and refuses encrypted ones."""

    def encrypt(self, value: bytes, authenticated_data: bytes) -> bytes:
        """See L{Transformer.encrypt}."""
        return value

    def decrypt(self, data: bytes, authenticated_data: bytes) -> Plain:
        """See L{Transformer.decrypt}."""
        if data.startswith(ENCRYPTED):
            raise TransformError("identity transformer tried to read encrypted data")
        return Plain(data, False)


IDENTITY: Final = Identity()


class CipherTransformer:
    """One cipher as a transformer."""

    def __init__(self, cipher: Cipher) -> None:
        self.encrypt = cipher.encrypt
        self._decrypt = cipher.decrypt

    def decrypt(self, data: bytes, authenticated_data: bytes) -> Plain:
        """See L{Transformer.decrypt}."""
        return Plain(self._decrypt(data, authenticated_data), False)


class PrefixTransformers:
    """
    Transformers by the prefix of their stored form.

    The first one writes. Reads use the first one that succeeds of those with a matching prefix.
    """

    def __init__(self, transformers: Sequence[tuple[bytes, Transformer]], no_match_error: str) -> None:
        """
        @param no_match_error: The error of a value that has none of the prefixes.
        """
        self._transformers = tuple(transformers)
        self._prefix, self._first = self._transformers[0]
        self._no_match_error = no_match_error

    def encrypt(self, value: bytes, authenticated_data: bytes) -> bytes:
        """See L{Transformer.encrypt}."""
        return self._prefix + self._first.encrypt(value, authenticated_data)

    @property
    def prefix(self) -> bytes:
        """Return the prefix of newly written values."""
        return self._prefix

    def prefix_of(self, data: bytes) -> str:
        """Return the prefix of a value."""
        found = (prefix for prefix, _ in self._transformers if prefix and data.startswith(prefix))
        return next(found, b"unknown").decode()

    def decrypt(self, data: bytes, authenticated_data: bytes) -> Plain:
        """See L{Transformer.decrypt}."""
        return self.open(data, authenticated_data)[0]

    def open(self, data: bytes, authenticated_data: bytes) -> tuple[Plain, bytes]:
        """Decrypt as C{decrypt}, and return the prefix of the value, too."""
        problems: list[str] = []
        kind = TransformError
        for prefix, transformer in self._transformers:
            if not data.startswith(prefix):
                continue
            try:
                plain = transformer.decrypt(data[len(prefix) :], authenticated_data)
            except TransformError as error:
                # The error of identity only means that another transformer is needed.
                if prefix:
                    problems.append(str(error))
                    if isinstance(error, TransformUnavailable):
                        kind = TransformUnavailable
                continue
            if transformer is not self._first:
                return Plain(plain.value, True), prefix
            return plain, prefix
        different = list(dict.fromkeys(problems))
        if not different:
            raise TransformError(self._no_match_error)
        raise kind(different[0] if len(different) == 1 else f"[{', '.join(different)}]")


class InstrumentedTransformer:
    """L{PrefixTransformers} for the values of one resource, counted and timed."""

    def __init__(self, inner: PrefixTransformers, resource: str, metrics: TransformMetrics) -> None:
        self._inner = inner
        self._resource = resource
        self._metrics = metrics

    def encrypt(self, value: bytes, authenticated_data: bytes) -> bytes:
        """See L{Transformer.encrypt}."""
        began = perf_counter()
        prefix = self._inner.prefix.decode()
        try:
            data = self._inner.encrypt(value, authenticated_data)
        except TransformError as error:
            self._metrics.written(self._resource, prefix, began, error.status)
            raise
        self._metrics.written(self._resource, prefix, began, "OK")
        return data

    def decrypt(self, data: bytes, authenticated_data: bytes) -> Plain:
        """See L{Transformer.decrypt}."""
        began = perf_counter()
        try:
            plain, prefix = self._inner.open(data, authenticated_data)
        except TransformError as error:
            self._metrics.read(self._resource, self._inner.prefix_of(data), began, error.status)
            raise
        self._metrics.read(self._resource, prefix.decode(), began, "OK")
        return plain


class Transformers:
    """The transformers of all resources, by the rules of the file."""

    def __init__(
        self,
        rules: Sequence[Rule],
        service: Callable[[KeyService], Transformer],
        metrics: TransformMetrics | None = None,
    ) -> None:
        """
        @param service: Makes the transformer of a key management service; called once for each that the file has.
        @param metrics: The metrics of transformations.
        """
        self._metrics = metrics or TransformMetrics()
        found: dict[GroupResource, list[tuple[bytes, Transformer]]] = {}
        for rule in rules:
            made = [_transformer(provider, service) for provider in rule.providers]
            for resource in rule.resources:
                found.setdefault(resource, []).extend(made)
        self._by_resource = {
            resource: PrefixTransformers(transformers, "no matching prefix found")
            for resource, transformers in found.items()
        }

    def of(self, resource: GroupResource) -> Transformer:
        """Return the transformer of a resource: its specific rule, its group's rule, or the rule for all."""
        for rule in (resource, GroupResource(resource.group, "*"), _EVERYTHING):
            transformer = self._by_resource.get(rule)
            if transformer is not None:
                return InstrumentedTransformer(transformer, str(resource), self._metrics)
        return IDENTITY


def _transformer(provider: Provider, service: Callable[[KeyService], Transformer]) -> tuple[bytes, Transformer]:
    if provider.kind == configuration.IDENTITY:
        return b"", IDENTITY
    if provider.service is not None:
        return b"%bkms:v2:%b:" % (ENCRYPTED, provider.service.name.encode()), service(provider.service)
    cipher, name = _CIPHERS[provider.kind]
    keys = [(b"%b:" % key.name.encode(), CipherTransformer(cipher(key.secret))) for key in provider.keys]
    no_match_error = f"no matching key was found for the provided {name} transformer"
    return b"%b%b:v1:" % (ENCRYPTED, provider.kind.encode()), PrefixTransformers(keys, no_match_error)
