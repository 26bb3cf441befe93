# mypy: allow-untyped-calls
"""Tests for L{kubetwist.server.backups}."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.cli.kubeapi import Options
from kubetwist.server import backups
from kubetwist.server.backups import MANIFEST, back_up, read_backup, restore
from kubetwist.server.datadir import MARKER, RESTORE_MARKER, Credentials, DataDirectory
from kubetwist.server.errors import StartError
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.testing.storage import StorageReactor


def nothing(done: int, total: int) -> None:
    """Ignore progress."""


class BackupTests(SynchronousTestCase):
    """Backup and restore of data directories."""

    def setUp(self) -> None:
        """Open a data directory."""
        self.reactor = StorageReactor()
        base = Path(self.mktemp()).absolute()
        base.mkdir()
        self.source, self.backup, self.target = base / "data", base / "backup", base / "restored"
        self.lines: list[str] = []
        self.data = DataDirectory(self.source)
        self.data.open()
        self.addCleanup(self.data.close)
        options = Options()
        options.parseOptions([f"--data-dir={self.source}"])
        Credentials(self.data, options).write_kubeconfig("https://127.0.0.1:6443")
        self.storage = self.open(self.source)
        self.write(b"1")

    def open(self, folder: Path) -> SQLiteStorage:
        """Open the store of a data directory until the end of the test."""
        storage = SQLiteStorage(folder / "store.sqlite", self.reactor)
        self.addCleanup(lambda: self.reactor.run(storage.close()))
        self.reactor.run(storage.open())
        return storage

    def write(self, value: bytes) -> int:
        """Write the only key."""
        return self.reactor.run(self.storage.commit([Write("/r/a", value, None)]))

    def value(self, folder: Path) -> bytes:
        """Return the value of the key in another directory."""
        storage = self.open(folder)
        value = self.reactor.run(storage.read("/r/a")).value
        self.reactor.run(storage.close())
        return value

    def restore(self, bump: int = 10, *, replace: bool = False) -> None:
        """Restore the backup."""
        restore(self.backup, self.target, bump, replace=replace, report=self.lines.append)

    def refused(self, *texts: str, replace: bool = False) -> None:
        """Assert that a restore fails with one line that contains C{texts}."""
        error = self.assertRaises(StartError, self.restore, replace=replace)
        for text in texts:
            self.assertIn(text, str(error))
        self.assertNotIn("\n", str(error))

    def test_round(self) -> None:
        """A restored directory has the content of the backup, including keys and certificates."""
        taken = back_up(self.source, self.backup, nothing)
        self.assertEqual((taken.revision, taken.keys, taken.has_keys), (2, 1, True))
        self.assertEqual(read_backup(self.backup), taken)
        self.write(b"2")
        self.restore()
        self.assertEqual(self.value(self.target), b"1")
        pki = {path.name: path.read_bytes() for path in (self.source / "pki").iterdir()}
        self.assertEqual({path.name: path.read_bytes() for path in (self.target / "pki").iterdir()}, pki)
        again = DataDirectory(self.target)
        again.open()
        again.close()

    def test_private(self) -> None:
        """Backups and restored directories are readable by their owner only."""
        back_up(self.source, self.backup, nothing)
        self.restore()
        for folder in (self.backup, self.backup / "pki", self.target, self.target / "pki"):
            self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o700)
        for path in (*self.backup.rglob("*"), *self.target.rglob("*")):
            if path.is_file() and path.suffix not in (".crt", ".pub") and path.name != MARKER:
                self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)

    def test_without_keys(self) -> None:
        """A backup without keys keeps the keys of the directory into which it is restored."""
        self.assertFalse(back_up(self.source, self.backup, nothing, keys=False).has_keys)
        self.assertFalse((self.backup / "pki").exists())
        self.reactor.run(self.storage.close())
        self.data.close()
        before = (self.source / "pki" / "ca.key").read_bytes()
        self.target = self.source
        self.restore(replace=True)
        self.assertEqual((self.source / "pki" / "ca.key").read_bytes(), before)

    def test_no_data_directory(self) -> None:
        """A backup is not a data directory: no server starts on it."""
        back_up(self.source, self.backup, nothing)
        error = self.assertRaises(StartError, DataDirectory(self.backup).open)
        self.assertIn("is not a data directory", str(error))

    def test_refused_sources(self) -> None:
        """A directory without a store, or that is not a data directory, is not backed up."""
        for folder, text in ((self.source.parent, MARKER), (self.target, "store.sqlite")):
            if folder == self.target:
                empty = DataDirectory(folder)
                empty.open()
                empty.close()
            error = self.assertRaises(StartError, back_up, folder, self.backup, nothing)
            self.assertIn(text, str(error))
        back_up(self.source, self.backup, nothing)
        self.assertIn("already exists", str(self.assertRaises(StartError, back_up, self.source, self.backup, nothing)))

    def test_nothing_left(self) -> None:
        """A failed backup leaves no files."""

        def progress(done: int, total: int) -> None:
            raise ZeroDivisionError

        self.assertRaises(ZeroDivisionError, back_up, self.source, self.backup, progress)
        self.assertEqual(sorted(path.name for path in self.backup.parent.iterdir()), ["data"])

    def test_running(self) -> None:
        """A directory in use is not restored into; the error names the process."""
        back_up(self.source, self.backup, nothing)
        self.target = self.source
        self.refused("is in use by", f"process {os.getpid()}", replace=True)
        self.assertEqual(self.reactor.run(self.storage.read("/r/a")).value, b"1")

    def test_replace(self) -> None:
        """An existing store is moved aside with --replace, and refused without it."""
        back_up(self.source, self.backup, nothing)
        self.write(b"2")
        self.reactor.run(self.storage.close())
        self.data.close()
        self.target = self.source
        self.refused("--replace")
        self.assertEqual(self.value(self.source), b"2")
        self.restore(replace=True)
        self.assertEqual(self.value(self.source), b"1")
        (aside,) = self.source.glob("replaced-*")
        self.assertIn(str(aside), self.lines[0])
        self.assertEqual(self.value(aside), b"2")

    def test_damaged(self) -> None:
        """A modified backup is refused, and nothing is moved aside."""
        back_up(self.source, self.backup, nothing)
        self.restore()
        (self.backup / "pki" / "sa.key").write_bytes(b"other")
        self.refused("is damaged", "pki/sa.key", replace=True)
        (self.backup / "store.sqlite").write_bytes(b"other")
        self.refused("is damaged", replace=True)
        (self.backup / MANIFEST).write_bytes(b"{}")
        self.refused("is damaged", MANIFEST, replace=True)
        (self.backup / MANIFEST).write_text(json.dumps({"format": 99}))
        self.refused("newer version of kubetwist", replace=True)
        (self.backup / MANIFEST).unlink()
        self.refused("is not a backup", replace=True)
        self.assertEqual(list(self.target.glob("replaced-*")), [])
        self.assertEqual(self.value(self.target), b"1")

    def test_outside(self) -> None:
        """A backup that references files outside of it is refused."""
        back_up(self.source, self.backup, nothing)
        known = json.loads((self.backup / MANIFEST).read_bytes())
        for name in ("../x", "/etc/passwd", "pki/../../x"):
            content = known | {"files": known["files"] | {name: ""}}
            (self.backup / MANIFEST).write_text(json.dumps(content))
            self.refused("is damaged")

    def test_interrupted(self) -> None:
        """After an interrupted restore no server starts on the directory, and the restore can be repeated."""
        back_up(self.source, self.backup, nothing)
        self.restore()
        renamed = Path.rename
        for calls in range(1, 6):
            remaining = [calls]

            def rename(path: Path, to: Path, remaining: list[int] = remaining) -> Path:
                remaining[0] -= 1
                if not remaining[0]:
                    raise OSError("cut off")
                return renamed(path, to)

            self.patch(Path, "rename", rename)
            try:
                restore(self.backup, self.target, 10, replace=True, report=self.lines.append)
            except StartError:
                cut = True
            else:
                cut = False
            self.patch(Path, "rename", renamed)
            if not cut:
                break
            self.assertTrue((self.target / RESTORE_MARKER).exists())
            error = self.assertRaises(StartError, DataDirectory(self.target).open)
            self.assertIn("a restore was interrupted", str(error))
            self.restore()
            self.assertEqual(self.value(self.target), b"1")
        self.assertGreater(calls, 3)
        self.assertEqual(list(self.target.glob(".restored.*")), [])

    def test_unused(self) -> None:
        """Content that is moved aside in the same second goes to different folders."""
        taken = backups._unused(self.source)
        self.assertEqual(taken.name, "data-2")
