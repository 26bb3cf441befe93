"""Tests for L{kubetwist.audit.make}, with parsed command lines."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.audit.auditor import Auditor
from kubetwist.audit.buffered import (
    BlockingBackend,
    BufferedBackend,
)
from kubetwist.audit.make import make_auditor
from kubetwist.audit.policy import REQUEST
from kubetwist.cli.kubeapi import Options
from kubetwist.http.requestinfo import request_info_of
from kubetwist.server.watchedfiles import POLL_INTERVAL, FileReloader

POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"


def options(*flags: str) -> Options:
    """Return a parsed command line."""
    made = Options()
    made.parseOptions(list(flags))
    return made


class MakeTests(SynchronousTestCase):
    """Tests for L{make_auditor}."""

    def make(self, *flags: str, policy: str = POLICY) -> Auditor | None:
        """Return the auditor of a server."""
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.policy = self.folder / "policy.yaml"
        self.policy.write_text(policy)
        self.clock = Clock()
        self.files = files = FileReloader(self.clock, in_thread=lambda call: succeed(call()))
        flags = tuple(flag.replace("FOLDER", str(self.folder)) for flag in flags)
        server: Any = SimpleNamespace(reactor=self.clock, files=files)
        return make_auditor(options(*flags), server)

    def test_off(self) -> None:
        """Without a policy or an output there is no auditor."""
        for flags in (("--audit-log-path=-",), ("--audit-policy-file=FOLDER/policy.yaml",)):
            self.assertIsNone(self.make(*flags))

    def test_modes(self) -> None:
        """The log blocks requests by default and can be batched."""
        for mode, kind, strict in (
            ((), BlockingBackend, False),
            (("--audit-log-mode=blocking-strict",), BlockingBackend, True),
            (("--audit-log-mode=batch",), BufferedBackend, False),
        ):
            made = self.make("--audit-policy-file=FOLDER/policy.yaml", "--audit-log-path=FOLDER/deep/log", *mode)
            assert made is not None
            self.assertEqual((type(made._backends[0]), made.strict), (kind, strict))
            self.assertTrue((self.folder / "deep" / "log").exists())

    def test_reload(self) -> None:
        """A changed policy applies from the next request on; an invalid one is ignored."""
        made = self.make("--audit-policy-file=FOLDER/policy.yaml", "--audit-log-path=FOLDER/log")
        assert made is not None
        self.files.start()
        self.addCleanup(self.files.stop)
        info = request_info_of(b"GET", b"/version")
        levels = []
        for content in (POLICY.replace("Metadata", "Request"), "nonsense"):
            self.policy.write_text(content)
            self.clock.advance(POLL_INTERVAL)
            levels.append(made._policy.evaluate_policy_rule(info, None).level)
        self.assertEqual(levels, [REQUEST, REQUEST])

    def test_bad(self) -> None:
        """An invalid policy or an unusable output stops the server with the reason."""
        for flags, policy, text in (
            (("--audit-policy-file=FOLDER/policy.yaml",), "{}", "loading audit policy file: failed decoding"),
            (
                ("--audit-policy-file=FOLDER/none",),
                POLICY,
                'failed to read file path "FOLDER/none": open FOLDER/none: no',
            ),
            (
                ("--audit-policy-file=FOLDER/policy.yaml", "--audit-log-path=FOLDER/policy.yaml/log"),
                POLICY,
                "/policy.yaml: file exists",
            ),
        ):
            with self.assertRaises(ValueError) as caught:
                self.make(*flags, policy=policy)
            self.assertIn(text.replace("FOLDER", str(self.folder)), str(caught.exception))
