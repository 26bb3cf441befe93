# mypy: allow-untyped-calls
"""Tests for L{kubetwist.storage.migration}."""

from __future__ import annotations

import os
import random
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.internet.defer import Deferred, fail
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.api.times import format_micro_time, posix_now
from kubetwist.storage import migration as migration_module
from kubetwist.storage.errors import StorageUnavailable
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.migration import Migration, MigrationError, MigrationResult, incomplete_migration
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.testing.storage import StorageReactor
from tests.schema.protobuf import encoder as wire

PREFIX = "/registry/"

_contents = st.dictionaries(
    st.sampled_from([f"{PREFIX}{name}" for name in ("a/x", "a/y", "a-b/z", "b", "c/d/e", "é/f")]),
    # Hypothesis also tries constants of the code, such as the prefix of protobuf, with which values are rejected.
    st.binary(max_size=5),
    min_size=1,
)


class MigrationCase(SynchronousTestCase):
    """Has two stores."""

    def setUp(self) -> None:
        """Open them."""
        self.reactor = StorageReactor()
        self.source: Any = self.opened(SQLiteStorage(os.path.abspath(self.mktemp()), self.reactor))
        self.target: Any = self.opened(MemoryStorage(self.reactor))

    def opened(self, storage: Any) -> Any:
        """Open a store until the end of the test."""
        self.reactor.run(storage.open())
        self.addCleanup(lambda: self.reactor.run(storage.close()))
        return storage

    def put(self, storage: Any, key: str, value: bytes | None, ttl: float | None = None) -> int:
        """Write one key."""
        return self.reactor.run(storage.commit([Write(key, value, None, ttl)]))

    def contents(self, storage: Any, prefix: str = "/") -> dict[str, bytes]:
        """Return the stored values."""
        return {item.key: item.value for item in self.reactor.run(storage.read_page(prefix)).items}

    def migration(self, **options: Any) -> Migration:
        """Return a migration from one store to the other."""
        options = {"source_prefix": PREFIX, "target_prefix": PREFIX} | options
        return Migration(self.source, self.target, clock=self.reactor, **options)

    def move(self, **options: Any) -> MigrationResult:
        """Run a migration."""
        return self.reactor.run(Deferred.fromCoroutine(self.migration(**options).run()))

    def refused(self, *texts: str, **options: Any) -> None:
        """Assert that the migration fails with one line that contains C{texts}."""
        with self.assertRaises(MigrationError) as caught:
            self.move(**options)
        for text in texts:
            self.assertIn(text, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))


class MoveTests(MigrationCase):
    """Copied data."""

    def test_everything(self) -> None:
        """All keys below the prefix are copied, in few transactions, and no other keys."""
        for number in range(1000):
            self.put(self.source, f"{PREFIX}pods/{number}", b"x" * (number % 50))
        self.put(self.source, "/other/x", b"theirs")
        moved = self.move()
        self.assertEqual((moved.keys, moved.written, moved.deleted), (1000, 1000, 0))
        self.assertEqual(self.contents(self.target), self.contents(self.source, PREFIX))
        self.assertLess(self.target.revision, 20)

    def test_there_and_back(self) -> None:
        """A copy of the copy equals the original."""
        random.seed(1)
        for number in range(300):
            self.put(self.source, f"{PREFIX}{random.randrange(100)}", random.randbytes(number))
        before = self.contents(self.source)
        self.move()
        self.source, self.target = self.target, self.opened(SQLiteStorage(os.path.abspath(self.mktemp()), self.reactor))
        self.move()
        self.assertEqual(self.contents(self.target), before)

    def test_large(self) -> None:
        """A large value gets a separate transaction, so that no transaction exceeds the target's limit."""
        sizes: list[int] = []
        commit = self.target.commit

        def measured(writes: list[Write]) -> Any:
            sizes.append(sum(len(write.value or b"") for write in writes))
            return commit(writes)

        self.target.commit = measured
        for number in range(20):
            self.put(self.source, f"{PREFIX}{number}", b"x" * 300_000)
        self.put(self.source, f"{PREFIX}large", b"x" * 2_000_000)
        self.move()
        self.assertEqual(sorted(sizes)[-1], 2_000_000)
        self.assertLess(sorted(sizes)[-2], migration_module.MAX_TRANSACTION_BYTES)
        self.assertEqual(self.contents(self.target), self.contents(self.source))

    def test_time_to_live(self) -> None:
        """A key with a time to live keeps the remaining time."""
        for number in range(10):
            self.put(self.source, f"{PREFIX}events/{number}", b"e", ttl=100 + number)
        self.put(self.source, f"{PREFIX}kept", b"k")
        self.reactor.advance(50)
        moved = self.move()
        self.assertEqual((moved.keys, moved.expiring), (11, 10))
        self.assertEqual(self.target.list_expirations(), self.source.list_expirations())
        self.reactor.advance(60)
        self.assertEqual(list(self.contents(self.target)), [f"{PREFIX}kept"])

    def test_other_prefix(self) -> None:
        """Keys get the target's prefix."""
        self.put(self.source, f"{PREFIX}pods/x", b"1")
        self.move(target_prefix="/mine/")
        self.assertEqual(self.contents(self.target), {"/mine/pods/x": b"1"})

    def test_encrypted(self) -> None:
        """Encrypted values are copied unchanged, but not to other keys, which their encryption authenticates."""
        self.put(self.source, f"{PREFIX}secrets/x", b"k8s:enc:aesgcm:v1:key1:\x00\x01")
        self.refused("is encrypted for that key", f'"{PREFIX}secrets/x"', target_prefix="/mine/")
        self.assertEqual(list(self.contents(self.target)), [f"/mine/{migration_module.RECORD_KEY}"])
        self.move()
        self.assertEqual(self.contents(self.target, PREFIX), self.contents(self.source))

    def test_revisions(self) -> None:
        """The target's revision is bumped past the source's, if the target supports it."""
        for _ in range(30):
            self.put(self.source, f"{PREFIX}x", b"1")
        self.target = self.opened(SQLiteStorage(os.path.abspath(self.mktemp()), self.reactor))
        moved = self.move()
        self.assertGreater(moved.target_revision, self.source.revision)
        self.assertGreater(self.put(self.target, f"{PREFIX}x", b"2"), self.source.revision)
        self.source, self.target = self.target, self.opened(MemoryStorage(self.reactor))
        self.assertLess(self.move().target_revision, self.source.revision)


class ReplaceTests(MigrationCase):
    """Targets with data."""

    def test_not_empty(self) -> None:
        """A target with data is rejected and left unchanged, unless C{replace} is set."""
        self.put(self.source, f"{PREFIX}a", b"1")
        self.put(self.target, f"{PREFIX}b", b"2")
        self.refused("is not empty", f"{PREFIX}b", "--replace")
        self.assertEqual(self.contents(self.target), {f"{PREFIX}b": b"2"})
        self.move(replace=True)
        self.assertEqual(self.contents(self.target), {f"{PREFIX}a": b"1"})

    @given(_contents, st.one_of(st.just({}), _contents))
    @settings(max_examples=60, deadline=None)
    def test_becomes_the_same(self, ours: dict[str, bytes], theirs: dict[str, bytes]) -> None:
        """With any content of both stores, the target becomes equal to the source, and equal values are not written."""
        self.source, self.target = MemoryStorage(self.reactor), MemoryStorage(self.reactor)
        for storage, content in ((self.source, ours), (self.target, theirs)):
            self.reactor.run(storage.open())
            for key, value in content.items():
                self.put(storage, key, value)
        self.put(self.target, "/other/x", b"theirs")
        moved = self.move(replace=True)
        self.assertEqual(self.contents(self.target), ours | {"/other/x": b"theirs"})
        same = sum(theirs.get(key) == value for key, value in ours.items())
        self.assertEqual((moved.keys, moved.written), (len(ours), len(ours) - same))
        self.assertEqual(moved.deleted, len(theirs.keys() - ours.keys()))

    def fill(self) -> None:
        """Create 500 keys, some of which expire."""
        for number in range(500):
            self.put(self.source, f"{PREFIX}{number:03}", b"x" * number, None if number % 50 else 1000.0 + number)

    def interrupt(self, commits: int, **options: Any) -> bool:
        """Run a migration whose target fails after a number of commits; return whether that was before its end."""
        commit, left = self.target.commit, [commits]

        def failing(writes: list[Write]) -> Any:
            left[0] -= 1
            return fail(StorageUnavailable("gone")) if left[0] < 0 else commit(writes)

        self.target.commit = failing
        try:
            self.move(**options)
        except StorageUnavailable:
            return True
        finally:
            self.target.commit = commit
        return False

    def test_taken_up_again(self) -> None:
        """A migration that was interrupted after any commit continues; until its end, the target is incomplete."""
        self.patch(migration_module, "RECORD_INTERVAL", 100)
        self.fill()
        expected = self.contents(self.source)
        commits = resumed = 0
        while True:
            self.target = self.opened(MemoryStorage(self.reactor))
            if not self.interrupt(commits, source_name="here"):
                break
            incomplete = self.reactor.run(Deferred.fromCoroutine(incomplete_migration(self.target, PREFIX)))
            self.assertEqual(incomplete, "here" if commits else "")
            moved = self.move(source_name="here")
            self.assertEqual((moved.keys, moved.size, moved.expiring), (500, sum(map(len, expected.values())), 10))
            self.assertEqual(self.contents(self.target), expected)
            self.assertEqual(self.target.list_expirations(), self.source.list_expirations())
            resumed += bool(moved.resumed)
            commits += 1
        self.assertGreater(commits, 15)
        self.assertGreater(resumed, 5)
        self.assertEqual(self.reactor.run(Deferred.fromCoroutine(incomplete_migration(self.target, PREFIX))), "")

    def test_cursor(self) -> None:
        """A continued migration does not compare what it has copied; if the source has changed, it compares all."""
        self.patch(migration_module, "RECORD_INTERVAL", 100)
        self.fill()
        self.assertTrue(self.interrupt(7))
        copied = len(self.contents(self.target)) - 1
        self.assertGreater(copied, 200)
        moved = self.move()
        self.assertTrue("199" <= moved.resumed < "500", moved.resumed)
        self.assertEqual(moved.written, 500 - copied)
        self.target = self.opened(MemoryStorage(self.reactor))
        self.assertTrue(self.interrupt(7))
        self.put(self.source, f"{PREFIX}001", b"changed")
        moved = self.move()
        self.assertEqual(moved.resumed, "")
        self.assertEqual(self.contents(self.target), self.contents(self.source))

    def test_other_source(self) -> None:
        """An incomplete migration from another source, or a damaged record, is only replaced on request."""
        self.fill()
        self.assertTrue(self.interrupt(2, source_name="there"))
        self.refused("the target has an incomplete migration from there", "--replace", source_name="here")
        self.put(self.target, f"{PREFIX}{migration_module.RECORD_KEY}", b"{}")
        self.refused("the record of the migration in the target is damaged", source_name="there")
        self.move(source_name="here", replace=True)
        self.assertEqual(self.contents(self.target), self.contents(self.source))

    def test_incomplete_source(self) -> None:
        """An incomplete store is not copied."""
        self.fill()
        self.assertTrue(self.interrupt(3, source_name="there"))
        self.source, self.target = self.target, self.opened(MemoryStorage(self.reactor))
        self.refused("the source is incomplete: a migration from there into it was interrupted")

    def verify(self) -> MigrationResult:
        """Compare the stores."""
        return self.reactor.run(Deferred.fromCoroutine(self.migration().verify()))

    def test_verify(self) -> None:
        """A comparison finds missing, additional and changed keys and times to live, and writes nothing."""
        self.fill()
        self.move()
        progress: list[tuple[str, int]] = []
        migration = self.migration(report_progress=lambda action, keys: progress.append((action, keys)))
        result = self.reactor.run(Deferred.fromCoroutine(migration.verify()))
        self.assertEqual((result.keys, result.expiring, result.written), (500, 10, 0))
        self.assertEqual(progress, [("compared", 500)])
        before = self.target.revision
        for key, value, ttl, text in (
            ("001", b"other", None, "(001)"),
            ("002", None, None, "(002)"),
            ("more", b"m", None, "(more)"),
            ("003", b"xxx", 5000.0, "(003 (time to live))"),
        ):
            self.put(self.target, PREFIX + key, value, ttl)
            with self.assertRaises(MigrationError) as caught:
                self.verify()
            self.assertIn(text, str(caught.exception))
            self.assertEqual(self.target.revision, before + 1)
            self.move(replace=True)
            if key == "003":
                break
            self.verify()
            before = self.target.revision

    def test_write_during_migration(self) -> None:
        """Writes during the migration are detected."""
        for number in range(10):
            self.put(self.source, f"{PREFIX}{number}", b"x")
        commit = self.target.commit

        def writing_concurrently(writes: list[Write]) -> Any:
            response = commit(writes)
            if writes[0].key.endswith(migration_module.RECORD_KEY):
                return response
            self.target.commit = commit
            self.put(self.source, f"{PREFIX}3", b"y")
            return response

        self.target.commit = writing_concurrently
        self.refused("1 keys differ", "3")

    def test_protobuf(self) -> None:
        """Values that kube-apiserver has stored as protobuf are copied unchanged."""
        value = wire.enveloped("v1", "Pod", wire.delimited(1, wire.delimited(1, "x")))
        self.put(self.source, f"{PREFIX}pods/x", value)
        self.move()
        self.assertEqual(self.contents(self.target), {f"{PREFIX}pods/x": value})


class RefusalTests(MigrationCase):
    """Rejected migrations."""

    def test_nothing(self) -> None:
        """A source without keys is rejected."""
        self.put(self.target, f"{PREFIX}precious", b"1")
        self.refused("the source has no keys below /registry/", replace=True)
        self.assertEqual(len(self.contents(self.target)), 1)

    def test_served(self) -> None:
        """A shared store with a running server is neither read from nor written to."""
        self.put(self.source, f"{PREFIX}x", b"1")
        for served in (self.source, self.target):
            self.put(served, f"{PREFIX}masterleases/10.0.0.1", b"{}")
            self.patch(type(served), "shared", True)
            self.refused("is in use by 10.0.0.1", replace=True)
            self.put(served, f"{PREFIX}masterleases/10.0.0.1", None)

    def test_served_without_address(self) -> None:
        """Servers that do not publish their addresses are detected by the Lease of their controllers."""
        key = f"{PREFIX}leases/kube-system/kubetwist-controllers"
        held = {"holderIdentity": "vm_1", "renewTime": format_micro_time(posix_now()), "leaseDurationSeconds": 15}
        self.patch(type(self.source), "shared", True)
        self.put(self.source, key, orjson.dumps({"spec": held}))
        self.refused("the source is in use by vm_1")
        moment = wire.delimited(4, wire.number(1, int(posix_now())))
        lease = wire.delimited(2, wire.delimited(1, "vm_2"), wire.number(2, 15), moment)
        self.put(self.source, key, wire.enveloped("coordination.k8s.io/v1", "Lease", lease))
        self.refused("the source is in use by vm_2")
        for spec in (
            held | {"renewTime": format_micro_time(posix_now() - 16)},
            held | {"holderIdentity": ""},
            held | {"renewTime": None},
            held | {"leaseDurationSeconds": "15"},
            held | {"renewTime": "yesterday"},
            None,
        ):
            self.put(self.source, key, orjson.dumps({"spec": spec}))
            self.reactor.run(self.migration(replace=True).run())
            self.assertEqual(self.contents(self.target), self.contents(self.source))
        for value in (
            b"k8s:enc:aesgcm:v1:key1:\x00",
            wire.enveloped("coordination.k8s.io/v1", "Lease", lease[:-1]),
            b"k8s\0",
        ):
            self.put(self.source, key, value)
            self.reactor.run(self.migration(replace=True).run())
            self.assertEqual(self.contents(self.target), self.contents(self.source))
