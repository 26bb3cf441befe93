"""What is counted of etcd: L{kubetwist.storage.etcd.metrics} and C{sizes}, against etcd itself."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.metrics.registry import Distribution
from kubetwist.storage.errors import KeyExists
from kubetwist.storage.etcd.address import Address
from kubetwist.storage.etcd.errors import (
    NOT_FOUND,
    NoAnswer,
    NotSent,
    RPCError,
    TooLate,
)
from kubetwist.storage.etcd.grpc import Member
from kubetwist.storage.etcd.metrics import (
    EtcdTally,
    code_of,
)
from kubetwist.storage.etcd.sizes import EtcdSizes

from .case import EtcdCase


def told(tally: EtcdTally, name: str) -> dict[tuple[str, ...], float]:
    """The values of a name by their labels; of histograms how much was observed."""
    return {
        labels: value.count if isinstance(value, Distribution) else value
        for reading in tally.readings()
        if reading.name == name
        for labels, value in reading.values
    }


class CodeTests(SynchronousTestCase):
    """What calls came to."""

    def test_codes(self) -> None:
        """Codes have Go's names; what never came back has that of what is known of it."""
        for error, code in (
            (RPCError(NOT_FOUND, "x"), "NotFound"),
            (RPCError(99, "x"), "Unknown"),
            (TooLate("x"), "DeadlineExceeded"),
            (NoAnswer("x"), "Unavailable"),
            (NotSent("x"), "Unavailable"),
        ):
            self.assertEqual(code_of(error), code)


class SizeTests(SynchronousTestCase):
    """Members that can not be asked."""

    def test_lost(self) -> None:
        """A member that does not answer any more is told of no more, and asked again; nothing is left after a stop."""

        class Lost(Member):
            def post(self, path: bytes, message: bytes, timeout: float) -> Any:
                raise NotSent("it is gone")

        clock, tally = Clock(), EtcdTally()
        member = Lost(Address.parse("http://127.0.0.1:1"), clock)
        tally.sizes[member.address.url] = 1
        sizes = EtcdSizes([member], clock, 30.0, tally)
        sizes.start()
        self.assertEqual(tally.sizes, {})
        tally.sizes[member.address.url] = 1
        clock.advance(30)
        self.assertEqual(tally.sizes, {})
        sizes.stop()
        sizes.stop()
        self.assertEqual(clock.getDelayedCalls(), [])


class EtcdTallyTests(EtcdCase):
    """What a store in etcd counts."""

    def test_calls(self) -> None:
        """Calls and their messages are counted by method, and what they came to."""
        storage = self.open()
        tally = storage.client.tally
        txn = ("unary", "etcdserverpb.KV", "Txn")
        before = told(tally, "grpc_client_started_total").get(txn, 0)
        self.write(storage, "/r/a", b"1", 0)
        with self.assertRaises(KeyExists):
            self.write(storage, "/r/a", b"1", 0)
        for name in ("started_total", "msg_sent_total", "msg_received_total"):
            self.assertEqual(told(tally, f"grpc_client_{name}")[txn] - before, 2, name)
        self.assertEqual(told(tally, "grpc_client_handled_total")[(*txn, "OK")] - before, 2)
        watch = ("bidi_stream", "etcdserverpb.Watch", "Watch")
        self.assertEqual(told(tally, "grpc_client_started_total")[watch], 1)
        self.assertGreaterEqual(told(tally, "grpc_client_msg_received_total")[watch], 2)

    def test_leases(self) -> None:
        """It is told how many keys share a lease."""
        storage = self.open()
        for number in range(12):
            self.reactor.run(storage.commit([Write(f"/r/{number}", b"", 0, ttl=3600.0)]))
        keys = storage.client.tally.lease_keys
        self.assertEqual((keys.count, keys.sum, keys.counts[0]), (12, sum(range(1, 13)), 10))

    def test_sizes(self) -> None:
        """The sizes of databases are asked for; that of the cluster is the largest."""
        storage = self.open()
        tally = storage.client.tally
        sizes = EtcdSizes(storage.client.members, self.reactor, 3600.0, tally)
        self.addCleanup(sizes.stop)
        sizes.start()
        self.reactor.turn_until(lambda: tally.sizes)
        ((member, size),) = tally.sizes.items()
        self.assertEqual(member, storage.client.members[0].address.url)
        self.assertGreater(size, 10_000)
        self.assertEqual(told(tally, "apiserver_storage_size_bytes"), {("etcd-0",): size})
        self.assertEqual(told(tally, "apiserver_storage_db_total_size_in_bytes"), {(member,): size})
