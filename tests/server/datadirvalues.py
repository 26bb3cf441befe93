"""What the tests of the data directory share."""

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
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def mode(path: Path) -> int:
    """Who may do what with a file."""
    return stat.S_IMODE(path.stat().st_mode)


class DataDirectoryTestCase(SynchronousTestCase):
    """A test with the tools of several test cases."""

    def setUp(self) -> None:
        """A place where nothing is yet."""
        self.path = Path(self.mktemp()).absolute() / "data"

    def open(self) -> DataDirectory:
        """Open it, and close it after the test."""
        data = DataDirectory(self.path)
        data.open()
        self.addCleanup(data.close)
        return data

    def credentials(self, data: DataDirectory, *flags: str) -> Credentials:
        """What the server shows, with some flags."""
        options = Options()
        options.parseOptions([f"--data-dir={self.path}", *flags])
        return Credentials(data, options)

    def start(self, *flags: str) -> Path:
        """What a start does with the directory."""
        data = self.open()
        found = self.credentials(data, *flags).write_kubeconfig("https://127.0.0.1:6443")
        data.close()
        return found

    def change(self, path: Path, change: Callable[[Any], object]) -> Any:
        """Change a kubeconfig as C{kubectl config} does, which writes it anew; start, and give what is there then."""
        document = yaml.safe_load(path.read_bytes())
        change(document)
        path.write_text(yaml.safe_dump(document))
        return yaml.safe_load(self.start().read_bytes())

    def refused(self) -> str:
        """In what words the directory is refused."""
        error = self.assertRaises(StartError, self.start)
        self.assertNotIn("\n", str(error))
        self.assertIn(str(self.path), str(error))
        return str(error)
