"""Tests for L{kubetwist.testing._processactivity}, with a log that is written here."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing import Connection
from kubetwist.testing._objectwatch import USER_AGENT
from kubetwist.testing._processactivity import MAX_REQUESTS, AuditLog, configures_audit

EVENT: dict[str, Any] = {
    "kind": "Event",
    "verb": "create",
    "requestURI": "/api/v1/namespaces/a/pods?x=1",
    "user": {"username": "alice"},
    "objectRef": {"resource": "pods", "namespace": "a"},
    "responseStatus": {"code": 201},
    "requestReceivedTimestamp": "2027-01-15T08:00:00.250000Z",
    "stageTimestamp": "2027-01-15T08:00:00.500000Z",
}
#: The time of the event, in POSIX seconds.
AT = 1_800_000_000.5


class AuditLogTests(SynchronousTestCase):
    """L{AuditLog} of a server that has stopped."""

    def setUp(self) -> None:
        """Create a log."""
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.log = AuditLog(self.folder)
        # Nothing listens there.
        self.connection = Connection("https://127.0.0.1:1", self.folder, "t", "", "", "")
        self.patch(self.log, "_flush", lambda connection: None)

    def write(self, *events: dict[str, Any], end: bytes = b"") -> None:
        """Write events."""
        lines = b"".join(json.dumps(one).encode() + b"\n" for one in events)
        (self.folder / "audit.log").write_bytes(b'cut off"}\n' + lines + end)

    def since(self, seconds: float) -> Any:
        """Return the activity since a POSIX time."""
        return self.log.since(time.perf_counter() + seconds - time.time(), self.connection)

    def test_requests(self) -> None:
        """Requests have the fields of their events; requests of reports, earlier ones and broken lines are left out."""
        watch = EVENT | {"verb": "watch", "responseStatus": None, "impersonatedUser": {"username": "bob"}}
        self.write(EVENT, EVENT | {"userAgent": USER_AGENT}, {"kind": "Event"}, watch, end=b'{"kind": "Ev')
        activity = self.since(AT - 10)
        first, second = activity.requests
        self.assertEqual(
            (first.user, first.verb, first.code, first.path), ("alice", "create", 201, EVENT["requestURI"])
        )
        self.assertEqual((first.time, round(first.duration, 6)), (AT, 0.25))
        self.assertEqual((second.user, second.verb, second.code), ("bob (by alice)", "watch", 0))
        self.assertEqual((activity.namespaces, activity.lines), (("a",), ()))
        self.assertEqual(self.since(AT + 10).requests, ())

    def test_limits(self) -> None:
        """The last requests are kept, and a missing file has none."""
        self.assertEqual(self.since(AT - 10).requests, ())
        self.write(*(EVENT | {"requestURI": f"/{number}"} for number in range(MAX_REQUESTS + 5)))
        found = self.since(AT - 10).requests
        self.assertEqual((len(found), found[-1].path), (MAX_REQUESTS, f"/{MAX_REQUESTS + 4}"))

    def test_flags(self) -> None:
        """The flags name existing files, and give way to the flags of the test."""
        policy = next(one for one in self.log.flags if one.startswith("--audit-policy-file="))
        self.assertTrue(Path(policy.partition("=")[2]).exists())
        self.assertTrue(configures_audit(["--audit-log-path=-"]))
        self.assertFalse(configures_audit(["--v=3"]))
