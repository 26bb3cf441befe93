"""Tests of L{kubetwist.filters.audit}, with audited requests and all other filters."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import Decision, Verdict
from kubetwist.api.errors import APIStatusError
from kubetwist.api.latency import ETCD, LatencyTracker, latencies
from kubetwist.api.resource import UserInfo
from kubetwist.audit.auditedrequest import DISCONNECTED_WRITE_TIMEOUT, audited_request
from kubetwist.audit.auditor import Auditor
from kubetwist.audit.errors import Counts
from kubetwist.audit.policy import read_policy
from kubetwist.filters.handlerchain import build_handler_chain
from kubetwist.http.request import KubeRequest
from kubetwist.http.responses import respond_error
from kubetwist.http.site import KubeSite, traverse

from ..audit.events import RecordingBackend
from ..http.harness import Allow, Client, Everyone, Leaf, echo, make_site

PODS = "/api/v1/namespaces/ns/pods"
POD = f"{PODS}/web"


class FixedResult:
    """A fake authorizer and authenticator with a fixed result."""

    name = "FixedResult"

    def __init__(self, result: Any) -> None:
        self.result = result

    def authorize(self, attributes: Any) -> Any:
        """Return the result."""
        return self.result

    authenticate = authorize


class AuditCase(SynchronousTestCase):
    """Base of tests with a site whose audit events are collected."""

    def site(
        self,
        handle: Callable[[KubeRequest], Any] = echo,
        level: str = "Metadata",
        *,
        blocking: bool = False,
        strict: bool = False,
        authenticator: Any = None,
        authorizer: Any = None,
        **rule: Any,
    ) -> KubeSite:
        """Return a site whose audit policy has one rule."""
        content = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": level, **rule}]}
        self.clock = Clock()
        self.backend = RecordingBackend(blocking)
        self.counts = Counts()
        auditor = Auditor(read_policy(json.dumps(content).encode()), [self.backend], strict, self.counts)
        handler = build_handler_chain(
            traverse(Leaf(handle)),
            reactor=self.clock,
            authenticator=authenticator or Everyone(),
            authorizer=authorizer or Allow(),
            auditor=auditor,
        )
        site = make_site(handler, self.clock)
        site.requestFactory = audited_request(auditor)  # type: ignore[assignment]
        return site

    def events(self) -> list[Any]:
        """Return the collected events, decoded."""
        return [json.loads(event.json()) for event in self.backend.events]

    def stages(self) -> list[str]:
        """Return the stages of the collected events."""
        return [event["stage"] for event in self.events()]


class StageTests(AuditCase):
    """Stages of audit events."""

    def test_short(self) -> None:
        """A short request has one event when it is received and one when it is complete."""
        answer = Client(self.site()).request("GET", POD, User_Agent="me", X_Forwarded_For="9.9.9.9")
        self.assertEqual(answer.code, 200)
        received, complete = self.events()
        self.assertEqual(self.stages(), ["RequestReceived", "ResponseComplete"])
        self.assertEqual(received["stageTimestamp"], received["requestReceivedTimestamp"])
        self.assertEqual(received["auditID"], answer.header("audit-id"))
        self.assertEqual((received["verb"], received["requestURI"], received["userAgent"]), ("get", POD, "me"))
        self.assertEqual(received["user"], {"username": "admin", "groups": ["system:authenticated"]})
        self.assertEqual(received["sourceIPs"][0], "9.9.9.9")
        self.assertEqual(
            received["objectRef"], {"resource": "pods", "namespace": "ns", "name": "web", "apiVersion": "v1"}
        )
        self.assertNotIn("responseStatus", received)
        self.assertEqual(complete["responseStatus"], {"metadata": {}, "code": 200})
        self.assertEqual(
            complete["annotations"], {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}
        )

    def test_not_audited(self) -> None:
        """A request with level None has no audit context and no events."""
        seen: list[Any] = []

        def handle(request: KubeRequest) -> None:
            seen.append(request.audit)
            echo(request)

        client = Client(self.site(handle, level="None"))
        self.assertEqual(client.request("GET", POD).code, 200)
        self.assertEqual((seen, self.backend.events), ([None], []))

    def test_long_running(self) -> None:
        """A watch has another event when its response starts, and is complete when its connection ends."""
        writes: list[Callable[[KubeRequest], Any]] = [
            lambda request: request.write(b"event\n"),
            lambda request: request.write_parts([b"event", memoryview(b"\n")], 6),
        ]
        for write in writes:
            client = Client(self.site(write))
            client.send(b"GET %b?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n" % PODS.encode())
            self.assertEqual(self.stages(), ["RequestReceived", "ResponseStarted"])
            self.assertEqual(self.events()[1]["responseStatus"], {"metadata": {}, "code": 200})
            self.assertIn(b"event\n", client.transport.value())
            client.channel.connectionLost(Failure(ConnectionDone()))
            self.assertEqual(self.stages()[2:], ["ResponseComplete"])

    def test_long_watch(self) -> None:
        """A watch has no latency annotations."""

        def handle(request: Any) -> None:
            request.audit.metadata.received -= 1.5
            echo(request)

        Client(self.site(handle)).request("GET", f"{PODS}?watch=1")
        annotations = self.events()[-1]["annotations"]
        self.assertEqual([key for key in annotations if "latency" in key], [])

    def test_switched(self) -> None:
        """A switched connection has an event with code 101, and another one when it ends."""
        other = Protocol()
        client = Client(self.site(lambda request: request.switch_protocols([(b"Upgrade", b"SPDY/3.1")], other)))
        client.send(b"POST %b/exec HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n" % POD.encode())
        self.assertIn(b"HTTP/1.1 101 ", client.transport.value())
        self.assertEqual(self.stages(), ["RequestReceived", "ResponseStarted"])
        self.assertEqual(self.events()[1]["responseStatus"], {"metadata": {}, "code": 101})
        client.send(b"anything")
        client.channel.connectionLost(Failure(ConnectionDone()))
        self.assertEqual(self.stages()[2:], ["ResponseComplete"])
        self.assertEqual(self.events()[2]["responseStatus"], {"metadata": {}, "code": 101})

    def test_streamed_body(self) -> None:
        """A streamed request body is not recorded at any level."""
        site = self.site(lambda request: request.respond(200, b"{}", b"application/json"), "RequestResponse")
        site.streams.append(lambda request: True)
        client = Client(site)
        client.send(b"PUT %b/proxy/x HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nsecret" % POD.encode())
        self.assertEqual(self.stages()[-1], "ResponseComplete")
        self.assertNotIn("secret", json.dumps(self.events()))

    def test_streamed(self) -> None:
        """A response in pieces is complete after the last piece."""

        def handle(request: KubeRequest) -> None:
            request.write(b"a")
            self.assertEqual(self.stages(), ["RequestReceived"])
            request.finish()

        self.assertEqual(Client(self.site(handle)).request("GET", POD).body, b"a")
        self.assertEqual(self.stages(), ["RequestReceived", "ResponseComplete"])

    def test_omitted(self) -> None:
        """Stages that the policy omits have no events."""
        Client(self.site(omitStages=["RequestReceived"])).request("GET", POD)
        self.assertEqual(self.stages(), ["ResponseComplete"])

    def test_panic(self) -> None:
        """An uncaught exception is recorded as stage Panic, which is the last event."""

        def handle(request: KubeRequest) -> None:
            raise ZeroDivisionError("oops")

        self.assertEqual(Client(self.site(handle)).request("GET", POD).code, 500)
        self.assertEqual(self.stages(), ["RequestReceived", "Panic"])
        status = self.events()[1]["responseStatus"]
        self.assertEqual((status["code"], status["message"]), (500, "APIServer panic'd: oops"))
        self.flushLoggedErrors(ZeroDivisionError)

    def test_disconnected(self) -> None:
        """A read ends when its client disconnects; a write is recorded with its result if it completes in time."""
        for method, answered, message in (
            (b"GET", False, "Connection closed early"),
            (b"DELETE", True, None),
            (b"DELETE", False, "Connection closed early"),
        ):
            open: list[KubeRequest] = []
            client = Client(self.site(open.append))
            client.send(b"%b %b HTTP/1.1\r\nHost: x\r\n\r\n" % (method, POD.encode()))
            client.channel.connectionLost(Failure(ConnectionDone()))
            if method == b"DELETE":
                self.assertEqual(self.stages(), ["RequestReceived"])
            if answered:
                open[0].respond(202, b"", b"text/plain")
            self.clock.advance(DISCONNECTED_WRITE_TIMEOUT)
            self.assertEqual(self.stages(), ["RequestReceived", "ResponseComplete"])
            status = self.events()[1]["responseStatus"]
            self.assertEqual((status["code"], status.get("message")), (202 if answered else 200, message))


class UserTests(AuditCase):
    """Users and authorization decisions in audit events."""

    def test_unauthenticated(self) -> None:
        """A request that fails authentication has one event without a user."""
        site = self.site(level="RequestResponse", authenticator=FixedResult(None))
        self.assertEqual(Client(site).request("GET", POD, Authorization="Bearer s3cret").code, 401)
        (event,) = self.events()
        self.assertEqual((event["stage"], event["user"]), ("ResponseStarted", {}))
        self.assertEqual(event["responseStatus"]["message"], "Unauthorized")
        self.assertEqual(event["responseObject"]["code"], 401)
        self.assertNotIn(b"s3cret", self.backend.events[0].json())

    def test_bad_timeout(self) -> None:
        """A request with an invalid timeout has one event."""
        self.assertEqual(Client(self.site()).request("GET", f"{POD}?timeout=x").code, 400)
        (event,) = self.events()
        self.assertEqual((event["stage"], event["responseStatus"]["code"]), ("ResponseStarted", 400))

    def test_forbidden(self) -> None:
        """A denied request is annotated with the decision and the authorizer's reason."""
        site = self.site(authorizer=FixedResult(Verdict(Decision.NO_OPINION, "no rule")))
        self.assertEqual(Client(site).request("GET", POD).code, 403)
        event = self.events()[1]
        self.assertEqual(
            event["annotations"], {"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": "no rule"}
        )
        self.assertEqual((event["responseStatus"]["reason"], event["responseStatus"]["code"]), ("Forbidden", 403))

    def test_failed(self) -> None:
        """An error of an authorizer is not recorded as a decision."""
        site = self.site(authorizer=FixedResult(Verdict(Decision.NO_OPINION, "", "broken")))
        self.assertEqual(Client(site).request("GET", POD).code, 500)
        self.assertEqual(self.events()[1]["annotations"], {"authorization.k8s.io/reason": "internal error"})

    def test_impersonation(self) -> None:
        """An impersonated request is recorded with both users."""
        Client(self.site()).request("GET", POD, Impersonate_User="bob")
        received, complete = self.events()
        self.assertNotIn("impersonatedUser", received)
        self.assertEqual((received["user"]["username"], complete["user"]["username"]), ("admin", "admin"))
        self.assertEqual(complete["impersonatedUser"], {"username": "bob", "groups": ["system:authenticated"]})

    def test_token(self) -> None:
        """Bearer tokens are not recorded."""
        Client(self.site(level="RequestResponse")).request(
            "GET", f"{POD}?access_token=s3cret", Authorization="Bearer s3cret"
        )
        self.assertFalse([event for event in self.backend.events if b"s3cret" in event.json()])


class Annotates:
    """An authenticator that adds an annotation and returns a fixed user."""

    def __init__(self, user: UserInfo | None) -> None:
        self.user = user

    def authenticate(self, request: Any) -> Any:
        """Add the annotation and return the user."""
        request.annotate("authentication.k8s.io/stale-token", "very", "Metadata")
        return self.user


class EarlyTests(AuditCase):
    """Annotations before authentication is complete."""

    def test_early(self) -> None:
        """An annotation of an authenticator is part of all events of the request, also if it is refused."""
        for user, count in ((UserInfo("jane"), 2), (None, 1)):
            Client(self.site(authenticator=Annotates(user))).request("GET", POD)
            events = self.events()
            self.assertEqual(len(events), count)
            for event in events:
                self.assertEqual(event["annotations"]["authentication.k8s.io/stale-token"], "very")

    def test_in_front(self) -> None:
        """A request that is refused before the filters has no event."""
        site = self.site()
        site.handler = lambda request: request.fail(APIStatusError.unauthorized())
        self.assertEqual(Client(site).request("POST", "/ui/session").code, 401)
        self.assertEqual(self.events(), [])


class ContentTests(AuditCase):
    """Request and response objects in audit events."""

    def test_levels(self) -> None:
        """Request objects are recorded from level Request on, response objects at RequestResponse."""

        def handle(request: KubeRequest) -> None:
            assert request.audit is not None
            request.audit.log_request_object(
                {"name": "web", "uid": "7", "resourceVersion": "3"}, lambda: b'{"kind":"Pod"}'
            )
            request.respond(201, b'{"kind":"Pod","status":{}}', b"application/json")

        for level, names in (
            ("Metadata", set()),
            ("Request", {"requestObject"}),
            ("RequestResponse", {"requestObject", "responseObject"}),
        ):
            Client(self.site(handle, level)).request("POST", PODS)
            event = self.events()[1]
            self.assertEqual({"requestObject", "responseObject"} & set(event), names)
            reference = event["objectRef"]
            self.assertEqual([reference[name] for name in ("name", "uid", "resourceVersion")], ["web", "7", "3"])

    def test_errors(self) -> None:
        """The Status of an error is recorded without its metadata."""

        def handle(request: KubeRequest) -> None:
            request.fail(APIStatusError.bad_request("no"))

        Client(self.site(handle)).request("GET", POD)
        self.assertEqual(
            self.events()[1]["responseStatus"],
            {"metadata": {}, "status": "Failure", "message": "no", "reason": "BadRequest", "code": 400},
        )

    def test_errors_of_discovery(self) -> None:
        """An error of discovery is recorded like any other error."""

        def handle(request: Any) -> None:
            respond_error(request, APIStatusError.path_not_found(), protobuf=True)

        Client(self.site(handle, "RequestResponse")).request("GET", POD)
        event = self.events()[1]
        self.assertEqual((event["responseStatus"]["reason"], event["responseObject"]["kind"]), ("NotFound", "Status"))

    def test_empty_details(self) -> None:
        """Empty details of a Status are recorded as an empty object."""
        Client(self.site(lambda request: request.fail(APIStatusError.path_not_found()))).request("GET", POD)
        self.assertEqual(self.events()[1]["responseStatus"]["details"], {})

    def test_annotations(self) -> None:
        """An annotation is recorded from its level on; the first value of a key is kept."""

        def handle(request: KubeRequest) -> None:
            request.annotate("x.io/a", "1", "Metadata")
            request.annotate("x.io/a", "2", "Metadata")
            request.annotate("x.io/b", "1", "Request")
            echo(request)

        Client(self.site(handle)).request("GET", POD)
        annotations = self.events()[1]["annotations"]
        self.assertEqual((annotations["x.io/a"], annotations.get("x.io/b")), ("1", None))

    def test_slow(self) -> None:
        """A slow request has annotations with its latency in total and by component."""
        waiting: Deferred[None] = Deferred()

        async def work(request: Any) -> None:
            request.audit.metadata.received -= 1.5
            with LatencyTracker(ETCD):
                await waiting
            echo(request)

        def handle(request: Any) -> None:
            Deferred.fromCoroutine(work(request)).addErrback(request.handle_failure)

        client = Client(self.site(handle))
        client.send(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % POD.encode())
        self.assertIsNone(latencies.get())
        waiting.callback(None)
        self.assertEqual([answer.code for answer in client.answers()], [200])
        annotations = self.events()[1]["annotations"]
        self.assertIn("apiserver.latency.k8s.io/etcd", annotations)
        self.assertTrue(annotations["apiserver.latency.k8s.io/total"].startswith("1.5"))
        self.assertIn("apiserver.latency.k8s.io/authentication", annotations)


class WaitingTests(AuditCase):
    """Responses that wait for a blocking audit backend."""

    def test_response_waits(self) -> None:
        """A response is delayed until its event is written, and cannot be replaced before."""
        client = Client(self.site(blocking=True))
        client.send(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % POD.encode())
        self.assertEqual((self.stages(), client.answers()), (["RequestReceived", "ResponseComplete"], []))
        self.clock.advance(100)
        self.assertEqual(client.answers(), [])
        self.backend.answer()
        self.assertEqual([answer.code for answer in client.answers()], [200])

    def test_end_waits(self) -> None:
        """The end of a response in pieces is delayed, too."""

        def handle(request: KubeRequest) -> None:
            request.write(b"a")
            request.finish()

        client = Client(self.site(handle, blocking=True))
        client.send(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % POD.encode())
        self.assertNotIn(b"0\r\n\r\n", client.transport.value())
        self.backend.answer()
        self.assertEqual([answer.body for answer in client.answers()], [b"a"])

    def test_strict(self) -> None:
        """In strict mode a request starts after its first event is written."""
        started: list[KubeRequest] = []
        client = Client(self.site(started.append, blocking=True, strict=True))
        client.send(b"DELETE %b HTTP/1.1\r\nHost: x\r\n\r\n" % POD.encode())
        self.assertEqual(started, [])
        self.backend.answer()
        self.assertEqual(len(started), 1)

    def test_strict_failure(self) -> None:
        """In strict mode a request fails if its first event cannot be written."""
        started: list[KubeRequest] = []
        client = Client(self.site(started.append, blocking=True, strict=True))
        client.send(b"DELETE %b HTTP/1.1\r\nHost: x\r\n\r\n" % POD.encode())
        self.backend.answer(False)
        (answer,) = client.answers()
        self.assertEqual((answer.code, started, self.counts.rejected), (500, [], 1))
        self.assertEqual(answer.body.decode(), f'Internal Server Error: "{POD}": failed to store audit event\n')
        self.assertEqual(self.stages(), ["RequestReceived"])

    def test_several(self) -> None:
        """An event is awaited from all blocking backends."""
        one, other, third = RecordingBackend(True), RecordingBackend(True), RecordingBackend()
        auditor = Auditor(
            read_policy(b"{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}"),
            [one, other, third],
            False,
            Counts(),
        )
        waiting = auditor.emit(object())  # type: ignore[arg-type]
        assert isinstance(waiting, Deferred)
        one.answer()
        self.assertNoResult(waiting)
        other.answer(False)
        self.assertEqual((self.successResultOf(waiting), len(third.events)), (False, 1))

    def test_unknown_user(self) -> None:
        """A user without a name is recorded as an empty user."""
        Client(self.site(authenticator=FixedResult(UserInfo("")))).request("GET", POD)
        self.assertEqual(self.events()[0]["user"], {})
