"""Tests for L{kubetwist.storage.encryption.storage} with a real etcd that other servers also write to."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.storage.encryption._configuration import (
    Key,
    Provider,
)
from kubetwist.storage.encryption.storage import EncryptedStorage
from kubetwist.testing.etcd import etcd_skip_reason
from kubetwist.testing.storage import RecordingObserver, storage_tests
from tests.storage.etcd import test_storage as test_etcd
from tests.storage.etcd.case import (
    EtcdCase,
    RunningReactor,
    fresh_storage,
)

from .test_storage import GCM, PrefixEncryption, transformer

OTHER = Provider("secretbox", (Key("two", bytes(32)),))


def over_etcd(case: SynchronousTestCase, reactor: Any) -> EncryptedStorage:
    """Return an encrypted store in a separate etcd."""
    return EncryptedStorage(fresh_storage(case, reactor), PrefixEncryption(transformer(GCM)), reactor)


class EtcdTests(storage_tests(over_etcd, RunningReactor)):
    """An encrypted store in etcd passes the tests of all stores."""

    skip = etcd_skip_reason() or None
    # etcd uses real time.
    deleted = test_etcd.EtcdStorageTests.deleted
    test_ttl = test_etcd.EtcdStorageTests.test_ttl
    test_ttl_renewed = test_etcd.EtcdStorageTests.test_ttl_renewed


class SharingTests(EtcdCase):
    """Several servers with different keys on one etcd."""

    def opened(self, *providers: Provider) -> EncryptedStorage:
        """Return the store of a server with these keys."""
        return EncryptedStorage(self.open(), PrefixEncryption(transformer(*providers)), self.reactor)

    def test_other_server(self) -> None:
        """Each server decrypts the values of the other one, and reports them as stale."""
        stores = [self.opened(GCM, OTHER), self.opened(OTHER, GCM)]
        observers = [RecordingObserver(), RecordingObserver()]
        for store, observer in zip(stores, observers, strict=True):
            self.reactor.run(store.watch("/r/", store.revision, observer))
        mark = object()
        for index, store in enumerate(stores):
            revision = self.reactor.run(store.commit([Write(f"/r/{index}", b"%d" % index, 0, None, mark)]))
            self.reactor.turn_until(lambda revision=revision: all(one.revision >= revision for one in stores))
        seen = [[(event.key, event.value) for event in observer.events] for observer in observers]
        self.assertEqual(seen, [[("/r/0", b"0"), ("/r/1", b"1")]] * 2)
        attached = [[event.attachment for event in observer.events] for observer in observers]
        self.assertEqual(attached, [[mark, None], [None, mark]])
        stale = [[self.reactor.run(store.is_stale(f"/r/{index}")) for index in (0, 1)] for store in stores]
        self.assertEqual(stale, [[False, True], [True, False]])

    def test_another_server_encrypts(self) -> None:
        """An event with an unknown key ends a watch; values that were written before stay readable."""
        first, second = self.opened(GCM), self.opened(OTHER)
        observer = RecordingObserver()
        self.reactor.run(first.commit([Write("/r/a", b"a", 0)]))
        self.reactor.run(first.watch("/r/", first.revision, observer))
        self.reactor.run(second.commit([Write("/r/b", b"b", 0)]))
        self.reactor.turn_until(lambda: observer.reasons)
        self.assertEqual(str(observer.reasons[0]), 'unable to transform key "/r/b": no matching prefix found')
        self.assertEqual(self.reactor.run(first.read("/r/a")).value, b"a")
