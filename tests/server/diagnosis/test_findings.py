"""Tests for L{kubetwist.server.diagnosis.findings}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.diagnosis.findings import (
    Finding,
    Severity,
    as_document,
    as_text,
    error,
    exit_code,
    note,
    ok,
    warning,
)

ALL = [
    ok("disk/space", "fine"),
    error("etcd/alarms", "bad\x1b[31m " + "word " * 40, "fix it"),
    note("flags/effect", "a note"),
    warning("clock/skew", "a warning", "look"),
]


class ReportTests(SynchronousTestCase):
    """Reports of findings."""

    def test_exit_codes(self) -> None:
        """The worst finding decides; warnings count with strict only."""
        for findings, normal, strict in ((ALL, 2, 2), (ALL[2:], 0, 1), (ALL[2:3], 0, 0), ([], 0, 0)):
            self.assertEqual(exit_code(findings, strict=False), normal)
            self.assertEqual(exit_code(findings, strict=True), strict)

    def test_document(self) -> None:
        """The document has the findings in the order of the checks, and their numbers."""
        document = as_document(ALL, "1.2")
        self.assertEqual(document["apiVersion"], "doctor.kubetwist.dev/v1")
        self.assertEqual((document["kind"], document["version"]), ("Report", "1.2"))
        self.assertEqual(document["counts"], {"error": 1, "warning": 1, "note": 1, "ok": 1})
        self.assertEqual(
            document["findings"][3],
            {"id": "clock/skew", "severity": "warning", "message": "a warning", "remedy": "look"},
        )

    def test_text(self) -> None:
        """The text begins with the worst finding, has short lines, and no control characters."""
        text = as_text(ALL)
        self.assertTrue(text.startswith("error    etcd/alarms   bad?[31m word"), text)
        self.assertTrue(text.endswith("\n1 error, 1 warning, 1 note, 1 ok\n"), text)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        self.assertIn("-> fix it\n", text)
        self.assertLess(text.index("clock/skew"), text.index("flags/effect"))
        self.assertTrue(as_text(ALL[:1] * 2).endswith("\n0 errors, 0 warnings, 0 notes, 2 ok\n"))

    def test_severities(self) -> None:
        """The functions make findings of their severity."""
        self.assertEqual([one.severity for one in ALL], [Severity.OK, Severity.ERROR, Severity.NOTE, Severity.WARNING])
        self.assertEqual(note("a/b", "c"), Finding("a/b", Severity.NOTE, "c", ""))
