"""Tests for L{kubetwist.storage.etcd.sizes}."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.etcd._errors import NotSent
from kubetwist.storage.etcd._grpcclient import GRPCClient
from kubetwist.storage.etcd._metrics import EtcdMetrics
from kubetwist.storage.etcd.address import Address
from kubetwist.storage.etcd.sizes import EtcdSizes
from tests.storage.etcd.case import EtcdCase
from tests.storage.etcd.counts import metric_values


class SizeTests(SynchronousTestCase):
    """Members that do not respond."""

    def test_lost(self) -> None:
        """A member that stops responding has no size any more and is requested again; stop() leaves no timer."""

        class Lost(GRPCClient):
            def status(self, timeout: float | None = None) -> Any:
                raise NotSent("it is gone")

        clock, metrics = Clock(), EtcdMetrics()
        member = Lost(Address.parse("http://127.0.0.1:1"), clock)
        metrics.sizes[member.address.url] = 1
        sizes = EtcdSizes([member], clock, 30.0, metrics)
        sizes.start()
        self.assertEqual(metrics.sizes, {})
        metrics.sizes[member.address.url] = 1
        clock.advance(30)
        self.assertEqual(metrics.sizes, {})
        sizes.stop()
        sizes.stop()
        self.assertEqual(clock.getDelayedCalls(), [])


class SizeTallyTests(EtcdCase):
    """Tests for sizes with a real etcd."""

    def test_sizes(self) -> None:
        """The database sizes of members are read; the size of the cluster is the largest."""
        storage = self.open()
        metrics = storage.client.metrics
        sizes = EtcdSizes(storage.client.members, self.reactor, 3600.0, metrics)
        self.addCleanup(sizes.stop)
        sizes.start()
        self.reactor.turn_until(lambda: metrics.sizes)
        ((member, size),) = metrics.sizes.items()
        self.assertEqual(member, storage.client.members[0].address.url)
        self.assertGreater(size, 10_000)
        self.assertEqual(metric_values(metrics, "apiserver_storage_size_bytes"), {("etcd-0",): size})
        self.assertEqual(metric_values(metrics, "apiserver_storage_db_total_size_in_bytes"), {(member,): size})

    def test_health(self) -> None:
        """A member that does not respond is unhealthy, until it responds."""
        client = self.open().client
        (member,) = client.members
        for change, expected in (
            (lambda: None, 1),
            (lambda: client.report_failure(member, None), 0),
            (member.mark_healthy, 1),
        ):
            change()
            (health,) = [one for one in client.collect() if one.name == "kubetwist_etcd_member_healthy"]
            self.assertEqual(dict(health.values), {(member.address.url,): expected})
