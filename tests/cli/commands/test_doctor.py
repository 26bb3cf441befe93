# mypy: allow-untyped-calls
"""Tests for L{kubetwist.cli.commands.doctor}; F{tests/e2e/operations/test_doctor.py} has those with servers."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli import main


class DoctorTests(SynchronousTestCase):
    """C{kubetwist doctor}."""

    def run_doctor(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command; return the exit code, and what it writes to stdout and stderr."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main.run(["doctor", *arguments])
        return code, out.getvalue(), err.getvalue()

    def test_help(self) -> None:
        """The help describes the command."""
        code, out, _ = self.run_doctor("--help")
        self.assertEqual(code, 0)
        self.assertTrue(out.startswith("Usage: kubetwist doctor"), out)

    def test_invalid(self) -> None:
        """An invalid flag is one line, with the exit code 2."""
        code, out, err = self.run_doctor("--nope")
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(err, "kubetwist doctor: unknown flag: --nope; see kubetwist doctor --help\n")

    def test_errors(self) -> None:
        """Errors have the exit code 2, and the report is complete."""
        folder = Path(self.mktemp())
        folder.mkdir()
        (folder / "mine").write_text("")
        code, out, err = self.run_doctor(f"--data-dir={folder}", "--secure-port=0", "-o", "json", "--timeout=2m")
        self.assertEqual((code, err), (2, ""))
        document = json.loads(out)
        self.assertEqual(document["kind"], "Report")
        severities = {one["id"]: one["severity"] for one in document["findings"]}
        self.assertEqual(severities["data-directory/format"], "error")
        self.assertEqual([path.name for path in folder.iterdir()], ["mine"])
