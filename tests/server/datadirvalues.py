"""Base of tests of the data directory."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.kubeapi import Options
from kubetwist.server.datadir import Credentials, DataDirectory
from kubetwist.server.errors import StartError


def contents(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files below a folder, by relative path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def mode(path: Path) -> int:
    """Return the permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


class DataDirectoryTestCase(SynchronousTestCase):
    """Base of tests that combine several test cases."""

    def setUp(self) -> None:
        """Choose a path that does not exist."""
        self.path = Path(self.mktemp()).absolute() / "data"

    def open(self) -> DataDirectory:
        """Open the data directory; it is closed at the end of the test."""
        data = DataDirectory(self.path)
        data.open()
        self.addCleanup(data.close)
        return data

    def credentials(self, data: DataDirectory, *flags: str) -> Credentials:
        """Return the credentials for some flags."""
        options = Options()
        options.parseOptions([f"--data-dir={self.path}", *flags])
        return Credentials(data, options)

    def start(self, *flags: str) -> Path:
        """Open the directory and write the kubeconfig, as a start does."""
        data = self.open()
        found = self.credentials(data, *flags).write_kubeconfig("https://127.0.0.1:6443")
        data.close()
        return found

    def change(self, path: Path, change: Callable[[Any], object]) -> Any:
        """Change and rewrite the kubeconfig as C{kubectl config} does; return its content after another start."""
        document = yaml.safe_load(path.read_bytes())
        change(document)
        path.write_text(yaml.safe_dump(document))
        return yaml.safe_load(self.start().read_bytes())

    def refused(self) -> str:
        """Return the error of a refused start."""
        error = self.assertRaises(StartError, self.start)
        self.assertNotIn("\n", str(error))
        self.assertIn(str(self.path), str(error))
        return str(error)
