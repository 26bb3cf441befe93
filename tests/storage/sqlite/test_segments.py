# mypy: allow-untyped-calls
"""Tests for L{kubetwist.storage.sqlite.segments}."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

import kubetwist
from kubetwist.api.storage import Write
from kubetwist.storage.errors import StorageCorrupt, StorageUnavailable
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.storage.sqlite.backup import copy_store, restore_copy, verify_copy
from kubetwist.storage.sqlite.segments import (
    SUFFIX,
    HistoryGap,
    Position,
    Segment,
    apply_segments,
    read_header,
    verify_segment,
    write_segment,
)
from kubetwist.testing.storage import StorageReactor

NOW = "2026-11-29T08:00:00Z"
KEYS = tuple(f"/r/{name}" for name in ("a", "b", "c/d", "é"))
#: Keys, values, and times to live of one transaction.
_transaction = st.lists(
    st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.binary(max_size=6)), st.sampled_from([None, 50.5])),
    min_size=1,
    max_size=3,
    unique_by=lambda write: write[0],
)
_steps = st.lists(st.one_of(_transaction, st.sampled_from(["compact", "backup", "changes", "gap"])), max_size=25)
State = dict[str, tuple[bytes, int]]


class SegmentCase(SynchronousTestCase):
    """Has an open store, and a folder for segments."""

    def setUp(self) -> None:
        """Open a store."""
        self.reactor = StorageReactor()
        self.addCleanup(self.reactor.close)
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()
        self.storage = self.open(self.mktemp())

    def open(self, path: str) -> SQLiteStorage:
        """Open a store until the end of the test."""
        storage = SQLiteStorage(os.path.abspath(path), self.reactor, synced=False)
        self.addCleanup(lambda: self.reactor.run(storage.close()))
        self.reactor.run(storage.open())
        return storage

    def put(self, key: str, value: bytes | None = b"v") -> int:
        """Write one key."""
        return self.reactor.run(self.storage.commit([Write(key, value, None)]))

    def copy(self) -> tuple[str, Position]:
        """Return a copy of the store, and its position."""
        path = os.path.abspath(self.mktemp())
        copy_store(self.storage.path, path, lambda done, total: None)
        summary = verify_copy(path)
        return path, Position(summary.history, summary.revision)

    def archive(self, position: Position) -> Segment:
        """Archive changes, of which there are some."""
        segment = write_segment(self.storage.path, self.folder, position, NOW)
        assert segment is not None
        return segment

    def state(self, path: str) -> State:
        """Return the content of a copy."""
        storage = SQLiteStorage(path, self.reactor, synced=False)
        self.reactor.run(storage.open())
        try:
            page = self.reactor.run(storage.read_page("/r/"))
            return {item.key: (item.value, item.revision) for item in page.items}
        finally:
            self.reactor.run(storage.close())


class ModelTests(SegmentCase):
    """Any revision can be restored."""

    @settings(max_examples=40, deadline=None)
    @given(steps=_steps)
    def test_any_revision(self, steps: list[Any]) -> None:
        """
        The state at each revision after a backup is restored exactly, while writes and compactions go on between
        backups and segments; if changes are missing, they are reported.
        """
        storage = self.storage = self.open(self.mktemp())
        states: dict[int, State] = {1: {}}
        copies = [self.copy()]
        segments: list[Segment] = []
        position: Position | None = copies[0][1]
        for step in steps:
            newest = storage.revision
            if step == "compact":
                self.reactor.run(storage.compact(newest))
            elif step == "backup":
                copies.append(self.copy())
                position = copies[-1][1]
            elif step == "gap":
                self.reactor.run(self.storage.compact(self.storage.revision))
            elif step == "changes":
                assert position is not None
                try:
                    segment = write_segment(storage.path, self.folder, position, NOW)
                except HistoryGap:
                    self.assertLess(position.revision, storage.compacted)
                    copies.append(self.copy())
                    position = copies[-1][1]
                else:
                    if segment is not None:
                        segments.append(segment)
                        position = Position(segment.history, segment.until)
            else:
                state = dict(states[newest])
                writes = [write for write in step if write[1] is not None or write[0] in state]
                if not writes:
                    continue
                revision = self.reactor.run(
                    storage.commit([Write(key, value, None, ttl) for key, value, ttl in writes])
                )
                for key, value, _ in writes:
                    if value is None:
                        del state[key]
                    else:
                        state[key] = (value, revision)
                states[revision] = state
        expirations = storage.list_expirations()
        self.check(copies, segments, states)
        if position is not None and position.revision == storage.revision and segments:
            self.check_expirations(copies, segments, expirations)

    def check(self, copies: list[tuple[str, Position]], segments: list[Segment], states: dict[int, State]) -> None:
        """Restore each revision from each backup."""
        for path, position in copies:
            for revision, state in states.items():
                if revision < position.revision:
                    continue
                restored = shutil.copy(path, os.path.abspath(self.mktemp()))
                reached = position.revision
                for segment in segments:
                    if segment.after <= reached:
                        reached = max(reached, segment.until)
                try:
                    apply_segments(restored, segments, revision)
                except StorageCorrupt as error:
                    self.assertIn("missing", str(error))
                    self.assertTrue(reached < revision or any(one.after > reached for one in segments))
                    continue
                self.assertEqual(verify_copy(restored).revision, revision)
                self.assertEqual(self.state(restored), state)

    def check_expirations(
        self, copies: list[tuple[str, Position]], segments: list[Segment], expected: dict[str, float]
    ) -> None:
        """Times to live are restored."""
        path, _ = copies[-1]
        restored = shutil.copy(path, os.path.abspath(self.mktemp()))
        apply_segments(restored, [one for one in segments if one.until > copies[-1][1].revision], self.storage.revision)
        storage = self.open(restored)
        self.assertEqual(storage.list_expirations(), expected)


class SegmentTests(SegmentCase):
    """Single segments."""

    def test_header(self) -> None:
        """The header has the revisions, the history and the time; a file without changes is not written."""
        _, position = self.copy()
        self.assertIsNone(write_segment(self.storage.path, self.folder, position, NOW))
        self.assertEqual(list(self.folder.iterdir()), [])
        self.put("/r/a")
        last = self.put("/r/a", b"w")
        segment = self.archive(position)
        self.assertEqual(segment, Segment(segment.path, position.history, position.revision, last, NOW))
        self.assertEqual(verify_segment(segment.path), segment)
        self.assertEqual([one.name for one in self.folder.iterdir()], [segment.path.name])
        self.assertEqual(segment.path.stat().st_mode & 0o777, 0o600)

    def test_large(self) -> None:
        """Values of several frames, and a value larger than a frame, are kept."""
        copied, position = self.copy()
        expected = {}
        for number in range(700):
            value = os.urandom(3 << 20) if number == 100 else b"%d" % number * 50
            expected[f"/r/{number}"] = (value, self.put(f"/r/{number}", value))
        apply_segments(copied, [self.archive(position)], self.storage.revision)
        self.assertEqual(self.state(copied), expected)

    def test_damage(self) -> None:
        """Each changed byte, and each truncation, is detected."""
        copied, position = self.copy()
        self.put("/r/a", b"x" * 100)
        path = self.archive(position).path
        content = path.read_bytes()
        for at in range(0, len(content), 7):
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            self.assertRaises(StorageCorrupt, verify_segment, path)
            path.write_bytes(content[:at])
            self.assertRaises(StorageCorrupt, verify_segment, path)
        path.write_bytes(content)
        segment = verify_segment(path)
        path.write_bytes(content[:-40] + content[-39:])
        self.assertRaises(StorageCorrupt, apply_segments, copied, [segment], segment.until)

    def test_gaps(self) -> None:
        """Changes that the store does not have are a gap: after a compaction, a restore, or a replaced store."""
        copied, position = self.copy()
        for _ in range(3):
            self.put("/r/a")
        self.reactor.run(self.storage.compact(self.storage.revision - 1))
        error = self.assertRaises(HistoryGap, self.archive, position)
        self.assertEqual(str(error), "changes after revision 1 are compacted up to 3")
        self.assertRaises(HistoryGap, self.archive, Position(position.history, 100))
        restore_copy(copied, 0)
        restored = Position(verify_copy(copied).history, 1)
        self.assertNotEqual(restored.history, position.history)
        error = self.assertRaises(HistoryGap, self.archive, restored)
        self.assertEqual(str(error), "the store was replaced or restored")

    def test_other_store(self) -> None:
        """Changes of another store, and changes after a gap, are not applied."""
        _, position = self.copy()
        self.put("/r/a")
        first = self.archive(position)
        self.put("/r/a")
        second = self.archive(Position(position.history, first.until))
        self.storage = self.open(self.mktemp())
        other, _ = self.copy()
        error = self.assertRaises(StorageCorrupt, apply_segments, other, [first], first.until)
        self.assertIn("belongs to another store", str(error))
        self.storage = self.open(self.mktemp())
        connection = sqlite3.connect(self.storage.path)
        connection.execute("UPDATE state SET value = ? WHERE name = 'history'", (position.history,))
        connection.commit()
        connection.close()
        same, _ = self.copy()
        error = self.assertRaises(StorageCorrupt, apply_segments, same, [second], second.until)
        self.assertEqual(str(error), "the changes between the revisions 1 and 2 are missing")

    def test_damaged_store(self) -> None:
        """A row whose key was changed is not archived."""
        _, position = self.copy()
        self.put("/r/a")
        connection = sqlite3.connect(self.storage.path)
        connection.execute("UPDATE log SET key = '/r/b'")
        connection.commit()
        connection.close()
        self.assertRaises(StorageCorrupt, self.archive, position)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_unreadable(self) -> None:
        """Files that are missing, or no segments, are errors of one line."""
        path = self.folder / f"x{SUFFIX}"
        self.assertRaises(StorageUnavailable, read_header, path)
        for content in (
            b"",
            b"kubetwist changes 1\n",
            b"kubetwist changes 1\n{}\n",
            b"kubetwist changes 1\n[" + b"1" * 9000,
        ):
            path.write_bytes(content)
            error = self.assertRaises(StorageCorrupt, read_header, path)
            self.assertNotIn("\n", str(error))


#: Archives a store again and again until it is killed.
_WRITER = """
import sys
from pathlib import Path
from kubetwist.storage.sqlite.segments import Position, write_segment
store, folder, history, revision = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
print("ready", flush=True)
while True:
    write_segment(store, folder, Position(history, revision), "2026-11-29T08:00:00Z")
"""


class KillTests(SegmentCase):
    """kill -9 while segments are written."""

    def test_kill(self) -> None:
        """A killed process leaves segments that are complete, and temporary files that are not segments."""
        _, position = self.copy()
        for number in range(300):
            self.put(f"/r/{number}", os.urandom(2000))
        command = [sys.executable, "-c", _WRITER, self.storage.path, str(self.folder)]
        root = str(Path(kubetwist.__file__).parent.parent)
        for _ in range(5):
            process = subprocess.Popen(
                [*command, str(position.history), str(position.revision)],
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": root},
            )
            assert process.stdout is not None
            with process, process.stdout as lines:
                self.assertEqual(lines.readline(), b"ready\n")
                while not list(self.folder.glob(".*")):
                    self.assertIsNone(process.poll())
                process.kill()
            for path in self.folder.glob(f"*{SUFFIX}"):
                self.assertEqual(verify_segment(path).until, self.storage.revision)
