# mypy: allow-untyped-calls
"""Tests for L{kubetwist.cli.manpages}."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.flagtable import FLAGS
from kubetwist.cli.main import COMMANDS
from kubetwist.cli.manpages import escape, manual_pages
from tests.checkout import CHECKOUT


class PageTests(SynchronousTestCase):
    """The manual pages."""

    def setUp(self) -> None:
        """Make the pages."""
        self.pages = manual_pages()

    def test_current(self) -> None:
        """The pages in F{man/}, which the wheel contains, have the present flags: see F{.ci/manpages.py}."""
        for name, text in self.pages.items():
            self.assertTrue((CHECKOUT / "man" / name).read_text("utf-8") == text, f"run .ci/manpages.py: {name}")

    def test_flags(self) -> None:
        """Each flag of the server is in its page, and each command in the other one."""
        page = self.pages["kubetwist-serve.1"].replace("\\-", "-")
        for flag in FLAGS:
            self.assertEqual(len(re.findall(rf"(?m)^\\fB--{flag.name}\\fR", page)), 1, flag.name)
        page = self.pages["kubetwist.1"].replace("\\-", "-")
        for name in COMMANDS:
            self.assertIn(f"\\fB{name}\\fR", page)
        self.assertIn("\n\\fB--bump-revision\\fR \\fIint\\fR\n", page)
        self.assertNotIn("twist kubeapi", page)

    def test_escape(self) -> None:
        """Characters that roff interprets are escaped."""
        self.assertEqual(escape(".a-b\\c 'd' e,f"), "\\&.a\\-b\\ec \\(aqd\\(aq e,\\:f")
        self.assertEqual(escape("`x` ~^"), "\\(gax\\(ga \\(ti\\(ha")

    def test_no_warnings(self) -> None:
        """groff, man and mandoc format the pages without warnings, where they are installed."""
        folder = Path(self.mktemp())
        folder.mkdir()
        checkers = [
            ["groff", "-man", "-Tutf8", "-ww", "-z"],
            ["man", "--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l"],
            ["mandoc", "-T", "lint", "-W", "warning"],
        ]
        present = [checker for checker in checkers if shutil.which(checker[0])]
        if not present:
            self.skipTest("neither groff nor man nor mandoc is installed")
        for name, text in self.pages.items():
            (folder / name).write_text(text, "utf-8")
            for checker in present:
                ended = subprocess.run([*checker, str(folder / name)], capture_output=True, text=True)
                output = ended.stderr + (ended.stdout if checker[0] == "mandoc" else "")
                # A page has no date, so that it changes only with the flags.
                lines = [line for line in output.splitlines() if "missing date" not in line]
                self.assertEqual(lines, [], f"{checker[0]} {name}")
