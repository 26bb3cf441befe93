"""Tests for L{kubetwist.server.diagnosis.running}."""

from __future__ import annotations

import socket
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.credentials.kubeconfig import kubeconfig
from kubetwist.server.diagnosis.findings import Finding, Severity
from kubetwist.server.diagnosis.http import Answer
from kubetwist.server.diagnosis.running import ServerFacts, check_port, facts_of, judge_server, read_server

URL = "https://127.0.0.1:1"


class ServerTests(SynchronousTestCase):
    """A running server."""

    def judge(self, facts: ServerFacts) -> Finding:
        """Return the only finding."""
        (found,) = judge_server(facts)
        return found

    def test_ready(self) -> None:
        """A ready server has no problem."""
        self.assertIs(
            self.judge(facts_of(URL, Answer(200, b"[+]ping ok\nreadyz check passed\n"), 0)).severity, Severity.OK
        )

    def test_not_ready(self) -> None:
        """Failed checks are named."""
        body = b"[+]ping ok\n[-]etcd failed: reason withheld\n[-]shutdown failed: reason withheld\n"
        found = self.judge(facts_of(URL, Answer(500, body), 0))
        self.assertIs(found.severity, Severity.ERROR)
        self.assertIn("etcd, shutdown", found.message)
        self.assertIn("answers 403", self.judge(facts_of(URL, Answer(403, b"{}"), 0)).message)

    def test_clock(self) -> None:
        """The difference of the clocks is computed from the date of the answer, if it has one."""
        self.assertEqual(facts_of(URL, Answer(200, b"", 1000.0), 1003.5).skew, 3.5)
        self.assertIsNone(facts_of(URL, Answer(200, b""), 1003.5).skew)

    def test_unreachable(self) -> None:
        """A server that does not answer is an error, without its key in the message."""
        authority = CertificateAuthority.make("ca")
        pair = authority.issue(CertConfig("admin"))
        path = Path(self.mktemp())
        path.write_bytes(kubeconfig(URL, authority.pair.certificate, pair))
        found = self.judge(read_server(path))
        self.assertIs(found.severity, Severity.ERROR)
        self.assertIn(f"does not answer at {URL}: ", found.message)
        self.assertIn("refused", found.message)

    def test_damaged(self) -> None:
        """A kubeconfig that is missing or damaged is an error."""
        path = Path(self.mktemp())
        self.assertIn("cannot be read", self.judge(read_server(path)).message)
        for content in ("", "[]", "{", "clusters: []", "clusters: [{cluster: {server: x}}]\nusers: [{user: {}}]"):
            path.write_text(content)
            self.assertIn("is damaged", self.judge(read_server(path)).message)


class PortTests(SynchronousTestCase):
    """L{check_port}."""

    def test_port(self) -> None:
        """A free port has no problem; a used one, and a foreign address, are errors."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            (found,) = check_port("127.0.0.1", port, shared=False)
            self.assertEqual((found.id, found.severity), ("server/port", Severity.ERROR))
            self.assertIn(f"sport = :{port}", found.remedy)
        (found,) = check_port("127.0.0.1", port, shared=True)
        self.assertIs(found.severity, Severity.OK)
        (found,) = check_port("192.0.2.1", 6443, shared=False)
        self.assertIn("--bind-address", found.remedy)
        (found,) = check_port("127.0.0.1", 0, shared=False)
        self.assertIs(found.severity, Severity.OK)
