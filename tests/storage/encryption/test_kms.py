"""Tests for L{kubetwist.storage.encryption._kms}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.encryption._ciphers import (
    TransformError,
    TransformUnavailable,
)
from kubetwist.storage.encryption._envelope import (
    DEKSource,
    MissingKey,
    key_id_hash,
)
from kubetwist.storage.encryption._kms import (
    KMSv2Provider,
    ServiceError,
    ServiceStatus,
)
from kubetwist.storage.encryption._transformers import Plain

PLACE = b"/registry/secrets/default/db"


class FakeService:
    """
    A key management service that the test controls.

    @ivar calls: The calls.
    @ivar problem: The error of every call; L{None} for none.
    @ivar encrypts_with: The key that is used, if not the one of the status.
    @ivar held: The delayed responses; L{None} for immediate responses.
    """

    def __init__(self) -> None:
        self.key_id = "one"
        self.healthz = "ok"
        self.version = "v2"
        self.calls: list[str] = []
        self.problem: ServiceError | None = None
        self.encrypts_with = ""
        self.held: list[tuple[Deferred[Any], Any]] | None = None
        self.closed = False

    def _answer(self, call: str, value: Any) -> Deferred[Any]:
        self.calls.append(call)
        if self.problem is not None:
            return fail(self.problem)
        if self.held is not None:
            response: Deferred[Any] = Deferred()
            self.held.append((response, value))
            return response
        return succeed(value)

    def status(self) -> Deferred[ServiceStatus]:
        """See L{kubetwist.storage.encryption._kms.KMSService.status}."""
        return self._answer("status", ServiceStatus(self.version, self.healthz, self.key_id))

    def encrypt(self, uid: str, plaintext: bytes) -> Deferred[DEKSource]:
        """See L{kubetwist.storage.encryption._kms.KMSService.encrypt}."""
        return self._answer("encrypt", DEKSource(self.encrypts_with or self.key_id, plaintext[::-1]))

    def decrypt(self, uid: str, source: DEKSource) -> Deferred[bytes]:
        """See L{kubetwist.storage.encryption._kms.KMSService.decrypt}."""
        return self._answer(f"decrypt {source.key_id}", source.encrypted[::-1])

    def close(self) -> None:
        """See L{kubetwist.storage.encryption._kms.KMSService.close}."""
        self.closed = True

    def take_calls(self) -> list[str]:
        """Return the calls, and clear the list."""
        calls, self.calls = self.calls, []
        return calls


class ProviderTests(SynchronousTestCase):
    """A provider that calls its service only when necessary."""

    def setUp(self) -> None:
        """Create a service and its provider."""
        self.clock = Clock()
        self.clock.rightNow = 1_000_000.0
        self.service = FakeService()
        self.provider = KMSv2Provider("foo", self.service, self.clock)
        self.addCleanup(self.provider.close)

    def start(self) -> None:
        """Start the provider."""
        self.successResultOf(self.provider.start())

    def check(self) -> str | None:
        """Return the error of the health check."""
        return self.successResultOf(self.provider.check())

    def test_seed(self) -> None:
        """One seed encrypts all values while the service has the same key; the status is polled every minute."""
        self.start()
        self.assertEqual(self.service.take_calls(), ["status", "encrypt"])
        data = [self.provider.envelope.encrypt(b"%d" % number, PLACE) for number in range(3)]
        self.assertEqual([self.provider.envelope.decrypt(one, PLACE).value for one in data], [b"0", b"1", b"2"])
        self.clock.advance(59)
        self.assertEqual(self.service.take_calls(), [])
        self.clock.advance(1)
        self.assertEqual(self.service.take_calls(), ["status"])
        self.clock.pump([60] * 5)
        self.assertEqual(self.service.take_calls(), ["status"] * 5)

    def test_rotation(self) -> None:
        """A new key of the service creates a new seed; values of the old one are decrypted, and are stale."""
        self.start()
        envelope = self.provider.envelope
        old = envelope.encrypt(b"old", PLACE)
        self.service.key_id = "two"
        self.service.take_calls()
        self.clock.advance(60)
        self.assertEqual(self.service.take_calls(), ["status", "encrypt"])
        new = envelope.encrypt(b"new", PLACE)
        self.assertEqual(envelope.decrypt(new, PLACE), Plain(b"new", False))
        self.assertEqual(envelope.decrypt(old, PLACE), Plain(b"old", True))
        self.assertEqual(self.service.take_calls(), [])

    def test_fetch(self) -> None:
        """A seed of another server is fetched once for all waiting reads, and cached."""
        self.start()
        other = KMSv2Provider("foo", self.service, self.clock)
        self.addCleanup(other.close)
        self.successResultOf(other.start())
        data = other.envelope.encrypt(b"value", PLACE)
        missing = self.assertRaises(MissingKey, self.provider.envelope.decrypt, data, PLACE)
        self.service.take_calls()
        self.service.held = []
        answers = [missing.fetch(), missing.fetch()]
        self.assertEqual(self.service.take_calls(), ["decrypt one"])
        ((held, value),) = self.service.held
        held.callback(value)
        self.assertEqual([self.successResultOf(response) for response in answers], [None, None])
        self.assertEqual(self.provider.envelope.decrypt(data, PLACE), Plain(b"value", False))
        self.successResultOf(missing.fetch())
        self.assertEqual(self.service.take_calls(), [])

    def test_fetch_fails(self) -> None:
        """A seed that cannot be decrypted is an error, and is fetched again the next time."""
        self.start()
        missing = MissingKey(self.provider, DEKSource("zero", bytes(32)), PLACE)
        for unavailable, kind in ((False, TransformError), (True, TransformUnavailable)):
            self.service.problem = ServiceError("rpc error", unavailable)
            failure = self.failureResultOf(missing.fetch())
            self.assertEqual((failure.type, str(failure.value)), (kind, "failed to decrypt DEK, error: rpc error"))
        self.service.problem = None
        self.successResultOf(missing.fetch())
        short = MissingKey(self.provider, DEKSource("zero", b"short"), PLACE)
        error = self.failureResultOf(short.fetch(), TransformError).value
        self.assertEqual(str(error), "invalid seed length 5 used for key generation")

    def test_late_service(self) -> None:
        """Without the service nothing is decrypted or encrypted; it is used within seconds after its start."""
        self.service.problem = ServiceError("rpc error: code = Unavailable desc = gone", True)
        self.start()
        envelope = self.provider.envelope
        for act in (
            lambda: envelope.encrypt(b"", PLACE),
            lambda: envelope.decrypt(b"\x0a\x01x\x12\x01k\x1a\x01s", PLACE),
        ):
            error = self.assertRaises(TransformUnavailable, act)
            self.assertEqual(str(error), "got unexpected nil transformer")
        self.service.problem = None
        self.clock.advance(9)
        self.assertRaises(TransformUnavailable, envelope.encrypt, b"", PLACE)
        self.clock.advance(1)
        envelope.encrypt(b"", PLACE)

    def test_lost_service(self) -> None:
        """When the service fails, decryption continues, and encryption for three minutes."""
        self.start()
        envelope = self.provider.envelope
        data = envelope.encrypt(b"value", PLACE)
        self.service.problem = ServiceError("gone", True)
        self.clock.pump([10] * 18)
        envelope.encrypt(b"value", PLACE)
        self.clock.pump([10])
        error = self.assertRaises(TransformError, envelope.encrypt, b"value", PLACE)
        self.assertEqual(
            str(error),
            f'encryptedDEKSource with keyID hash "{key_id_hash("one")}" expired at 1970-01-12T13:49:40Z '
            "(current time is 1970-01-12T13:49:50Z)",
        )
        self.assertEqual(envelope.decrypt(data, PLACE).value, b"value")
        self.service.problem = None
        self.clock.pump([10])
        envelope.encrypt(b"value", PLACE)
        self.assertEqual(envelope.decrypt(data, PLACE), Plain(b"value", False))

    def test_health(self) -> None:
        """The result of a health check is reused, longer if the service is healthy."""
        self.start()
        self.service.take_calls()
        self.service.healthz = "tired"
        self.clock.advance(19)
        self.assertEqual((self.check(), self.service.take_calls()), (None, []))
        self.clock.advance(1)
        problem = "kmsv2 Provider foo is not healthy, error: got unexpected healthz status: tired"
        self.assertEqual((self.check(), self.service.take_calls()), (problem, ["status"]))
        self.clock.advance(2)
        self.assertEqual((self.check(), self.service.take_calls()), (problem, []))
        self.service.healthz = "ok"
        self.clock.advance(1)
        self.assertEqual((self.check(), self.service.take_calls()), (None, ["status"]))

    def test_health_of_calls(self) -> None:
        """The error of a service that does not respond has a prefix when it is checked, and none when it is reused."""
        self.service.problem = ServiceError("gone", True)
        self.assertEqual(
            self.check(), "failed to perform status section of the healthz check for KMS Provider foo, error: gone"
        )
        self.assertEqual(self.check(), "gone")

    def test_answers(self) -> None:
        """A service with an invalid status is unhealthy, and its key is not used."""
        start = "kmsv2 Provider foo is not healthy, error: "
        for attributes, problem in (
            ({"version": "v1beta1"}, "expected KMSv2 API version v2, got v1beta1"),
            ({"key_id": ""}, 'got invalid KMSv2 KeyID hash "": keyID is empty'),
            (
                {"key_id": "", "healthz": "bad"},
                '[got unexpected healthz status: bad, got invalid KMSv2 KeyID hash "": keyID is empty]',
            ),
        ):
            self.setUp()
            for name, value in attributes.items():
                setattr(self.service, name, value)
            self.assertEqual(self.check(), start + problem)
        self.setUp()
        self.start()
        self.service.version = "v2beta1"
        self.clock.advance(60)
        self.assertEqual(
            self.check(),
            f"{start}KMSv2 API version should not change after the initial status response version v2, got v2beta1",
        )

    def test_two_keys(self) -> None:
        """A service that encrypts with another key than in its status is unhealthy; the former seed is kept."""
        self.start()
        data = self.provider.envelope.encrypt(b"value", PLACE)
        self.service.key_id, self.service.encrypts_with = "two", "three"
        self.clock.advance(60)
        problem = self.check() or ""
        self.assertIn("failed to rotate DEK uid=", problem)
        self.assertIn(
            f'errState=<nil>, errGen=<nil>, statusKeyIDHash="{key_id_hash("two")}", '
            f'encryptKeyIDHash="{key_id_hash("three")}", stateKeyIDHash="{key_id_hash("one")}", '
            "expirationTimestamp=1970-01-12T13:49:40Z",
            problem,
        )
        self.assertEqual(self.provider.envelope.decrypt(data, PLACE), Plain(b"value", False))

    def test_no_seed(self) -> None:
        """A service that returns an empty ciphertext is unhealthy."""
        self.service.encrypts_with = "k" * 1025
        problem = self.check() or ""
        self.assertIn(
            "useSeed=true, errState=got unexpected nil transformer, errGen=failed to validate key id: keyID is 1025 "
            "bytes, which exceeds the max size of 1024,",
            problem,
        )
        self.assertTrue(problem.endswith("expirationTimestamp=0001-01-01T00:00:00Z"), problem)

    def test_close(self) -> None:
        """A closed provider makes no more calls."""
        self.start()
        self.provider.close()
        self.assertEqual((self.clock.getDelayedCalls(), self.service.closed), ([], True))
        self.service.take_calls()
        self.service.held = []
        late = KMSv2Provider("foo", self.service, self.clock)
        starting = Deferred.fromCoroutine(late.start())
        late.close()
        ((held, _),) = self.service.held
        held.errback(ServiceError("cancelled", True))
        self.successResultOf(starting)
        self.assertEqual(self.clock.getDelayedCalls(), [])
