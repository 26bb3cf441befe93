"""Tests for L{kubetwist.server.diagnosis.datadir}."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

from attrs import evolve

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.diagnosis.datadir import (
    DirectoryFacts,
    check_store,
    exposed_files,
    holder_of,
    judge_directory,
    read_directory,
    read_marker,
)
from kubetwist.server.diagnosis.findings import Severity
from kubetwist.storage.sqlite._format import SCHEMA
from kubetwist.storage.sqlite._highwater import HighWaterMark

GOOD = DirectoryFacts("/data", exists=True)


class JudgeTests(SynchronousTestCase):
    """L{judge_directory}."""

    def worst(self, facts: DirectoryFacts) -> tuple[str, Severity]:
        """Return the worst finding."""
        found = max(judge_directory(facts), key=lambda one: one.severity)
        return found.id, found.severity

    def test_good(self) -> None:
        """A good directory has no problem, also while a server uses it."""
        self.assertIs(self.worst(GOOD)[1], Severity.OK)
        found = list(judge_directory(evolve(GOOD, holder=123)))
        self.assertEqual({one.severity for one in found}, {Severity.OK})
        self.assertIn("process 123 uses /data", [one.message for one in found])

    def test_problems(self) -> None:
        """Each problem has its finding."""
        cases = (
            (evolve(GOOD, exists=False), "exists", Severity.NOTE),
            (evolve(GOOD, usable=False), "access", Severity.ERROR),
            (evolve(GOOD, format=None), "format", Severity.ERROR),
            (evolve(GOOD, format=None, empty=True), "format", Severity.NOTE),
            (evolve(GOOD, format=0), "format", Severity.ERROR),
            (evolve(GOOD, format=99), "format", Severity.ERROR),
            (evolve(GOOD, restoring=True), "restore", Severity.ERROR),
            (evolve(GOOD, leftovers=("replaced-1",)), "leftovers", Severity.NOTE),
            (evolve(GOOD, owner=(0, 1000)), "owner", Severity.WARNING),
            (evolve(GOOD, mode=0o755), "mode", Severity.WARNING),
            (evolve(GOOD, exposed=(("pki/ca.key", 0o644),)), "secrets", Severity.ERROR),
        )
        for facts, name, expected in cases:
            self.assertEqual(self.worst(facts), (f"data-directory/{name}", expected))


class ReadTests(SynchronousTestCase):
    """Reading of facts."""

    def setUp(self) -> None:
        """Create a data directory."""
        self.folder = Path(self.mktemp()).absolute()
        (self.folder / "pki").mkdir(parents=True)
        self.folder.chmod(0o700)
        for name, content, mode in (
            ("kubetwist.json", '{"format": 1}', 0o600),
            ("pki/ca.key", "secret", 0o600),
            ("pki/ca.crt", "public", 0o644),
            ("admin.kubeconfig", "secret", 0o600),
            ("store.sqlite", "objects", 0o644),
        ):
            path = self.folder / name
            path.write_text(content)
            path.chmod(mode)

    def test_good(self) -> None:
        """The facts of a good directory; nothing is created."""
        before = sorted(self.folder.rglob("*"))
        self.assertEqual(read_directory(self.folder), evolve(GOOD, path=str(self.folder), owner=(os.geteuid(),) * 2))
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_missing(self) -> None:
        """A directory that does not exist is not created."""
        self.assertFalse(read_directory(self.folder / "other").exists)
        self.assertFalse((self.folder / "other").exists())

    def test_exposed(self) -> None:
        """Keys must not be readable; the store must not be, unless its directory is closed."""
        (self.folder / "pki" / "ca.key").chmod(0o640)
        self.assertEqual(list(exposed_files(self.folder)), [("pki/ca.key", 0o640)])
        self.folder.chmod(0o755)
        self.assertIn(("store.sqlite", 0o644), list(exposed_files(self.folder)))

    def test_marker(self) -> None:
        """A damaged marker has the format 0."""
        for content in ("", "[]", '{"format": "x"}', "\xff"):
            (self.folder / "kubetwist.json").write_text(content, "latin-1")
            self.assertEqual(read_marker(self.folder / "kubetwist.json"), 0, content)
        self.assertIsNone(read_marker(self.folder / "other"))

    def test_leftovers(self) -> None:
        """Files of interrupted work are found."""
        for name in (".pki.12", "replaced-2026", ".restoring"):
            (self.folder / name).mkdir()
        facts = read_directory(self.folder)
        self.assertEqual((facts.leftovers, facts.restoring), ((".pki.12", "replaced-2026"), True))

    def test_holder(self) -> None:
        """A server uses the directory if its process lives and the marker is locked."""
        locks = Path(self.mktemp())
        inode = (self.folder / "kubetwist.json").stat().st_ino
        locks.write_text(f"1: FLOCK  ADVISORY  WRITE 42 08:01:{inode} 0 EOF\n")
        self.assertEqual(holder_of(self.folder, locks), 0)
        (self.folder / "kubetwist.pid").write_text(f"{os.getpid()}\n")
        self.assertEqual(holder_of(self.folder, locks), os.getpid())
        self.assertEqual(holder_of(self.folder, Path("/nonexistent")), os.getpid())
        locks.write_text(f"1: POSIX  ADVISORY  WRITE 42 08:01:{inode} 0 EOF\n")
        self.assertEqual(holder_of(self.folder, locks), 0)
        (self.folder / "kubetwist.pid").write_text("x")
        self.assertEqual(holder_of(self.folder, locks), 0)
        (self.folder / "kubetwist.pid").write_text("99999999")
        self.assertEqual(holder_of(self.folder, locks), 0)


class StoreTests(SynchronousTestCase):
    """L{check_store}."""

    def setUp(self) -> None:
        """Create a store without objects."""
        self.path = Path(self.mktemp()).absolute()
        with sqlite3.connect(self.path, isolation_level=None) as connection:
            for statement in SCHEMA:
                connection.execute(statement)
        connection.close()

    def severities(self, *, in_use: bool = False) -> dict[str, Severity]:
        """Return the severities by identifier."""
        return {one.id: one.severity for one in check_store(self.path, in_use=in_use)}

    def test_good(self) -> None:
        """A good store has no problem, and no files beside it."""
        for in_use in (False, True):
            self.assertEqual(self.severities(in_use=in_use), {"store/mark": 0, "store/structure": 0})
        self.assertEqual(list(self.path.parent.glob(f"{self.path.name}-*")), [])

    def test_missing(self) -> None:
        """A missing store is created by the server."""
        self.path.unlink()
        self.assertEqual(self.severities(), {"store/exists": Severity.NOTE})

    def test_old(self) -> None:
        """A store that is older than its mark has lost writes."""
        mark = HighWaterMark(f"{self.path}-mark")
        mark.open(10_000)
        mark.close()
        self.assertEqual(self.severities(), {"store/mark": Severity.ERROR})

    def test_damaged(self) -> None:
        """Garbage and damaged pages are errors."""
        content = bytearray(self.path.read_bytes())
        content[4096 + 100 : 4096 + 1000] = b"\xff" * 900
        content[4096:4108] = b"\x55" * 12
        self.path.write_bytes(content)
        self.assertIs(self.severities()["store/structure"], Severity.ERROR)
        self.path.write_bytes(b"garbage" * 1000)
        self.assertIn(Severity.ERROR, self.severities().values())

    def test_unclean(self) -> None:
        """A store with a log is left to the next start."""
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE state SET value = value + 1")
        self.assertIs(self.severities()["store/structure"], Severity.NOTE)
        self.assertIs(self.severities(in_use=True)["store/structure"], Severity.OK)
        connection.close()

    def test_slow(self) -> None:
        """A store that is too large for the time is a note."""
        with sqlite3.connect(self.path, isolation_level=None) as connection:
            connection.execute(
                "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000)"
                " INSERT INTO log SELECT x << 16, 'key' || x, 0, NULL, zeroblob(10), NULL FROM n"
            )
        connection.close()
        found = list(check_store(self.path, in_use=False, seconds=-1.0))
        self.assertIs(found[-1].severity, Severity.NOTE)
        json.dumps([one.message for one in found])
