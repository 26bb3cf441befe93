"""Tests for L{kubetwist.audit.auditor}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import ensureDeferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.audit.auditor import Auditor
from kubetwist.audit.errors import Counts
from kubetwist.http.requestinfo import request_info_of

from .events import RecordingBackend, event

JANE = UserInfo("jane")


class Ruled:
    """A policy with fixed settings."""

    def __init__(self, level: int) -> None:
        self.level = level

    def evaluate_policy_rule(self, info: Any, user: UserInfo | None) -> Any:
        """Return the settings."""
        return SimpleNamespace(level=self.level, omit_stages=(), omit_managed_fields=False)


def request(**fields: bytes) -> Any:
    """Return a request with header fields; C{_} in a name stands for a hyphen."""
    return SimpleNamespace(
        info=request_info_of(b"GET", b"/api/v1/namespaces/n/pods/p"),
        fields={name.replace("_", "-").encode(): [value] for name, value in fields.items()},
        audit_id="id",
        uri=b"/api/v1/namespaces/n/pods/p",
        received=1.0,
        connection=SimpleNamespace(remembered={}),
        client=SimpleNamespace(host="10.0.0.9"),
    )


class AuditorTests(SynchronousTestCase):
    """Tests for L{Auditor}."""

    def auditor(self, level: int, *backends: RecordingBackend) -> Auditor:
        """Return an auditor whose policy has one level."""
        policy: Any = Ruled(level)
        return Auditor(policy, backends, False, Counts())

    def test_level_none(self) -> None:
        """A request of level None has no audit context, but is counted."""
        auditor = self.auditor(0)
        self.assertIsNone(auditor.begin_audit(request(), JANE))
        self.assertEqual(auditor.counts.levels, [1, 0, 0, 0])

    def test_metadata(self) -> None:
        """The metadata has the user, the source addresses and the user agent of the request."""
        trail = self.auditor(1).begin_audit(request(user_agent=b"kubectl", x_forwarded_for=b"10.1.1.1"), JANE)
        assert trail is not None
        about = trail.metadata
        self.assertEqual((about.user, about.verb, about.audit_id), (JANE, "get", "id"))
        recorded = RecordingBackend()
        auditor = self.auditor(1, recorded)
        trail = auditor.begin_audit(request(user_agent=b"kubectl", x_forwarded_for=b"10.1.1.1"), JANE)
        assert trail is not None
        trail.request_received()
        self.assertIn(b'"sourceIPs":["10.1.1.1","10.0.0.9"]', recorded.events[0].json())
        self.assertIn(b'"userAgent":"kubectl"', recorded.events[0].json())

    def test_policy_is_replaced(self) -> None:
        """A new policy applies from the next request on."""
        auditor = self.auditor(0)
        policy: Any = Ruled(2)
        auditor.set_policy(policy)
        trail = auditor.begin_audit(request(), JANE)
        assert trail is not None
        self.assertEqual(trail.level, 2)

    def test_all_backends(self) -> None:
        """Every backend gets every event; the result waits for blocking backends, and is false if one of them fails."""
        plain, one, other = RecordingBackend(), RecordingBackend(waits=True), RecordingBackend(waits=True)
        self.assertIsNone(self.auditor(1, plain).emit(event()))
        auditor = self.auditor(1, plain, one, other)
        written = auditor.emit(event())
        assert written is not None
        self.assertEqual([len(backend.events) for backend in (plain, one, other)], [2, 1, 1])
        self.assertNoResult(written)
        one.answer()
        other.answer(False)
        self.assertIs(self.successResultOf(written), False)
        self.assertEqual(auditor.counts.events, 1)

    def test_stop(self) -> None:
        """A backend that fails to stop does not prevent the stop of the following ones."""

        class Broken(RecordingBackend):
            async def stop(self) -> None:
                raise ValueError("broken")

        recorded = RecordingBackend()
        self.successResultOf(ensureDeferred(self.auditor(1, Broken(), recorded).stop()))
        self.assertTrue(recorded.stopped)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
