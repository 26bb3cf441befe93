"""Tests of L{kubetwist.server.processmetrics}."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from twisted.internet import reactor
from twisted.internet.task import deferLater
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.connection.memorylimit import MemoryGuard
from kubetwist.server.processmetrics import collect_memory, collect_watch_caches
from kubetwist.server.reactordelay import INTERVAL
from tests.metrics.servercase import MetricsTestCase


def cache(ready: bool, pending: bool = False) -> Any:
    """Return a watch cache in a state."""
    return SimpleNamespace(ready=ready, on_demand=SimpleNamespace(pending=pending))


class CollectTests(SynchronousTestCase):
    """Values that are read at a scrape."""

    def test_watch_caches(self) -> None:
        """A cache that is filled on demand is not missed before it is needed."""
        caches = {("", "pods"): cache(True), ("", "nodes"): cache(False), ("apps", "deployments"): cache(False, True)}
        (snapshot,) = collect_watch_caches(lambda: caches)
        self.assertEqual(dict(snapshot.values), {("", "pods"): 0, ("", "nodes"): 1, ("apps", "deployments"): 0})

    def test_memory(self) -> None:
        """The limit, and the refused requests."""
        guard = MemoryGuard(1000)
        guard.refused = 3
        values = {snapshot.name: dict(snapshot.values)[()] for snapshot in collect_memory(guard)}
        expected = {"kubetwist_memory_limit_bytes": 1000, "kubetwist_memory_rejected_requests_total": 3}
        self.assertEqual(values, expected)


class ServedTests(MetricsTestCase):
    """Metrics of a server."""

    async def test_served(self) -> None:
        """The certificates of a server expire in about a year, its caches are filled, and its reactor is measured."""
        name = "kubetwist_certificate_expiration_timestamp_seconds"
        for certificate, years in (("serving", 1), ("front-proxy-client", 1), ("ca", 10), ("front-proxy-ca", 10)):
            expires = datetime.fromtimestamp(await self.counted(name, certificate=certificate), UTC)
            lifetime = timedelta(days=365 * years)
            self.assertLess(abs(expires - datetime.now(UTC) - lifetime), timedelta(days=1), certificate)
        self.assertEqual(await self.counted("kubetwist_watch_cache_unready"), 0)
        while not await self.counted("kubetwist_reactor_delay_seconds_count"):
            await deferLater(reactor, INTERVAL)
