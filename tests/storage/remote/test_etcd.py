"""
Tests for L{kubetwist.storage.remote} over a real etcd, which other servers may use, too.

C{KUBETWIST_TEST_LONG=1} runs the tests of all stores.
"""

from __future__ import annotations

import os
from typing import Any

from kubetwist.api.storage import Write
from kubetwist.storage.errors import KeyExists
from kubetwist.storage.remote import RemoteStorage
from kubetwist.testing.etcd import etcd_skip_reason
from kubetwist.testing.storage import RecordingObserver, storage_tests
from tests.storage.etcd import test_storage as etcd_tests
from tests.storage.etcd.case import EtcdCase, RunningReactor, fresh_storage

from .wire import StorageProcess


def remote_etcd(case: Any, reactor: Any) -> RemoteStorage:
    """Return the storage of a front over a store in a separate etcd."""
    process = StorageProcess(fresh_storage(case, reactor), reactor)
    case.addCleanup(lambda: reactor.run(process.stop()))
    return process.front()


class RemoteEtcdTests(storage_tests(remote_etcd, RunningReactor)):
    """L{RemoteStorage} over etcd passes the tests of all stores."""

    skip = etcd_skip_reason() or (None if os.environ.get("KUBETWIST_TEST_LONG") else "it takes 40 seconds")

    deleted = etcd_tests.EtcdStorageTests.deleted
    test_ttl = etcd_tests.EtcdStorageTests.test_ttl
    test_ttl_renewed = etcd_tests.EtcdStorageTests.test_ttl_renewed


class RemoteSharingTests(EtcdCase):
    """A front of one server beside another server on the same etcd."""

    def setUp(self) -> None:
        """Start both servers."""
        super().setUp()
        self.other = self.open()
        process = StorageProcess(self.storage(), self.reactor)
        self.addCleanup(lambda: self.reactor.run(process.stop()))
        self.front = process.front()
        self.addCleanup(lambda: self.reactor.run(self.front.close()))
        self.reactor.run(self.front.open())

    def test_revision(self) -> None:
        """The newest revision of a front includes the writes of other servers."""
        for number in range(5):
            revision = self.write(self.other, f"/r/{number}", b"", 0)
            self.assertIsNone(self.front.newest_revision())
            self.assertGreaterEqual(self.reactor.run(self.front.current_revision()), revision)

    def test_writes_of_both(self) -> None:
        """A front observes the writes of all servers; the ones of the front have their attachments."""
        observer, late, mark = RecordingObserver(), RecordingObserver(), object()
        start = self.front.revision
        self.reactor.run(self.front.watch("/r/", start, observer))
        one = self.write(self.other, "/r/a", b"1", 0)
        with self.assertRaises(KeyExists):
            self.reactor.run(self.front.commit([Write("/r/a", b"2", 0)]))
        two = self.reactor.run(self.front.commit([Write("/r/a", b"2", one, attachment=mark)]))
        self.reactor.run(self.front.watch("/r/", start, late))
        self.assertEqual(observer.seen(), [("/r/a", b"1", one, 0), ("/r/a", b"2", two, one)])
        self.assertEqual(late.seen(), observer.seen())
        self.assertEqual([event.attachment for event in observer.events], [None, mark])

    def test_compaction(self) -> None:
        """A front competes with other servers for the compaction."""
        revision = self.write(self.other, "/r/a", b"1", 0)
        claims = [self.reactor.run(storage.claim_compaction(revision)) for storage in (self.front, self.other)]
        self.assertEqual(claims, [True, False])
