"""Tests for L{kubetwist.cli.doctor}."""

from __future__ import annotations

import json
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.doctor import Options, diagnose, ineffective, long_flags, parse, report
from kubetwist.cli.flagtypes import FlagError
from kubetwist.server.diagnosis.findings import error, ok, warning


class DoctorTests(SynchronousTestCase):
    """The flags and the report of the command."""

    def test_flags(self) -> None:
        """The flags of a server are accepted, and the flags of the report."""
        options = parse(["--data-dir=x", "-o", "json", "--strict", "--timeout=5s"])
        self.assertEqual((options["data-dir"], options["output"], options["timeout"]), ("x", "json", 5.0))
        self.assertEqual(options.changed, {"data-dir", "output", "strict", "timeout"})

    def test_short_flag(self) -> None:
        """-o is accepted in all its forms."""
        self.assertEqual(long_flags(["-o", "json", "-ojson", "-o=json"]), ["--output", "json", *["--output=json"] * 2])

    def test_invalid(self) -> None:
        """Invalid flags are refused as by the server."""
        cases = (
            (["--nope"], "unknown flag: --nope"),
            (["-o", "yaml"], 'invalid argument "yaml" for "--output" flag: it must be one of text, json'),
            (["--tls-cert-file=x"], "--tls-cert-file and --tls-private-key-file must be set together"),
        )
        for arguments, message in cases:
            self.assertEqual(str(self.assertRaises(FlagError, parse, arguments)), message)

    def test_report(self) -> None:
        """The report has the chosen format, and the exit code of its worst finding."""
        text, code = report([ok("a/b", "fine"), warning("a/c", "hm", "look")], parse(["--strict"]))
        self.assertEqual((text.splitlines()[0][:12], code), ("warning  a/c", 1))
        text, code = report([error("a/b", "bad", "fix")], parse(["-ojson"]))
        self.assertEqual((json.loads(text)["findings"][0]["id"], code), ("a/b", 2))

    def test_ineffective(self) -> None:
        """The flags without effect are in the tables."""
        self.assertIn("log-flush-frequency", ineffective())
        self.assertNotIn("peer-ca-file", ineffective())

    def test_help(self) -> None:
        """The help has the exit codes, and the flags of the report before the flags of the server."""
        text = str(Options())
        self.assertTrue(text.startswith("Usage: kubetwist doctor [flags of kubetwist serve]\n"), text)
        self.assertIn("Exit codes: 0 without problems", text)
        self.assertLess(text.index("--strict"), text.index("--data-dir"))

    def test_diagnosed(self) -> None:
        """A diagnosis of a server in memory finds the flags without effect."""
        options = parse(["--in-memory", "--secure-port=0", "--log-flush-frequency=1s", "--timeout=2m"])
        found = diagnose(options)
        self.assertIn("--log-flush-frequency has no effect", " ".join(one.message for one in found))
        self.assertFalse(Path(options["data-dir"]).exists())
