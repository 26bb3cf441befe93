"""Tests for L{kubetwist.storage.etcd._metrics} and C{sizes}, with a real etcd."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.storage.errors import KeyExists
from kubetwist.storage.etcd._errors import (
    NOT_FOUND,
    NoResponse,
    NotSent,
    ResponseTimeout,
    RPCError,
)
from kubetwist.storage.etcd._metrics import code_of
from tests.storage.etcd.case import EtcdCase
from tests.storage.etcd.counts import metric_values


class CodeTests(SynchronousTestCase):
    """Results of calls."""

    def test_codes(self) -> None:
        """Status codes have Go's names; calls without a response have a code for their error."""
        for error, code in (
            (RPCError(NOT_FOUND, "x"), "NotFound"),
            (RPCError(99, "x"), "Unknown"),
            (ResponseTimeout("x"), "DeadlineExceeded"),
            (NoResponse("x"), "Unavailable"),
            (NotSent("x"), "Unavailable"),
        ):
            self.assertEqual(code_of(error), code)


class EtcdTallyTests(EtcdCase):
    """The metrics of a store in etcd."""

    def test_calls(self) -> None:
        """Calls and their messages are counted by method and status code."""
        storage = self.open()
        metrics = storage.client.metrics
        txn = ("unary", "etcdserverpb.KV", "Txn")
        before = metric_values(metrics, "grpc_client_started_total").get(txn, 0)
        self.write(storage, "/r/a", b"1", 0)
        with self.assertRaises(KeyExists):
            self.write(storage, "/r/a", b"1", 0)
        for name in ("started_total", "msg_sent_total", "msg_received_total"):
            self.assertEqual(metric_values(metrics, f"grpc_client_{name}")[txn] - before, 2, name)
        self.assertEqual(metric_values(metrics, "grpc_client_handled_total")[(*txn, "OK")] - before, 2)
        watch = ("bidi_stream", "etcdserverpb.Watch", "Watch")
        self.assertEqual(metric_values(metrics, "grpc_client_started_total")[watch], 1)
        self.assertGreaterEqual(metric_values(metrics, "grpc_client_msg_received_total")[watch], 2)

    def test_leases(self) -> None:
        """The number of keys per lease is observed."""
        storage = self.open()
        for number in range(12):
            self.reactor.run(storage.commit([Write(f"/r/{number}", b"", 0, ttl=3600.0)]))
        keys = storage.client.metrics.lease_keys
        self.assertEqual((keys.count, keys.sum, keys.counts[0]), (12, sum(range(1, 13)), 10))
