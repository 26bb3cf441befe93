# mypy: allow-untyped-calls
"""Stores that were cut off: what L{kubetwist.storage.sqlite.storage} does before it uses their files."""

from __future__ import annotations

import os
import shutil
import sqlite3
from typing import Any

from kubetwist.storage.errors import StorageCorrupt
from kubetwist.storage.sqlite import storage as sqlite_module
from kubetwist.storage.sqlite.logfile import LogFile
from tests.storage.sqlite.test_storage import FileCase


class InterruptedTests(FileCase):
    """Files of stores that were not closed."""

    def setUp(self) -> None:
        """A store with something large in it, checkpointed, and something in its log."""
        super().setUp()
        connections: list[sqlite3.Connection] = []

        def connect(*args: Any, **how: Any) -> sqlite3.Connection:
            connections.append(sqlite3.connect(*args, check_same_thread=False, **how))
            return connections[-1]

        storage = self.open(connect)
        self.write(storage, "/r/large", b"x" * 50_000)
        connections[0].execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.write(storage, "/r/small", b"y")
        self.checks: list[str] = []
        checked = LogFile.check

        def check(file: LogFile) -> None:
            self.checks.append(file.path)
            checked(file)

        self.patch(LogFile, "check", check)
        self.whole, self.path = self.path, os.path.abspath(self.mktemp())
        for suffix in ("", "-wal"):
            shutil.copyfile(self.whole + suffix, self.path + suffix)

    def test_checked(self) -> None:
        """What a kill left is looked through before it is used; what was closed well only while it is small."""
        self.patch(sqlite_module, "ALWAYS_CHECKED", 0)
        storage = self.open()
        self.assertEqual(self.checks, [self.path])
        self.assertEqual([key for key, _, _ in self.page(storage)], ["/r/large", "/r/small"])
        storage = self.reopen(storage)
        self.assertEqual(self.checks, [self.path])
        self.patch(sqlite_module, "ALWAYS_CHECKED", 1 << 20)
        self.reopen(storage)
        self.assertEqual(self.checks, [self.path] * 2)

    def test_damaged(self) -> None:
        """Damage where nobody would have looked yet is found, and the message says what puts a backup in its place."""
        with open(self.path, "r+b") as file:
            content = file.read()
            # A page of the large value begins with the number of the next one.
            (page, *_) = [at for at in range(0, len(content), 4096) if content[at + 4 : at + 4096] == b"x" * 4092]
            file.seek(page)
            file.write((1 << 30).to_bytes(4, "big"))
        self.refused(StorageCorrupt, "is damaged", "twist kubeapi-restore")
