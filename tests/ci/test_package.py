"""Tests for F{.ci/package.py}: the comparison of distributions."""

from __future__ import annotations

import zipfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ..checkout import load_script

script = load_script(".ci/package.py")


class ComparisonTests(SynchronousTestCase):
    """What is compared without building anything."""

    def test_differences(self) -> None:
        """Files with other content, and files of one wheel only, are differences."""
        folder = Path(self.mktemp())
        folder.mkdir()
        for name, files in (("a.whl", {"x": "1", "y": "2", "z": "3"}), ("b.whl", {"x": "1", "y": "4", "w": "5"})):
            with zipfile.ZipFile(folder / name, "w") as wheel:
                for path, text in files.items():
                    wheel.writestr(path, text)
        one, other = script.content(folder / "a.whl"), script.content(folder / "b.whl")
        self.assertEqual(script.differences(one, other), ["w", "y", "z"])
        self.assertEqual(script.differences(one, one), [])

    def test_missing(self) -> None:
        """Settings of the repository need not be in the sdist, tests and pages must."""
        tracked = ["tests/test_a.py", "docs/index.md", ".github/workflows/ci.yml", "newsfragments/1.doc.md"]
        self.assertEqual(script.missing_in_sdist({"docs/index.md"}, tracked), ["tests/test_a.py"])
