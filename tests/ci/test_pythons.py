"""Tests for F{.ci/pythons}: which versions of Python it selects. The suite itself is run by hand and by F{.ci/run}."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ..checkout import CHECKOUT


class VersionTests(SynchronousTestCase):
    """The selection of interpreters."""

    def run_script(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the script, without interpreters of pyenv."""
        script = CHECKOUT / ".ci" / "pythons"
        if not script.exists():
            raise SkipTest("the scripts are not here")
        temporary = Path(self.mktemp())
        temporary.mkdir()
        environment = {"PYTHON": sys.executable, "PYENV_ROOT": str(temporary), "TMPDIR": str(temporary.absolute())}
        done = subprocess.run(
            [script, *arguments], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
        )
        self.assertEqual(list(temporary.iterdir()), [])
        return done

    def test_missing(self) -> None:
        """A version that cannot be had is skipped with the reason, and nothing is built."""
        done = self.run_script("3.99")
        self.assertEqual((done.returncode, done.stdout), (0, "pythons: 3.99 skipped: there is no python3.99\n"))

    def test_further(self) -> None:
        """The version of the interpreter that runs the other tests is left out."""
        current = f"{sys.version_info.major}.{sys.version_info.minor}"
        done = self.run_script("--further", current, "3.99")
        self.assertEqual((done.returncode, done.stdout), (0, "pythons: 3.99 skipped: there is no python3.99\n"))

    def test_unknown(self) -> None:
        """An unknown option is refused."""
        self.assertEqual(self.run_script("--nope").returncode, 2)
