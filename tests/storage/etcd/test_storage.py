"""Tests for L{kubetwist.storage.etcd._storage} with a real etcd."""

from __future__ import annotations

from kubetwist.testing.etcd import etcd_skip_reason
from kubetwist.testing.storage import RecordingObserver, storage_tests

from .case import (
    RunningReactor,
    fresh_storage,
)


class EtcdStorageTests(storage_tests(fresh_storage, RunningReactor)):
    """L{EtcdStorage} passes the tests of all stores."""

    skip = etcd_skip_reason() or None

    def deleted(self, observer: RecordingObserver) -> list[str]:
        """Return the keys whose deletion was observed."""
        return [key for key, value, _, _ in observer.seen() if value is None]

    def test_ttl(self) -> None:
        """A key with a time to live is deleted by an event like any other."""
        observer = RecordingObserver()
        self.watch("/r/", self.storage.revision, observer)
        first = self.put("/r/a", b"1", ttl=1)
        self.put("/r/b", b"1", ttl=600)
        self.reactor.turn_until(lambda: self.deleted(observer))
        self.assertEqual([key for key, _, _ in self.page("/r/")], ["/r/b"])
        key, value, revision, previous = observer.seen()[-1]
        self.assertEqual((key, value, previous), ("/r/a", None, first))
        self.assertGreater(revision, first)

    def test_ttl_renewed(self) -> None:
        """Each write of a key replaces its time to live."""
        for name in ("renewed", "unlimited", "deleted"):
            self.put(f"/r/{name}", ttl=1)
        self.put("/r/shortened", ttl=600)
        self.put("/r/renewed", ttl=600)
        self.put("/r/unlimited")
        self.delete("/r/deleted")
        self.put("/r/deleted")
        self.put("/r/shortened", ttl=1)
        observer = RecordingObserver()
        self.watch("/r/", self.storage.revision, observer)
        self.reactor.turn_until(lambda: self.deleted(observer))
        self.assertEqual([key for key, _, _ in self.page("/r/")], ["/r/deleted", "/r/renewed", "/r/unlimited"])
