"""Tests for L{kubetwist.server.diagnosis.etcd}, and its requests."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

from attrs import evolve

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.diagnosis.etcd import MemberFacts, judge_members, read_members, skews_of, without_password
from kubetwist.server.diagnosis.findings import Severity
from tests.cli.commandlines import parsed

STATUS = {
    "header": {"cluster_id": "1"},
    "leader": "7",
    "dbSize": "1000",
    "raftIndex": "10",
    "raftAppliedIndex": "10",
}
GOOD = MemberFacts("https://10.0.0.1:2379", version="3.5.21", healthy=True, status=STATUS, skew=0.2)
THREE = [evolve(GOOD, url=f"https://10.0.0.{number}:2379") for number in (1, 2, 3)]


class JudgeTests(SynchronousTestCase):
    """L{judge_members}."""

    def found(self, *members: MemberFacts) -> dict[str, Severity]:
        """Return the worst severity by identifier, without findings that are fine."""
        result: dict[str, Severity] = {}
        for one in judge_members(members):
            if one.severity:
                result[one.id] = max(one.severity, result.get(one.id, Severity.OK))
        return result

    def status(self, **changed: Any) -> MemberFacts:
        """Return a member with another status."""
        return evolve(GOOD, status={**STATUS, **changed})

    def test_good(self) -> None:
        """Three healthy members have no problem; one or two are a note."""
        self.assertEqual(self.found(*THREE), {})
        self.assertEqual(self.found(*THREE[:1]), {"etcd/quorum": Severity.NOTE})
        self.assertEqual(self.found(*THREE[:2]), {"etcd/quorum": Severity.NOTE})

    def test_unreachable(self) -> None:
        """A member that does not answer is an error, and the loss of the majority another one."""
        lost = MemberFacts("https://10.0.0.9:2379", problem="refused")
        self.assertEqual(self.found(*THREE[:2], lost), {"etcd/reachable": Severity.ERROR})
        self.assertEqual(set(self.found(THREE[0], lost, lost)), {"etcd/reachable", "etcd/quorum"})

    def test_versions(self) -> None:
        """Old versions, those with defects, and different ones are reported."""
        cases = (
            ("3.3.27", Severity.ERROR),
            ("3.5.1", Severity.ERROR),
            ("3.5.5", Severity.ERROR),
            ("3.4.21", Severity.ERROR),
            ("3.4.34", Severity.WARNING),
            ("", Severity.WARNING),
            ("3.6.5-alpha", None),
        )
        for version, expected in cases:
            found = self.found(*(evolve(one, version=version) for one in THREE))
            self.assertEqual(found.get("etcd/version"), expected, version)
        self.assertEqual(self.found(*THREE[:2], evolve(GOOD, version="3.6.1")), {"etcd/versions": Severity.WARNING})

    def test_status(self) -> None:
        """Alarms, a missing leader, the size and the lag are reported."""
        cases: tuple[tuple[MemberFacts, str, Severity], ...] = (
            (self.status(errors=["alarm:NOSPACE memberID:1"]), "alarms", Severity.ERROR),
            (self.status(errors=["alarm:CORRUPT"]), "alarms", Severity.ERROR),
            (self.status(leader="0"), "leader", Severity.ERROR),
            (self.status(dbSize=str(2 << 30)), "size", Severity.WARNING),
            (self.status(dbSize=str(500 << 20), dbSizeQuota=str(512 << 20)), "size", Severity.WARNING),
            (self.status(dbSize=str(500 << 20), dbSizeInUse="1000"), "fragmentation", Severity.NOTE),
            (self.status(raftIndex="9999"), "lag", Severity.WARNING),
            (self.status(isLearner=True), "learner", Severity.WARNING),
            (self.status(header={"cluster_id": "2"}), "cluster", Severity.ERROR),
            (evolve(GOOD, status=None), "status", Severity.NOTE),
            (evolve(GOOD, healthy=False, reason="x"), "health", Severity.ERROR),
            (evolve(GOOD, url="http://10.0.0.1:2379"), "tls", Severity.WARNING),
        )
        for member, name, expected in cases:
            self.assertIs(self.found(*THREE[:2], member).get(f"etcd/{name}"), expected, name)
        self.assertEqual(
            self.found(*THREE[:2], self.status(dbSize=["x"], leader={})).get("etcd/leader"), Severity.ERROR
        )

    def test_skews(self) -> None:
        """Differences of clocks are known for members with a date."""
        self.assertEqual(skews_of([GOOD, evolve(GOOD, url="x", skew=None)]), {GOOD.url: 0.2})

    def test_password(self) -> None:
        """URLs are shown without passwords."""
        self.assertEqual(without_password("https://user:s3cret@h:1/x"), "https://h:1/x")


class Fake(BaseHTTPRequestHandler):
    """A member that answers from a table."""

    answers: ClassVar[dict[str, object]] = {}

    def do_GET(self) -> None:
        """Answer."""
        content = json.dumps(self.answers[self.path]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        """Answer, after the body."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class ReadTests(SynchronousTestCase):
    """L{read_members}."""

    def test_read(self) -> None:
        """The facts are read from the paths of etcd; the last member refuses connections."""
        Fake.answers = {
            "/version": {"etcdserver": "3.5.9"},
            "/health": {"health": "false", "reason": "NOSPACE"},
            "/v3/maintenance/status": STATUS,
        }
        server = HTTPServer(("127.0.0.1", 0), Fake)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            member, closed = read_members(parsed(f"--etcd-servers={url},http://127.0.0.1:1"))
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
        self.assertLess(abs(member.skew or 0.0), 60)
        expected = MemberFacts(url, version="3.5.9", healthy=False, reason="NOSPACE", status=STATUS, skew=member.skew)
        self.assertEqual(member, expected)
        self.assertIn("refused", closed.problem)

    def test_certificates(self) -> None:
        """A missing authority is a problem of the member."""
        (member,) = read_members(parsed("--etcd-servers=https://127.0.0.1:1", "--etcd-cafile=/nonexistent"))
        self.assertIn("certificates of etcd cannot be used", member.problem)
