"""Tests of L{kubetwist.server.files}."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.files import write_file
from tests.server.datadirvalues import contents, mode


class WriteFileTests(SynchronousTestCase):
    """L{write_file}."""

    def test_replaces(self) -> None:
        """A written file has the new content and mode, and no temporary file remains."""
        folder = Path(self.mktemp())
        folder.mkdir()
        path = folder / "file"
        write_file(path, b"one", 0o644)
        write_file(path, b"two", 0o600)
        self.assertEqual((contents(folder), mode(path)), ({"file": b"two"}, 0o600))

    def test_fails(self) -> None:
        """If the file cannot be replaced, its content is unchanged."""
        folder = Path(self.mktemp())
        folder.mkdir()
        path = folder / "file"
        write_file(path, b"one")

        def broken(*_: object) -> None:
            raise OSError("no")

        self.patch(os, "replace", broken)
        self.assertRaises(OSError, write_file, path, b"two")
        self.assertEqual(contents(folder), {"file": b"one"})
