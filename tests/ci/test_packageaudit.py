"""Tests for F{.ci/packageaudit.py}: which vulnerabilities fail the audit."""

from __future__ import annotations

import tomllib

from twisted.trial.unittest import SynchronousTestCase

from ..checkout import CHECKOUT, load_script

script = load_script(".ci/packageaudit.py")

REPORT = {
    "dependencies": [
        {"name": "kubetwist", "skip_reason": "not on PyPI"},
        {"name": "fine", "version": "1.0", "vulns": []},
        {
            "name": "old",
            "version": "0.9",
            "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-2026-1"], "fix_versions": ["1.0"]}],
        },
    ]
}


class FindingTests(SynchronousTestCase):
    """The report of pip-audit."""

    def test_found(self) -> None:
        """A vulnerability is reported with the package and the fixed version."""
        self.assertEqual(script.findings(REPORT, {}), (["old 0.9: PYSEC-1, fixed in 1.0"], []))

    def test_ignored(self) -> None:
        """A listed vulnerability is not reported, by any of its names; a row without one is."""
        self.assertEqual(script.findings(REPORT, {"CVE-2026-1": "not called"}), ([], []))
        self.assertEqual(script.findings(REPORT, {"PYSEC-1": "not called", "PYSEC-2": "x"}), ([], ["PYSEC-2"]))

    def test_list(self) -> None:
        """The rows of the list are ids with reasons."""
        rows = tomllib.loads((CHECKOUT / ".ci" / "audit-ignored.toml").read_text("utf-8"))
        self.assertTrue(all(isinstance(reason, str) and reason for reason in rows.values()))
