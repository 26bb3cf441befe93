"""Tests for L{kubetwist.testing.envtest.assets}."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from hypothesis import given
from hypothesis.strategies import lists, text

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing.envtest.assets import AssetsError, scripts, write_assets


class AssetsTests(SynchronousTestCase):
    """The directory."""

    def setUp(self) -> None:
        """Choose a directory."""
        self.folder = Path(self.mktemp()) / "deep" / "bin"

    def test_written(self) -> None:
        """The programs are executable, and nothing else is there, also after they are written again."""
        for flags in (["--controllers="], []):
            self.assertEqual(write_assets(self.folder, flags), self.folder.absolute())
            self.assertEqual(sorted(os.listdir(self.folder)), ["etcd", "kube-apiserver", "kubectl"])
            for name in os.listdir(self.folder):
                self.assertTrue(os.access(self.folder / name, os.X_OK))
        self.assertNotIn("--controllers", (self.folder / "kube-apiserver").read_text())

    def test_foreign(self) -> None:
        """Nothing is written if one of the programs was not written by this function."""
        self.folder.mkdir(parents=True)
        (self.folder / "kubectl").write_bytes(b"\x7fELF")
        self.assertIn("was not written by this command", str(self.assertRaises(AssetsError, write_assets, self.folder)))
        self.assertEqual(os.listdir(self.folder), ["kubectl"])

    def test_unwritable(self) -> None:
        """A directory that cannot be made is an error that names it."""
        self.folder.parent.mkdir(parents=True)
        self.folder.touch()
        self.assertIn(str(self.folder), str(self.assertRaises(AssetsError, write_assets, self.folder)))

    @given(lists(text(alphabet=" '\"$\\=ab", min_size=1, max_size=8)))
    def test_quoting(self, flags: list[str]) -> None:
        """Flags and paths reach the program unchanged."""
        _, _, line = scripts(flags)["kube-apiserver"].partition("exec ")
        module = "kubetwist.testing.envtest._kubeapiserver"
        self.assertEqual(shlex.split(line), [sys.executable, "-P", "-m", module, *flags, "$@"])
