"""Tests for L{kubetwist.storage.encryption.metrics}."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupResource
from kubetwist.metrics.registry import Histogram, MetricSnapshot
from kubetwist.storage.encryption._ciphers import TransformError
from kubetwist.storage.encryption._configuration import (
    Key,
    Provider,
    Rule,
)
from kubetwist.storage.encryption._envelope import (
    DEKSource,
    MissingKey,
    key_id_hash,
)
from kubetwist.storage.encryption._kms import (
    KMSv2Provider,
    ServiceError,
)
from kubetwist.storage.encryption._transformers import Transformers
from kubetwist.storage.encryption.metrics import (
    EncryptionMetrics,
    KeyIDMetrics,
)

from .test_kms import FakeService

SECRETS, PLACE = GroupResource("", "secrets"), b"/registry/secrets/default/db"


def counted(readings: Any, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of a metric by sorted labels; for histograms the number of observations."""
    result: dict[tuple[str, ...], float] = {}
    one: MetricSnapshot
    for one in readings:
        if one.name == name:
            for labels, value in one.values:
                result[labels] = value.count if isinstance(value, Histogram) else value
    return result


class TransformationTests(SynchronousTestCase):
    """Metrics of values."""

    def test_counted(self) -> None:
        """Values are counted by resource, direction and prefix; failures are counted by status and not timed."""
        metrics = EncryptionMetrics()
        box = Provider("secretbox", (Key("one", bytes(32)),))
        rule = Rule((GroupResource("*", "*"),), (box, Provider("identity")))
        transformers = Transformers([rule], lambda service: self.fail("there is none"), metrics.transformations)
        secrets = transformers.of(SECRETS)
        data = secrets.encrypt(b"{}", PLACE)
        for _ in range(2):
            secrets.decrypt(data, PLACE)
        transformers.of(GroupResource("apps", "deployments")).decrypt(b"{}", PLACE)
        for bad in (data[:-1], b"k8s:enc:aesgcm:v1:x"):
            self.assertRaises(TransformError, secrets.decrypt, bad, PLACE)
        snapshots = list(metrics.collect({}, {}, key_id_hash))
        prefix = "k8s:enc:secretbox:v1:"
        self.assertEqual(
            counted(snapshots, "apiserver_storage_transformation_operations_total"),
            {
                ("secrets", "to_storage", prefix, "OK"): 1,
                ("secrets", "from_storage", prefix, "OK"): 2,
                ("secrets", "from_storage", prefix, "unknown-non-grpc"): 1,
                ("secrets", "from_storage", "unknown", "unknown-non-grpc"): 1,
                ("deployments.apps", "from_storage", "identity", "OK"): 1,
            },
        )
        self.assertEqual(
            counted(snapshots, "apiserver_storage_transformation_duration_seconds"),
            {("to_storage", prefix): 1, ("from_storage", prefix): 2, ("from_storage", "identity"): 1},
        )


class ServiceTests(SynchronousTestCase):
    """Metrics of services."""

    def setUp(self) -> None:
        """Create a service and its provider."""
        clock = Clock()
        self.service, self.metrics = FakeService(), EncryptionMetrics()
        self.provider = KMSv2Provider("foo", self.service, clock, self.metrics)
        self.addCleanup(self.provider.close)
        self.clock = clock

    def snapshots(self, name: str) -> dict[tuple[str, ...], float]:
        """Return the values of a metric."""
        envelope = self.provider.envelope
        readings = self.metrics.collect({"foo": envelope.cached_keys}, {"foo": envelope.uses}, key_id_hash)
        return counted(readings, f"apiserver_envelope_encryption_{name}")

    def test_keys(self) -> None:
        """Keys have hashes as labels, and are counted when they are used."""
        self.successResultOf(self.provider.start())
        data = self.provider.envelope.encrypt(b"x", PLACE)
        self.provider.envelope.decrypt(data, PLACE)
        self.provider.envelope.decrypt(data, PLACE)
        digest = key_id_hash("one")
        self.assertTrue(digest.startswith("sha256:"))
        uses = {("to_storage", "foo", digest, ""): 1, ("from_storage", "foo", digest, ""): 2}
        self.assertEqual(self.snapshots("key_id_hash_total"), uses)
        self.assertEqual(self.snapshots("key_id_hash_last_timestamp_seconds").keys(), uses.keys())
        self.assertEqual(self.snapshots("key_id_hash_status_last_timestamp_seconds").keys(), {("foo", digest, "")})
        self.assertEqual(self.snapshots("dek_source_cache_size"), {("foo",): 1})

    def test_calls(self) -> None:
        """Calls are timed by method and status code; invalid key ids are counted."""
        self.successResultOf(self.provider.start())
        self.service.problem = ServiceError("rpc error", True, "Unavailable")
        missing = MissingKey(self.provider, DEKSource("zero", bytes(32)), PLACE)
        self.failureResultOf(missing.fetch())
        self.service.problem, self.service.key_id = None, ""
        self.clock.advance(60)
        self.service.key_id = "x" * 2000
        self.clock.advance(10)
        method = "/v2.KeyManagementService/"
        self.assertEqual(
            self.snapshots("kms_operations_latency_seconds"),
            {
                ("foo", f"{method}Status", "OK"): 3,
                ("foo", f"{method}Encrypt", "OK"): 1,
                ("foo", f"{method}Decrypt", "Unavailable"): 1,
            },
        )
        self.assertEqual(
            self.snapshots("invalid_key_id_from_status_total"), {("foo", "empty"): 1, ("foo", "too_long"): 1}
        )
        self.flushLoggedErrors()

    def test_bounded(self) -> None:
        """The number of keys in metrics is limited to the most recently used ones."""
        uses = KeyIDMetrics()
        for number in range(150):
            uses.wrote(str(number))
            uses.named(str(number))
        self.assertEqual([key for _, key, _, _ in uses.uses()], [str(number) for number in range(50, 150)])
        self.assertEqual(len(uses.reported_at), 100)
