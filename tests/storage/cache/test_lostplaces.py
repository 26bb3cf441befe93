"""Tests for L{kubetwist.storage.cache.watchcache}: interrupted watches and corrupt objects."""

from __future__ import annotations

from typing import Any

from kubetwist.api.record import Record
from kubetwist.api.storage import Write
from kubetwist.storage.cache.watchcache import WatchCache
from kubetwist.storage.errors import (
    CorruptObjectError,
    DecryptionUnavailable,
    RevisionCompacted,
    StorageError,
    StorageUnavailable,
    WatchInterrupted,
)

from .watchcache.cachecase import (
    PREFIX,
    CacheCase,
    RecordingSink,
    decode,
    drafted,
)


class LossTests(CacheCase):
    """Interruption of the cache's watch."""

    def test_reload(self) -> None:
        """A cache whose storage watch is interrupted ends its watches and fills again."""
        old = self.put("a/x")
        _, sink = self.watch()
        self.cache.ended(RevisionCompacted(1, 2))
        self.assertEqual([type(error) for error in sink.ends], [WatchInterrupted])
        self.assertTrue(self.cache.ready)
        self.put("a/y")
        self.assertEqual(self.listed(), [("a/x", 2), ("a/y", 3)])
        self.assertEqual(sink.sent, [])
        self.assertRaises(RevisionCompacted, self.cache.watch, "", sink=sink, revision=old - 1)

    def test_unavailable(self) -> None:
        """While the backend cannot be read, the cache serves its last state and retries."""
        self.put("a/x")
        failing = [True]
        read_page = self.storage.read_page

        async def read(*args: Any, **kwargs: Any) -> Any:
            if failing:
                raise StorageUnavailable("lost")
            return await read_page(*args, **kwargs)

        self.patch(self.storage, "read_page", read)
        self.cache.ended(StorageUnavailable("lost"))
        self.assertEqual((self.cache.ready, self.listed()), (False, [("a/x", 2)]))
        self.assertRaises(StorageUnavailable, self.watch)
        self.clock.pump([1] * 10)
        self.assertFalse(self.cache.ready)
        failing.clear()
        self.put("a/y")
        self.clock.pump([1] * 30)
        self.assertEqual((self.cache.ready, self.listed()), (True, [("a/x", 2), ("a/y", 3)]))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_stopped(self) -> None:
        """A stopped cache does not retry."""

        async def read(*args: Any, **kwargs: Any) -> Any:
            raise StorageUnavailable("lost")

        self.patch(self.storage, "read_page", read)
        self.cache.ended(StorageUnavailable("lost"))
        self.cache.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_undecodable(self) -> None:
        """A stored value that cannot be decoded is reported with its key and not omitted; other objects are served."""
        self.put("a/w")
        self.put("b/w")
        sink, elsewhere = RecordingSink(), RecordingSink()
        self.cache.watch("", sink=sink)
        self.successResultOf(self.storage.commit([Write("/registry/pods/a/x", b"[]", 0)]))
        self.assertEqual(len(self.flushLoggedErrors(TypeError)), 1)
        self.assertEqual([type(error) for error in sink.ends], [WatchInterrupted])
        self.assertTrue(self.cache.ready)
        text = 'unable to transform key "/registry/pods/a/x": it is damaged (TypeError)'
        for read in (
            lambda: self.cache.get("a/x"),
            lambda: self.cache.list(),
            lambda: self.cache.list("a/"),
            lambda: self.failureResultOf(self.cache.list_from_storage("a/")).raiseException(),
        ):
            self.assertEqual(str(self.assertRaises(CorruptObjectError, read)), text)
        for scope in ("", "a/", "a/x"):
            self.assertRaises(StorageUnavailable, self.cache.watch, scope, sink=sink)
        self.assertEqual([self.cache.get("a/w").revision, self.cache.get("a/y")], [2, None])
        self.assertEqual([record.key for record in self.cache.list("b/").records], ["b/w"])
        self.cache.watch("b/", sink=elsewhere)
        self.put("b/w")
        self.assertEqual(elsewhere.wait_until_fresh_or_timeout(), [("MODIFIED", "b/w", 5)])
        self.cache.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_translated(self) -> None:
        """The error translator of a cache applies to readers and to the sinks of its watches."""

        class Translated(Exception):
            pass

        def translate(error: StorageError) -> Exception:
            return Translated(type(error).__name__)

        self.put("a/w")
        cache = WatchCache(self.storage, PREFIX, decode, self.clock, translate=translate)
        self.successResultOf(cache.start())
        sink = RecordingSink()
        cache.watch("", sink=sink)
        cache.ended(StorageUnavailable("lost"))
        self.assertEqual([repr(error) for error in sink.ends], ["Translated('WatchInterrupted')"])
        self.successResultOf(self.storage.commit([Write(f"{PREFIX}a/x", b"[]", 0)]))
        self.clock.pump([1] * 20)
        self.flushLoggedErrors(TypeError)
        for read in (
            lambda: cache.get("a/x"),
            lambda: cache.list(),
            lambda: self.failureResultOf(cache.list_from_storage()).raiseException(),
        ):
            error = self.assertRaises(Translated, read)
            self.assertEqual(str(error), "CorruptObjectError")
        cache.stop()

    def test_decodable_again(self) -> None:
        """A corrupt object is served again when it can be decoded, is written or deleted."""
        broken = {b"1", b"2", b"3"}

        def sometimes(key: str, value: bytes, revision: int) -> Record:
            if value in broken:
                raise ValueError("broken")
            return Record.from_draft(key, revision, drafted(key))

        for name in (b"1", b"2", b"3"):
            self.successResultOf(self.storage.commit([Write(f"/registry/swans/a/{name.decode()}", name, 0)]))
        cache = WatchCache(self.storage, "/registry/swans/", sometimes, self.clock)
        self.successResultOf(cache.start())
        self.assertRaises(CorruptObjectError, cache.list)
        self.successResultOf(self.storage.commit([Write("/registry/swans/a/2", b"4", None)]))
        self.assertEqual(cache.get("a/2").revision, 5)
        self.successResultOf(self.storage.commit([Write("/registry/swans/a/3", None, None)]))
        self.assertEqual(cache.get("a/3"), None)
        self.assertRaises(CorruptObjectError, cache.list)
        self.clock.pump([1] * 20)
        self.assertRaises(CorruptObjectError, cache.list)
        broken.clear()
        self.clock.pump([1] * 20)
        self.assertEqual([(record.key, record.revision) for record in cache.list().records], [("a/1", 2), ("a/2", 5)])
        self.assertRaises(RevisionCompacted, cache.list, revision=4)
        listed = self.successResultOf(cache.list_at_revision(revision=4)).records
        self.assertEqual([(record.key, record.revision) for record in listed], [("a/1", 2), ("a/2", 3), ("a/3", 4)])
        cache.watch("", sink=RecordingSink())
        cache.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_not_decryptable_now(self) -> None:
        """A cache that cannot be filled raises an error to all readers, and is filled as soon as possible."""
        self.put("a/x")
        failing = [True]
        read_page = self.storage.read_page

        async def read(*args: Any, **kwargs: Any) -> Any:
            if failing:
                raise DecryptionUnavailable("no response")
            return await read_page(*args, **kwargs)

        self.patch(self.storage, "read_page", read)
        cache = WatchCache(self.storage, PREFIX, decode, self.clock)
        self.successResultOf(cache.start())
        self.assertFalse(cache.ready)
        for ask in (lambda: cache.get("a/x"), lambda: cache.get("a/y"), lambda: cache.list("b/")):
            self.assertEqual(str(self.assertRaises(DecryptionUnavailable, ask)), "no response")
        self.assertRaises(StorageUnavailable, cache.watch, "", sink=RecordingSink())
        self.clock.pump([1] * 20)
        self.assertFalse(cache.ready)
        failing.clear()
        self.clock.pump([1] * 30)
        self.assertEqual((cache.ready, cache.get("a/x").revision, cache.get("a/y")), (True, 2, None))
        cache.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_lost_at_once(self) -> None:
        """A storage watch that ends before it is established is started again."""
        watch = self.storage.watch
        lost = [True]

        async def lossy(prefix: str, revision: int, observer: Any) -> Any:
            result = await watch(prefix, revision, observer)
            if lost:
                lost.clear()
                result.stop()
                observer.ended(StorageUnavailable("lost"))
            return result

        self.patch(self.storage, "watch", lossy)
        cache = WatchCache(self.storage, PREFIX, decode, self.clock)
        self.successResultOf(cache.start())
        self.clock.pump([1] * 3)
        self.assertTrue(cache.ready)
        self.put("a/x")
        self.assertEqual(cache.get("a/x").revision, 2)

    def test_compacted_while_filling(self) -> None:
        """A compaction between two pages restarts the fill."""
        for number in range(5):
            self.put(f"a/{number}")
        read_page = self.storage.read_page
        pages: list[int] = []

        async def read(*args: Any, **kwargs: Any) -> Any:
            pages.append(kwargs.get("revision", 0))
            if len(pages) == 2:
                self.put("a/1")
                await self.storage.compact(self.storage.revision)
            return await read_page(*args, **kwargs)

        self.patch(self.storage, "read_page", read)
        cache = WatchCache(self.storage, PREFIX, decode, self.clock, page=2)
        self.successResultOf(cache.start())
        self.assertEqual([record.key for record in cache.list().records], [f"a/{number}" for number in range(5)])
        self.assertEqual((cache.revision, pages.count(0)), (7, 2))
