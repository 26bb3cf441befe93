"""Tests for L{kubetwist.storage.etcd._storage} with several servers on one real etcd."""

from __future__ import annotations

from txaioetcd import KeySet, Range

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure
from zope.interface.verify import verifyObject

from kubetwist.api.storage import Write
from kubetwist.interfaces import ISharedStorage
from kubetwist.storage.errors import KeyExists, RevisionCompacted, StorageUnavailable
from kubetwist.storage.etcd._errors import (
    PERMISSION_DENIED,
    RPCError,
)

from .case import EtcdCase


class SharingTests(EtcdCase):
    """Several servers on one etcd."""

    def test_writes_of_all_servers(self) -> None:
        """All servers observe all writes in the same order; attachments are for the writer's server only."""
        first, second = self.open(), self.open()
        observers = [self.follow(first), self.follow(second)]
        mark = object()
        one = self.write(first, "/r/a", b"1", 0, attachment=mark)
        self.reactor.turn_until(lambda: second.revision >= one)
        two = self.write(second, "/r/a", b"2", one, attachment=mark)
        self.reactor.turn_until(lambda: first.revision >= two)
        expected = [("/r/a", b"1", one, 0), ("/r/a", b"2", two, one)]
        self.assertEqual([observer.seen() for observer in observers], [expected, expected])
        attached = [[event.attachment for event in observer.events] for observer in observers]
        self.assertEqual(attached, [[mark, None], [None, mark]])

    def test_conflict(self) -> None:
        """A write that conflicts with another server's write fails when the observers here have that write."""
        first, second = self.open(), self.open()
        observer = self.follow(second)
        one = self.write(first, "/r/a", b"1", 0)
        observed: list[int] = []
        losing = second.commit([Write("/r/a", b"2", 0)])

        def refused(failure: Failure) -> Failure:
            observed.append(len(observer.events))
            return failure

        losing.addErrback(refused)
        with self.assertRaises(KeyExists) as caught:
            self.reactor.run(losing)
        self.assertEqual((caught.exception.revision, observed), (one, [1]))

    def test_refused_revision(self) -> None:
        """The storage is unavailable if a member refuses to return the newest revision."""
        storage = self.open()
        error = RPCError(PERMISSION_DENIED, "etcdserver: permission denied")
        self.patch(storage.client, "request_revision_now", lambda: fail(error))
        with self.assertRaises(StorageUnavailable) as caught:
            self.reactor.run(storage.current_revision())
        self.assertEqual(str(caught.exception), "etcdserver: permission denied")

    def test_current_revision(self) -> None:
        """The newest revision includes every acknowledged write; concurrent requests share a call."""
        first, second = self.open(), self.open()
        for number in range(5):
            revision = self.write(first, f"/r/{number}", b"", 0)
            answers = [Deferred.fromCoroutine(second.current_revision()) for _ in range(20)]
            self.assertGreaterEqual(min(self.reactor.run(response) for response in answers), revision)
        self.assertTrue(ISharedStorage.providedBy(first))
        verifyObject(ISharedStorage, first)

    def test_compaction_election(self) -> None:
        """One of the servers compacts in each interval; another one takes over when it stops."""
        servers = [self.open(), self.open()]
        self.write(servers[0], "/r/a", b"1")
        at = self.write(servers[0], "/r/a", b"2")
        turns = [[self.reactor.run(server.claim_compaction(at)) for server in servers] for _ in range(3)]
        self.assertEqual(turns, [[True, False]] * 3)
        self.reactor.turn_until(lambda: servers[1].compacted == at)
        self.assertTrue(self.reactor.run(servers[1].claim_compaction(at)))
        result = self.reactor.run(servers[0].read("compact_rev_key"))
        self.assertEqual(result.value, b"%d" % at)

    def test_compacted_by_another_client(self) -> None:
        """A compaction by another client is detected by the next read, and at the start."""
        first, second = self.open(), self.open()
        self.write(first, "/r/a", b"1")
        at = self.write(first, "/r/a", b"2")
        self.reactor.run(first.compact(at))
        with self.assertRaises(RevisionCompacted) as caught:
            self.reactor.run(second.read_page("/r/", revision=at - 1))
        self.assertEqual((caught.exception.oldest, second.compacted), (at, at))
        self.assertEqual(self.open().compacted, at)

    def test_leases_are_shared(self) -> None:
        """Keys with the same time to live share a lease for some time."""
        storage = self.open()
        for number in range(5):
            self.write(storage, f"/r/{number}", b"", 0, ttl=3600)
        found = self.reactor.run(storage.client.get(KeySet(b"/r/", prefix=True))).kvs
        self.assertEqual((len(found), len({item.lease for item in found})), (5, 1))
        self.assertTrue(found[0].lease)

    def test_lost_lease(self) -> None:
        """A lease that was revoked is replaced."""
        storage = self.open()
        self.write(storage, "/r/a", b"", 0, ttl=3600)
        lease = self.reactor.run(storage._committer._leases.lease(3600))
        self.reactor.run(lease.revoke())
        self.assertEqual(self.reactor.run(storage.read_page("/r/")).items, [])
        self.write(storage, "/r/b", b"", 0, ttl=3600)
        self.assertEqual(len(self.reactor.run(storage.read_page("/r/")).items), 1)

    def test_too_large(self) -> None:
        """A value that is too large for etcd is rejected with etcd's message."""
        with self.assertRaises(StorageUnavailable) as caught:
            self.write(self.open(), "/r/a", bytes(1_600_000), 0)
        self.assertEqual(str(caught.exception), "etcdserver: request is too large")

    def test_large_pages(self) -> None:
        """Large values are read in small pages, all at one revision."""
        storage = self.open()
        revisions = [self.write(storage, f"/r/{number:03}", bytes([number]) * 300_000, 0) for number in range(30)]
        request: list[int] = []
        get = storage.client.get

        async def recorded(keys: KeySet, *, limit: int, revision: int) -> Range:
            request.append(limit)
            if len(request) == 1:
                await storage.commit([Write("/r/000", b"late", None), Write("/r/029", b"late", None)])
            return await get(keys, limit=limit, revision=revision)

        self.patch(storage.client, "get", recorded)
        page = self.reactor.run(storage.read_page("/r/", revision=revisions[-1]))
        self.assertEqual([item.revision for item in page.items], revisions)
        self.assertEqual(page.items[-1].value, bytes([29]) * 300_000)
        self.assertGreater(len(request), 1 if request[0] < 30 else 0)
