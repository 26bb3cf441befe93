"""Tests for L{kubetwist.storage.etcd.client} and watches, with a real etcd whose gateway is disabled."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from txaioetcd import CompVersion, Error, Failed, KeySet, OpGet, OpSet, Transaction

from twisted.internet.defer import Deferred
from zope.interface.verify import verifyObject

from kubetwist.api.storage import Write
from kubetwist.storage.etcd._errors import RPCError
from kubetwist.storage.etcd._interfaces import IEtcdMember
from kubetwist.storage.etcd._values import ALL_KEYS, WatchEvent, WatchRequest
from kubetwist.storage.etcd._watch import (
    EtcdWatch,
    WatchLost,
)

from .case import EtcdCase


class ClientTests(EtcdCase):
    """The methods of txaioetcd's client, and the additions."""

    flags = ("--enable-grpc-gateway=false",)

    def test_keys(self) -> None:
        """Keys are set, read and deleted, and return previous values."""
        client, run = self.open().client, self.reactor.run
        first = run(client.set(b"/r/\xff", b"\0one"))
        second = run(client.set(b"/r/\xff", b"two", return_previous=True))
        self.assertEqual(second.header.revision, first.header.revision + 1)
        self.assertEqual((second.previous.value, second.previous.mod_revision), (b"\0one", first.header.revision))
        run(client.set(b"/r/a", b""))
        result = run(client.get(KeySet(b"/r/", prefix=True), sort_order="DESCEND", sort_target="KEY"))
        self.assertEqual([(item.key, item.value) for item in result.kvs], [(b"/r/\xff", b"two"), (b"/r/a", None)])
        deleted = run(client.delete(KeySet(b"/r/", prefix=True), return_previous=True))
        self.assertEqual((deleted.deleted, len(deleted.previous)), (2, 2))
        self.assertEqual(run(client.get(b"/r/a")).kvs, [])

    def test_transactions(self) -> None:
        """Transactions succeed, or return the existing values."""
        client, run = self.open().client, self.reactor.run
        once = Transaction(
            compare=[CompVersion(b"/k", "==", 0)], success=[OpSet(b"/k", b"v")], failure=[OpGet(KeySet(b"/k"))]
        )
        done = run(client.submit(once))
        with self.assertRaises(Failed) as caught:
            run(client.submit(once))
        (result,) = caught.exception.responses
        self.assertEqual((result.kvs[0].value, result.kvs[0].mod_revision), (b"v", done.header.revision))

    def test_refusals(self) -> None:
        """An error of etcd is txaioetcd's error, with the code and the text of etcd."""
        client, run = self.open().client, self.reactor.run
        with self.assertRaises(Error) as caught:
            run(client.set(b"", b"v"))
        self.assertEqual((caught.exception.code, caught.exception.message), (3, "etcdserver: key is not provided"))
        with self.assertRaises(RPCError) as refused:
            run(client.compact(1 << 40))
        self.assertTrue(refused.exception.future)

    def test_leases_and_status(self) -> None:
        """Leases are granted and revoked; a member returns its status."""
        client, run = self.open().client, self.reactor.run
        lease = run(client.lease(600, 77))
        self.assertEqual((lease.lease_id, lease.time_to_live), (77, 600))
        run(client.set(b"/leased", b"v", lease=lease))
        run(lease.revoke())
        self.assertEqual(run(client.get(b"/leased")).kvs, [])
        status = run(client.status())
        self.assertTrue(status.version.startswith("3."))
        self.assertTrue(status.leader)
        self.assertGreater(status.db_size, 0)

    def test_members(self) -> None:
        """Each member provides L{IEtcdMember}."""
        (member,) = self.open().client.members
        verifyObject(IEtcdMember, member)

    def test_writes(self) -> None:
        """A write of the store is a transaction of txaioetcd."""
        storage = self.open()
        made: list[Transaction] = []
        construct = Transaction.__init__

        def counted(txn: Transaction, *args: Any, **options: Any) -> None:
            made.append(txn)
            construct(txn, *args, **options)

        self.patch(Transaction, "__init__", counted)
        revision = self.write(storage, "/r/a", b"1", 0)
        self.write(storage, "/r/a", None, revision)
        self.assertEqual(len(made), 2)
        self.assertEqual(storage.client.stats()["posts"]["/etcdserverpb.KV/Txn"], 2)

    def test_large_value(self) -> None:
        """A value larger than the flow control windows is written and read during other calls."""
        storage = self.open()
        value = bytes(range(256)) * 5000
        writing = storage.commit([Write("/r/large", value, 0)])
        small = storage.commit([Write("/r/small", b"v", 0)])
        self.reactor.run(small)
        self.reactor.run(writing)
        self.assertEqual(self.reactor.run(storage.read("/r/large")).value, value)


class WatchTests(EtcdCase):
    """Watches of changes that are larger than one message."""

    def test_fragments(self) -> None:
        """Split responses are joined: all changes of a revision arrive at once, none is missing or repeated."""
        storage = self.open()
        begin = storage.revision
        revisions = [
            self.reactor.run(storage.commit([Write(f"/r/{key}", bytes([number]) * 300_000, None) for key in range(4)]))
            for number in range(6)
        ]
        received: list[list[WatchEvent]] = []
        partial: list[bool] = []
        done: Deferred[None] = Deferred()

        def receive(changes: list[WatchEvent]) -> None:
            received.append(changes)
            if changes[-1].mod_revision == revisions[-1]:
                done.callback(None)

        (member,) = storage.client.members
        follow = member.follow

        def recorded(request: WatchRequest, receive: Any, end: Any, timeout: float) -> Any:
            def message(result: Any) -> None:
                partial.append(result.partial)
                receive(result)

            return follow(request, message, end, timeout)

        self.patch(member, "follow", recorded)
        watch = EtcdWatch(member, self.reactor, WatchRequest(ALL_KEYS, begin + 1), receive, done.errback)
        self.addCleanup(watch.stop)
        self.reactor.run(done)
        # The changes were split.
        self.assertIn(True, partial)
        self.assertEqual([change.mod_revision for changes in received for change in changes], sorted(revisions * 4))
        for before, after in pairwise(received):
            self.assertLess(before[-1].mod_revision, after[0].mod_revision)

    def test_lost_place(self) -> None:
        """A watch from a compacted revision fails with the compacted revision."""
        storage = self.open()
        revision = [self.write(storage, "/r/a", b"%d" % number) for number in range(3)][-1]
        self.reactor.run(storage.compact(revision))
        lost: Deferred[None] = Deferred()
        (member,) = storage.client.members
        EtcdWatch(member, self.reactor, WatchRequest(ALL_KEYS, 1), self.fail, lost.errback)
        with self.assertRaises(WatchLost) as caught:
            self.reactor.run(lost)
        self.assertEqual(caught.exception.compacted, revision)
