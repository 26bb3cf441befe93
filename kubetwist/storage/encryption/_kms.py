"""
A key management service: its status is polled, keys are rotated as it requires, and old keys are fetched when needed.

@see: kubernetes/apiserver, C{pkg/server/options/encryptionconfig/config.go}.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable
from datetime import UTC, datetime
from time import perf_counter
from typing import Final, Protocol, TypeVar
from uuid import uuid4

from attrs import frozen

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from ...api.go.quote import quoted
from .._expiry import Timer
from ..locks import FlatLock
from ._ciphers import SEED as SEED_SIZE
from ._ciphers import (
    TransformError,
    TransformUnavailable,
)
from ._envelope import (
    SEED,
    DEKSource,
    EncryptionState,
    Envelope,
    key_id_hash,
    key_id_problem,
)
from .metrics import EncryptionMetrics

#: Seconds between two polls of a healthy service, and of an unhealthy one.
_HEALTHZ_POSITIVE_INTERVAL: Final = 60.0
_HEALTHZ_NEGATIVE_INTERVAL: Final = 10.0
#: Seconds for which the result of a health check is reused.
_HEALTHZ_POSITIVE_TTL: Final = 20.0
_HEALTHZ_NEGATIVE_TTL: Final = 3.0
#: Seconds for which the present key is used without a response of the service.
_WRITE_DEK_MAX_TTL: Final = 180.0

_T = TypeVar("_T")
_VERSIONS: Final = ("v2", "v2beta1")


class ServiceError(Exception):
    """
    A call of a service failed.

    @ivar unavailable: Whether it did not respond.
    @ivar status: The code of gRPC.
    """

    def __init__(self, message: str, unavailable: bool = False, status: str = TransformError.status) -> None:
        super().__init__(message)
        self.unavailable = unavailable
        self.status = status


@frozen
class ServiceStatus:
    """The status that a service reports."""

    version: str
    healthz: str
    key_id: str


class KMSService(Protocol):
    """The calls of version 2 of the API. They fail with L{ServiceError}, at the latest after their timeout."""

    def status(self) -> Awaitable[ServiceStatus]:
        """Return the status of the service."""

    def encrypt(self, uid: str, plaintext: bytes) -> Awaitable[DEKSource]:
        """Encrypt a seed; C{uid} is for logs."""

    def decrypt(self, uid: str, source: DEKSource) -> Awaitable[bytes]:
        """Return the decrypted key or seed."""

    def close(self) -> None:
        """Make no more calls."""


class KMSv2Provider:
    """
    One service of the configuration.

    @ivar name: The name in the configuration.
    @ivar envelope: The transformer of values with its keys.
    """

    _log = Logger()

    def __init__(self, name: str, service: KMSService, clock: Timer, metrics: EncryptionMetrics | None = None) -> None:
        self.name = name
        self._metrics = metrics or EncryptionMetrics()
        self.envelope = Envelope(self, self._current, self._writable)
        self._service = service
        self._clock = clock
        self._state: EncryptionState | None = None
        self._expires = 0.0
        self._version = ""
        self._lock = FlatLock()
        #: The problem found by the newest health check, its time, and for how long it is reused.
        self._problem: str | None = None
        self._checked_at: float | None = None
        self._result_ttl = _HEALTHZ_NEGATIVE_TTL
        self._fetching: dict[DEKSource, list[Deferred[None]]] = {}
        self._timer: IDelayedCall | None = None
        self._closed = False

    # Start and stop.

    async def start(self) -> None:
        """Poll the status once, within the timeout of a call, then periodically. The service may come up later."""
        await self._poll()

    def close(self) -> None:
        """Stop all calls. Idempotent."""
        self._closed = True
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()
        self._service.close()

    async def _poll(self) -> None:
        self._timer = None
        problem = await self.check()
        if problem is not None and not self._closed:
            self._log.error("kms plugin {name} failed health check probe: {problem}", name=self.name, problem=problem)
        if not self._closed:
            wait = _HEALTHZ_POSITIVE_INTERVAL if problem is None else _HEALTHZ_NEGATIVE_INTERVAL
            self._timer = self._clock.callLater(wait, self._poll_again)

    def _poll_again(self) -> None:
        Deferred.fromCoroutine(self._poll()).addErrback(
            lambda failure: self._log.failure("health check of kms plugin failed: name={name}", failure, name=self.name)
        )

    # Health.

    async def check(self) -> str | None:
        """Return the error of the service, or L{None}; a recent result is reused."""
        await self._lock.acquire()
        try:
            return await self._check()
        finally:
            self._lock.release()

    async def _check(self) -> str | None:
        now = self._clock.seconds()
        if self._checked_at is not None and now - self._checked_at < self._result_ttl:
            return self._problem
        message: str | None
        try:
            status = await self._timed("Status", self._service.status())
        except ServiceError as error:
            self._problem = str(error)
            message = (
                f"failed to perform status section of the healthz check for KMS Provider {self.name}, error: {error}"
            )
        else:
            self._problem = message = await self._check_status(status)
        self._checked_at = self._clock.seconds()
        self._result_ttl = _HEALTHZ_POSITIVE_TTL if message is None else _HEALTHZ_NEGATIVE_TTL
        return message

    async def _check_status(self, status: ServiceStatus) -> str | None:
        problems = []
        if status.healthz != "ok":
            problems.append(f"got unexpected healthz status: {status.healthz}")
        if status.version not in _VERSIONS:
            problems.append(f"expected KMSv2 API version v2, got {status.version}")
        else:
            self._version = self._version or status.version
            if self._version != status.version:
                problems.append(
                    "KMSv2 API version should not change after the initial status response version "
                    f"{self._version}, got {status.version}"
                )
        reason = key_id_problem(status.key_id)
        if reason:
            self.envelope.uses.refused(status.key_id)
            problems.append(f"got invalid KMSv2 KeyID hash {quoted(key_id_hash(status.key_id))}: {reason}")
        else:
            self.envelope.uses.named(status.key_id)
            failed = await self._rotate_dek_on_key_id_change(status.key_id, str(uuid4()))
            if failed:
                problems.append(failed)
        if not problems:
            return None
        text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        return f"kmsv2 Provider {self.name} is not healthy, error: {text}"

    async def _timed(self, method: str, answer: Awaitable[_T]) -> _T:
        began, status = perf_counter(), "OK"
        try:
            return await answer
        except ServiceError as error:
            status = error.status
            raise
        finally:
            self._metrics.called(self.name, f"/v2.KeyManagementService/{method}", began, status)

    # The key for writes.

    def _current(self) -> EncryptionState:
        if self._state is None:
            raise TransformUnavailable("got unexpected nil transformer")
        return self._state

    def _writable(self) -> EncryptionState:
        state, now = self._current(), self._clock.seconds()
        if now > self._expires:
            raise TransformUnavailable(
                f"encryptedDEKSource with keyID hash {quoted(key_id_hash(state.source.key_id))} expired at "
                f"{_rfc3339(self._expires)} (current time is {_rfc3339(now)})"
            )
        return state

    async def _rotate_dek_on_key_id_change(self, key_id: str, uid: str) -> str:
        """
        Make writes use a key that the service encrypted with its present key.

        @return: The problem; L{None} on success.
        """
        expires = self._clock.seconds() + _WRITE_DEK_MAX_TTL
        current = self._state
        if current is not None and current.source.key_id == key_id:
            self._expires = expires
            return ""
        problem, made_with = "<nil>", ""
        try:
            state = await self._generate(uid)
        except (ServiceError, TransformError) as error:
            problem = str(error)
        else:
            made_with = state.source.key_id
            if made_with == key_id:
                self._state, self._expires = state, expires
                # The key is cached, as the values written now will be read.
                self.envelope.cache_cipher(state.source, state.cipher)
                self._log.info(
                    "kms plugin {name}: encrypting with a new seed (uid {uid}, key id hash {key})",
                    name=self.name,
                    uid=uid,
                    key=key_id_hash(key_id),
                )
                return ""
        state_error = "<nil>" if current is not None else "got unexpected nil transformer"
        before = "" if current is None else current.source.key_id
        until = _rfc3339(self._expires) if current is not None else "0001-01-01T00:00:00Z"
        return (
            f"failed to rotate DEK uid={quoted(uid)}, useSeed=true, errState={state_error}, errGen={problem}, "
            f"statusKeyIDHash={quoted(key_id_hash(key_id))}, encryptKeyIDHash={quoted(key_id_hash(made_with))}, "
            f"stateKeyIDHash={quoted(key_id_hash(before))}, expirationTimestamp={until}"
        )

    async def _generate(self, uid: str) -> EncryptionState:
        seed = os.urandom(SEED_SIZE)
        began = perf_counter()
        try:
            source = await self._timed("Encrypt", self._service.encrypt(uid, seed))
        except ServiceError as error:
            self._metrics.failed += 1
            raise TransformError(f"failed to encrypt DEK, error: {error}") from None
        assert source.kind == SEED, "that is what was encrypted"
        problem = source.validation_error()
        if problem:
            self._metrics.failed += 1
            raise TransformError(problem)
        self._metrics.generated.observe(perf_counter() - began)
        return EncryptionState(source, seed)

    # The keys for reads.

    def fetch(self, source: DEKSource) -> Deferred[None]:
        """See L{kubetwist.storage.encryption._envelope.DEKFetcher.fetch}; concurrent fetches share one call."""
        waiting = self._fetching.get(source)
        answer: Deferred[None] = Deferred()
        if waiting is not None:
            waiting.append(answer)
            return answer
        self._fetching[source] = [answer]
        self._metrics.misses += 1
        Deferred.fromCoroutine(self._fetch(source)).addBoth(self._fetched, source)
        return answer

    async def _fetch(self, source: DEKSource) -> None:
        if self.envelope.has_key(source):
            return
        try:
            key = await self._timed("Decrypt", self._service.decrypt(str(uuid4()), source))
        except ServiceError as error:
            kind = TransformUnavailable if error.unavailable else TransformError
            raise kind(f"failed to decrypt DEK, error: {error}") from None
        self.envelope.cache_plaintext_key(source, key)

    def _fetched(self, result: Failure | None, source: DEKSource) -> None:
        failure = result
        if failure is not None and not failure.check(TransformError):
            self._log.failure("asking kms plugin {name} for a key failed", failure, name=self.name)
            failure = Failure(TransformError("failed to decrypt DEK, error: an unexpected one"))
        for answer in self._fetching.pop(source):
            if failure is None:
                answer.callback(None)
            else:
                answer.errback(failure)


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
