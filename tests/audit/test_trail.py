"""Tests for L{kubetwist.audit.trail}."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from attrs import evolve

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import Decision, Verdict
from kubetwist.audit import trail as module
from kubetwist.audit.trail import LATENCY_ANNOTATION_THRESHOLD, AuditContext
from kubetwist.http.requestinfo import request_info_of

from .events import ABOUT, RecordingBackend

LEVELS = {"Metadata": 1, "Request": 2, "RequestResponse": 3}


class TrailTests(SynchronousTestCase):
    """Tests for L{AuditContext}."""

    def setUp(self) -> None:
        """Stop the clock at the time of the request."""
        self.now = ABOUT.received
        self.patch(module, "time", lambda: self.now)
        self.recorded = RecordingBackend()

    def trail(
        self, level: str = "Metadata", path: bytes = b"/api/v1/namespaces/n/pods", omit_stages: Any = ()
    ) -> AuditContext:
        """Return the context of a GET."""
        ruling: Any = SimpleNamespace(level=LEVELS[level], omit_stages=omit_stages, omit_managed_fields=False)
        about = evolve(ABOUT, level=ruling.level)
        return AuditContext(about, request_info_of(b"GET", path), ruling, self.recorded.process)

    def events(self) -> list[dict[str, Any]]:
        """Return the emitted events as objects."""
        return [json.loads(event.json()) for event in self.recorded.events]

    def test_stages(self) -> None:
        """A request has one event when it is received and one when it is complete."""
        trail = self.trail()
        trail.request_received()
        trail.response_started(200)
        trail.response_complete()
        trail.response_complete()
        trail.panic("late")
        self.assertEqual([one["stage"] for one in self.events()], ["RequestReceived", "ResponseComplete"])
        self.assertEqual(self.events()[1]["responseStatus"]["code"], 200)

    def test_long_running(self) -> None:
        """A watch has an additional event when its response starts."""
        trail = self.trail(path=b"/api/v1/pods?watch=true")
        trail.response_started(200)
        trail.response_started(500)
        self.assertEqual([one["stage"] for one in self.events()], ["ResponseStarted"])

    def test_omitted(self) -> None:
        """Omitted stages have no event."""
        trail = self.trail(omit_stages=("RequestReceived",))
        trail.request_received()
        trail.response_started(200)
        trail.response_complete()
        self.assertEqual([one["stage"] for one in self.events()], ["ResponseComplete"])

    def test_closed_early(self) -> None:
        """If the client disconnects before the response, the status is "Connection closed early"."""
        trail = self.trail()
        trail.response_complete()
        status = self.events()[0]["responseStatus"]
        self.assertEqual((status["message"], status["code"]), ("Connection closed early", 200))

    def test_panic(self) -> None:
        """An unexpected exception emits the stage Panic and completes the context."""
        trail = self.trail()
        trail.panic("oops")
        trail.response_complete()
        [one] = self.events()
        self.assertEqual((one["stage"], one["responseStatus"]["message"]), ("Panic", "APIServer panic'd: oops"))

    def test_annotations(self) -> None:
        """The first value of an annotation is kept; annotations of higher levels are dropped."""
        trail = self.trail()
        trail.annotate("a", "1")
        trail.annotate("a", "2")
        trail.annotate("b", "1", "Request")
        trail.response_started(200)
        trail.response_complete()
        self.assertEqual(self.events()[0]["annotations"], {"a": "1"})

    def test_decisions(self) -> None:
        """The verdict is annotated; an authorization error has a reason, but no decision."""
        for verdict, method, expected in (
            (Verdict(Decision.ALLOW, "why"), AuditContext.allowed_by, {"decision": "allow", "reason": "why"}),
            (Verdict(Decision.DENY, "no"), AuditContext.refused_by, {"decision": "forbid", "reason": "no"}),
            (Verdict(Decision.NO_OPINION, error="x"), AuditContext.refused_by, {"reason": "internal error"}),
        ):
            self.recorded.events.clear()
            trail = self.trail()
            method(trail, verdict)
            trail.response_started(200)
            trail.response_complete()
            wanted = {f"authorization.k8s.io/{name}": text for name, text in expected.items()}
            self.assertEqual(self.events()[0]["annotations"], wanted)

    def test_objects(self) -> None:
        """Objects are recorded from their level on, and only then encoded."""
        for level, reported in (("Metadata", []), ("Request", ["r"]), ("RequestResponse", ["r", "a"])):
            self.recorded.events.clear()
            trail = self.trail(level)
            encoded: list[str] = []

            def encode(encoded: list[str] = encoded) -> bytes:
                encoded.append("r")
                return b'{"metadata":{"name":"p"}}'

            trail.log_request_object({"name": "p", "uid": "u"}, encode)
            trail.log_response_object(b'{"kind":"Pod"}')
            trail.response_started(201)
            trail.response_complete()
            [one] = self.events()
            self.assertEqual(one["objectRef"]["uid"], "u")
            self.assertEqual("requestObject" in one, "r" in reported, level)
            self.assertEqual("responseObject" in one, "a" in reported, level)
            self.assertEqual(encoded, reported[:1])

    def test_slow(self) -> None:
        """Slow requests have latency annotations, watches do not."""
        for path, reported in ((b"/api/v1/pods", True), (b"/api/v1/pods?watch=true", False)):
            self.now = ABOUT.received
            self.recorded.events.clear()
            trail = self.trail(path=path)
            trail.times["etcd"] = 0.25
            trail.response_started(200)
            self.now += LATENCY_ANNOTATION_THRESHOLD * 2
            trail.response_complete()
            annotations = self.events()[-1].get("annotations", {})
            self.assertEqual(annotations.get("apiserver.latency.k8s.io/etcd"), "250ms" if reported else None)
            self.assertEqual(annotations.get("apiserver.latency.k8s.io/total"), "1s" if reported else None)
