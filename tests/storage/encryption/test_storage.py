"""Tests for L{kubetwist.storage.encryption.storage}."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.resource import GroupResource
from kubetwist.api.storage import (
    StorageEvent,
    Write,
)
from kubetwist.interfaces import IStaleFormatDetector, IStorageObserver, IStorageWatch
from kubetwist.storage.encryption._ciphers import (
    TransformError,
    TransformUnavailable,
)
from kubetwist.storage.encryption._configuration import (
    Key,
    Provider,
    Rule,
)
from kubetwist.storage.encryption._envelope import (
    DEKSource,
    EncryptionState,
    Envelope,
    MissingKey,
)
from kubetwist.storage.encryption._transformers import (
    IDENTITY,
    Transformer,
    Transformers,
)
from kubetwist.storage.encryption.storage import INLINE_DECRYPT_BYTES, EncryptedStorage
from kubetwist.storage.errors import CorruptObjectError, DecryptionUnavailable, TransformToStorageError
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.testing.storage import RecordingObserver, StorageReactor, storage_tests

THINGS = GroupResource("", "things")
GCM = Provider("aesgcm", (Key("one", b"0123456789abcdef"),))


def transformer(*providers: Provider) -> Transformer:
    """Return the transformer of providers."""

    def service(_: Any) -> Any:
        raise AssertionError("there are no services")

    return Transformers([Rule((THINGS,), providers)], service).of(THINGS)


class PrefixEncryption:
    """An L{kubetwist.storage.encryption.storage.Encryption} of all keys below a prefix."""

    def __init__(self, used: Transformer, prefix: str = "/") -> None:
        self.used = used
        self.prefix = prefix
        self.life: list[str] = []

    def transformer(self, key: str) -> Transformer | None:
        """See L{kubetwist.storage.encryption.storage.Encryption.transformer}."""
        return self.used if key.startswith(self.prefix) else None

    async def start(self) -> None:
        """See L{kubetwist.storage.encryption.storage.Encryption.start}."""
        self.life.append("started")

    def stop(self) -> None:
        """See L{kubetwist.storage.encryption.storage.Encryption.stop}."""
        self.life.append("stopped")


def over_memory(case: SynchronousTestCase, reactor: StorageReactor) -> EncryptedStorage:
    """Return an encrypted store in memory."""
    return EncryptedStorage(MemoryStorage(reactor), PrefixEncryption(transformer(GCM)), reactor)


def over_sqlite(case: SynchronousTestCase, reactor: StorageReactor) -> EncryptedStorage:
    """Return an encrypted store in a file."""
    folder = tempfile.TemporaryDirectory()
    case.addCleanup(folder.cleanup)
    return EncryptedStorage(
        SQLiteStorage(Path(folder.name) / "s", reactor), PrefixEncryption(transformer(GCM)), reactor
    )


class MemoryTests(storage_tests(over_memory)):
    """An encrypted store passes the tests of all stores."""


class SQLiteTests(storage_tests(over_sqlite)):
    """An encrypted store in a file passes them, too."""


class ManualFetcher:
    """An L{kubetwist.storage.encryption._envelope.DEKFetcher} whose keys arrive when the test provides them."""

    def __init__(self) -> None:
        self.sealing = EncryptionState(DEKSource("one", b"mine"), bytes(32))
        self.envelope = Envelope(self, lambda: self.sealing, lambda: self.sealing)
        self.envelope.cache_cipher(self.sealing.source, self.sealing.cipher)
        self.waiting: list[tuple[DEKSource, Deferred[None]]] = []

    def fetch(self, source: DEKSource) -> Deferred[None]:
        """See L{kubetwist.storage.encryption._envelope.DEKFetcher.fetch}."""
        answer: Deferred[None] = Deferred()
        self.waiting.append((source, answer))
        return answer

    def answer(self, error: Exception | None = None) -> None:
        """Deliver the key that was requested first."""
        source, answer = self.waiting.pop(0)
        if error is not None:
            answer.errback(error)
        else:
            self.envelope.cache_plaintext_key(source, bytes(32))
            answer.callback(None)


def foreign(name: str, key: str, value: bytes) -> bytes:
    """Return a value of another server whose seed is called C{name}."""
    return EncryptionState(DEKSource("one", name.encode()), bytes(32)).seal(value, key.encode())


class EncryptedCase(SynchronousTestCase):
    """Has an encrypted store over one in memory."""

    def setUp(self) -> None:
        """Open the store."""
        self.reactor = StorageReactor()
        self.inner = MemoryStorage(self.reactor)
        self.encryption = PrefixEncryption(self.made(), "/r/")
        self.storage = EncryptedStorage(self.inner, self.encryption, self.reactor)
        self.reactor.run(self.storage.open())
        self.addCleanup(lambda: self.reactor.run(self.storage.close()))

    def made(self) -> Transformer:
        """Return the initial transformer."""
        return transformer(GCM)

    def use(self, used: Transformer) -> None:
        """Use another transformer from now on."""
        self.encryption.used = used
        self.storage.changed()

    def put(self, key: str, value: bytes, attachment: object = None) -> None:
        """Write one key."""
        self.successResultOf(self.storage.commit([Write(key, value, None, None, attachment)]))

    def put_raw(self, *values: tuple[str, bytes]) -> None:
        """Write a stored value as another server would."""
        self.successResultOf(self.inner.commit([Write(key, value, None) for key, value in values]))

    def raw(self, key: str) -> bytes:
        """Return the stored values."""
        return self.successResultOf(self.inner.read(key)).value

    def watch(self, then: Any = None) -> RecordingObserver:
        """Watch the encrypted keys."""
        observer = RecordingObserver(then)
        self.handle = self.successResultOf(self.storage.watch("/r/", self.storage.revision, observer))
        return observer


class EncryptedTests(EncryptedCase):
    """Stored and decrypted values."""

    def test_interface(self) -> None:
        """An encrypted store also provides L{IStaleFormatDetector}, and its watches provide L{IStorageWatch}."""
        verifyObject(IStaleFormatDetector, self.storage)
        self.watch()
        verifyObject(IStorageWatch, self.handle)
        verifyObject(IStorageObserver, self.handle)

    def test_stored(self) -> None:
        """Values below the prefix are stored encrypted; other values are not."""
        self.put("/r/a", b"secret")
        self.put("/other/a", b"plain")
        self.assertTrue(self.raw("/r/a").startswith(b"k8s:enc:aesgcm:v1:one:"))
        self.assertNotIn(b"secret", self.raw("/r/a"))
        self.assertEqual(self.raw("/other/a"), b"plain")
        for key, value in (("/r/a", b"secret"), ("/other/a", b"plain")):
            self.assertEqual(self.successResultOf(self.storage.read(key)).value, value)

    def test_not_at_all(self) -> None:
        """Values of keys that are not resources are neither encrypted nor decrypted."""
        self.put_raw(("/other/a", b"k8s:enc:whatever"))
        self.assertEqual(self.successResultOf(self.storage.read("/other/a")).value, b"k8s:enc:whatever")
        (item,) = self.successResultOf(self.storage.read_page("/other/")).items
        self.assertEqual((item.value, item.problem), (b"k8s:enc:whatever", ""))

    def test_attachment(self) -> None:
        """Watches get the attachment and the plain value of a write without decrypting it."""
        observer = self.watch()
        attachment = object()
        self.patch(self.encryption.used, "decrypt", None)
        self.put("/r/a", b"secret", attachment)
        (event,) = observer.events
        self.assertEqual((event.value, event.attachment, event.revision), (b"secret", attachment, 2))

    def test_other_writers(self) -> None:
        """Values of other servers are decrypted for watches."""
        observer = self.watch()
        self.put_raw(("/r/a", self.encryption.used.encrypt(b"secret", b"/r/a")))
        self.assertEqual((observer.seen(), observer.progress), ([("/r/a", b"secret", 2, 0)], 2))

    def test_writers_of_other_processes(self) -> None:
        """A value that another process wrote in the store below is decrypted, also if that store adds an attachment."""
        observer = self.watch()
        attachment, value = object(), self.encryption.used.encrypt(b"secret", b"/r/a")
        self.successResultOf(self.storage.inner.commit([Write("/r/a", value, None, None, attachment)]))
        (event,) = observer.events
        self.assertEqual((event.value, event.attachment), (b"secret", attachment))

    def test_unreadable(self) -> None:
        """A value that cannot be decrypted is reported with its key and the reason."""
        self.put("/r/a", b"secret")
        self.put("/r/b", b"secret")
        changed = bytearray(self.raw("/r/a"))
        changed[-1] ^= 1
        for data, why in (
            (bytes(changed), "cipher: message authentication failed"),
            (self.raw("/r/b"), "cipher: message authentication failed"),
            (b"k8s:enc:aesgcm:v1:two:x", "no matching key was found for the provided AES transformer"),
            (b"{}", "no matching prefix found"),
        ):
            self.put_raw(("/r/a", data))
            error = self.failureResultOf(self.storage.read("/r/a"), CorruptObjectError).value
            self.assertEqual(str(error), f'unable to transform key "/r/a": {why}')
            self.failureResultOf(self.storage.is_stale("/r/a"), CorruptObjectError)
            first, second = self.successResultOf(self.storage.read_page("/r/")).items
            self.assertEqual((first.key, first.value, first.problem), ("/r/a", b"", why))
            self.assertEqual((second.value, second.problem), (b"secret", ""))

    def test_unreadable_event(self) -> None:
        """A watch ends at an event that cannot be decrypted."""
        observer = self.watch()
        self.put_raw(("/r/b", self.encryption.used.encrypt(b"b", b"/r/b")), ("/r/a", b"k8s:enc:aesgcm:v1:two:x"))
        self.put("/r/b", b"later")
        self.assertEqual((observer.events, observer.progress), ([], 0))
        (reason,) = observer.reasons
        self.assertEqual(str(reason)[:38], 'unable to transform key "/r/a": no mat')

    def test_unreadable_past(self) -> None:
        """A watch whose past has such an event ends, too."""
        revision = self.storage.revision
        self.put_raw(("/r/a", b"k8s:enc:aesgcm:v1:two:x"))
        observer = RecordingObserver()
        self.successResultOf(self.storage.watch("/r/", revision, observer))
        self.put("/r/b", b"later")
        self.assertEqual((observer.events, len(observer.reasons)), ([], 1))

    def test_stale(self) -> None:
        """A value of another key than the first is stale, a value of the first key is not."""
        old = Provider("secretbox", (Key("old", bytes(32)),))
        self.use(transformer(old))
        self.put("/r/a", b"secret")
        self.use(transformer(GCM, old))
        self.assertTrue(self.successResultOf(self.storage.is_stale("/r/a")))
        self.put("/r/a", b"secret")
        self.assertFalse(self.successResultOf(self.storage.is_stale("/r/a")))

    def test_never_stale(self) -> None:
        """Values without a rule are never stale, and are not read for that."""
        self.patch(self.inner, "read", None)
        self.assertFalse(self.successResultOf(self.storage.is_stale("/other/a")))
        self.use(IDENTITY)
        self.assertFalse(self.successResultOf(self.storage.is_stale("/r/a")))

    def test_unwritable(self) -> None:
        """A value that cannot be encrypted fails the whole transaction."""

        def refuse(value: bytes, authenticated_data: bytes) -> bytes:
            raise TransformError("no key")

        self.patch(self.encryption.used, "encrypt", refuse)
        writes = [Write("/other/a", b"", None), Write("/r/a", b"secret", None)]
        error = self.failureResultOf(self.storage.commit(writes), TransformToStorageError).value
        self.assertEqual((str(error), error.key, self.inner.revision), ("no key", "/r/a", 1))
        self.successResultOf(self.storage.commit([Write("/other/a", b"", None)]))

    def test_many(self) -> None:
        """Many values are decrypted in a thread, in order."""
        values = {f"/r/{number:03}": b"%d" % number * 1000 for number in range(INLINE_DECRYPT_BYTES // 1000)}
        for key, value in values.items():
            self.put(key, value)
        page = Deferred.fromCoroutine(self.storage.read_page("/r/"))
        self.assertFalse(page.called)
        self.assertEqual({item.key: item.value for item in self.reactor.run(page).items}, values)

    def test_life(self) -> None:
        """Encryption is started and stopped with the store."""
        self.assertEqual(self.encryption.life, ["started"])
        self.reactor.run(self.storage.close())
        self.assertEqual(self.encryption.life, ["started", "stopped"])


class WaitingTests(EncryptedCase):
    """Values whose keys must be fetched."""

    def made(self) -> Transformer:
        """Create a service."""
        self.fetcher = ManualFetcher()
        return self.fetcher.envelope

    def test_read(self) -> None:
        """A read waits for the key."""
        self.put_raw(("/r/a", foreign("other", "/r/a", b"secret")))
        reading = Deferred.fromCoroutine(self.storage.read("/r/a"))
        self.assertNoResult(reading)
        self.fetcher.answer()
        self.assertEqual(self.successResultOf(reading).value, b"secret")

    def test_read_fails(self) -> None:
        """A read whose key the service cannot decrypt fails with the storage key."""
        self.put_raw(("/r/a", foreign("other", "/r/a", b"secret")))
        for error in (TransformError("lost"), TransformUnavailable("lost")):
            reading = Deferred.fromCoroutine(self.storage.read("/r/a"))
            self.fetcher.answer(error)
            failure = self.failureResultOf(reading, CorruptObjectError)
            self.assertEqual(str(failure.value), 'unable to transform key "/r/a": lost')

    def page(self) -> Deferred[Any]:
        """Return three values: two of one seed, and one of another."""
        for name, seed in (("a", "first"), ("b", "second"), ("c", "first")):
            self.put_raw((f"/r/{name}", foreign(seed, f"/r/{name}", name.encode())))
        self.put("/r/d", b"d")
        return Deferred.fromCoroutine(self.storage.read_page("/r/"))

    def test_page(self) -> None:
        """A page waits for all its keys; each is fetched once."""
        page = self.page()
        self.assertEqual([source.encrypted for source, _ in self.fetcher.waiting], [b"first", b"second"])
        self.fetcher.answer()
        self.assertNoResult(page)
        self.fetcher.answer()
        self.assertEqual([item.value for item in self.successResultOf(page).items], [b"a", b"b", b"c", b"d"])

    def test_page_fails(self) -> None:
        """Values of a page without a key have a problem; the other values are readable."""
        page = self.page()
        self.fetcher.answer(TransformError("lost"))
        self.fetcher.answer()
        items = self.successResultOf(page).items
        self.assertEqual([item.problem for item in items], ["lost", "", "lost", ""])
        self.assertEqual([item.value for item in items], [b"", b"b", b"", b"d"])

    def test_page_unavailable(self) -> None:
        """A page fails with DecryptionUnavailable if the service does not respond."""
        page = self.page()
        self.fetcher.answer()
        self.fetcher.answer(TransformUnavailable("no response"))
        error = self.failureResultOf(page, DecryptionUnavailable).value
        self.assertEqual(str(error), 'unable to transform key "/r/b": no response')

    def test_events(self) -> None:
        """Events that wait for a key keep their order, also relative to progress."""
        observer = self.watch()
        self.put("/r/0", b"0")
        self.put_raw(("/r/a", foreign("first", "/r/a", b"a")))
        self.put_raw(("/r/b", foreign("second", "/r/b", b"b")), ("/r/c", foreign("first", "/r/c", b"c")))
        self.put_raw(("/other/x", b""))
        self.put_raw(("/r/d", foreign("first", "/r/d", b"d")))
        self.assertEqual(([event.value for event in observer.events], observer.progress), ([b"0"], 2))
        self.fetcher.answer()
        self.assertEqual(([event.value for event in observer.events], observer.progress), ([b"0", b"a"], 3))
        self.fetcher.answer()
        self.assertEqual([event.value for event in observer.events], [b"0", b"a", b"b", b"c", b"d"])
        self.assertEqual(([event.revision for event in observer.events], observer.progress), ([2, 3, 4, 4, 6], 6))

    def test_write_waits_for_watches(self) -> None:
        """A write is acknowledged after the watches of its key have delivered it; other writes do not wait."""
        observer = self.watch()
        self.put_raw(("/r/a", foreign("first", "/r/a", b"a")))
        mine = self.storage.commit([Write("/r/b", b"b", None)])
        refused = self.storage.commit([Write("/r/b", b"b", 0)])
        other = self.storage.commit([Write("/other/b", b"b", None)])
        self.assertEqual(self.successResultOf(other), 4)
        self.assertNoResult(mine)
        self.assertNoResult(refused)
        self.fetcher.answer()
        self.assertEqual(self.successResultOf(mine), 3)
        self.failureResultOf(refused)
        self.assertEqual([event.value for event in observer.events], [b"a", b"b"])

    def test_key_is_lost(self) -> None:
        """A watch whose missing key cannot be fetched ends; waiting writes are acknowledged."""
        observer = self.watch()
        self.put_raw(("/r/a", foreign("first", "/r/a", b"a")))
        mine = self.storage.commit([Write("/r/b", b"b", None)])
        self.fetcher.answer(TransformError("lost"))
        self.assertEqual(self.successResultOf(mine), 3)
        self.assertEqual([str(reason) for reason in observer.reasons], ['unable to transform key "/r/a": lost'])
        self.put("/r/c", b"c")
        self.assertEqual(observer.events, [])

    def test_stopped(self) -> None:
        """A watch that is stopped while it waits delivers nothing."""
        observer = self.watch()
        self.put_raw(("/r/a", foreign("first", "/r/a", b"a")))
        self.handle.stop()
        self.fetcher.answer()
        self.assertEqual((observer.events, observer.reasons, observer.progress), ([], [], 0))

    def test_failing_observer(self) -> None:
        """An observer that raises on a delayed event loses its watch."""

        def broken(events: Sequence[StorageEvent]) -> None:
            raise ZeroDivisionError

        observer = self.watch(broken)
        self.put_raw(("/r/a", foreign("first", "/r/a", b"a")))
        self.fetcher.answer()
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.assertIsInstance(observer.reasons[0], ZeroDivisionError)

    def test_forgotten(self) -> None:
        """Fetching a key that is evicted from the cache repeatedly is limited."""
        self.put_raw(("/r/a", foreign("first", "/r/a", b"a")))

        def decrypt(data: bytes, authenticated_data: bytes) -> Any:
            raise MissingKey(self.fetcher, DEKSource("one", b"x"), authenticated_data)

        self.patch(self.fetcher.envelope, "decrypt", decrypt)
        for read, kind in ((self.storage.read, CorruptObjectError), (self.storage.read_page, DecryptionUnavailable)):
            result: Deferred[Any] = Deferred.fromCoroutine(read("/r/a" if read == self.storage.read else "/r/"))
            for _ in range(3):
                self.fetcher.answer()
            self.failureResultOf(result, kind)
