"""Tests of L{kubetwist.filters.tracing}."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.filters.handlerchain import build_handler_chain
from kubetwist.filters.tracing import RequestTracing
from kubetwist.http.request import KubeRequest
from kubetwist.http.site import KubeSite, traverse
from kubetwist.tracing.spans import SERVER, Span, Tracer, current, current_span

from ..http.harness import Allow, Answer, Client, Everyone, Leaf, echo, make_site

PODS = "/api/v1/namespaces/ns/pods"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
UNSAMPLED = f"00-{TRACE}-00f067aa0ba902b7-00"


class Later:
    """An authenticator and authorizer whose result is set by the test."""

    name = "Later"

    def __init__(self) -> None:
        self.asked: Deferred[Any] = Deferred()
        self.place: Any = None

    def authenticate(self, request: Any) -> Any:
        """Wait for the result."""
        self.place = current.get()
        return self.asked

    authorize = authenticate


class TracingCase(SynchronousTestCase):
    """Base of tests with all filters, traced."""

    def setUp(self) -> None:
        """Create a list of ended spans."""
        self.spans: list[Span] = []
        self.seconds = 100.0

    def client(
        self,
        handle: Callable[[KubeRequest], Any] = echo,
        *,
        rate: int = 1_000_000,
        groups: tuple[str, ...] = ("system:authenticated",),
        authenticator: Any = None,
        authorizer: Any = None,
        limit: Any = None,
    ) -> Client:
        """Return a connection to a traced site."""
        return Client(self.site(handle, rate, groups, authenticator, authorizer, limit))

    def site(
        self, handle: Any, rate: int, groups: tuple[str, ...], authenticator: Any, authorizer: Any, limit: Any
    ) -> KubeSite:
        """Return a traced site; each reading of the clock advances it by a second."""
        clock = Clock()
        tracing = RequestTracing(Tracer(rate, self.spans.append), self.now)
        handler = build_handler_chain(
            traverse(Leaf(handle)),
            reactor=clock,
            authenticator=authenticator or Everyone(UserInfo("ann", groups=groups)),
            authorizer=authorizer or Allow(),
            limit=limit,
            tracing=tracing,
        )
        site = make_site(handler, clock)
        site.ended = tracing.chain_on_end(lambda request: None)
        return site

    def now(self) -> float:
        """Advance the clock by a second, and return it."""
        self.seconds += 1
        return self.seconds

    @property
    def root(self) -> Span:
        """Return the root span of the only request."""
        (span,) = [span for span in self.spans if span.kind == SERVER]
        return span

    @property
    def names(self) -> list[str]:
        """Return the names of the spans in the order of their end."""
        return [span.name for span in self.spans]


class RequestSpanTests(TracingCase):
    """Root spans of requests."""

    def test_attributes(self) -> None:
        """The root span has the reference's attributes; its name is the path with placeholders."""
        client = self.client()
        client.request(
            "GET",
            f"{PODS}/web-0?pretty=1&access_token=abc",
            Host="api.example.org:6443",
            User_Agent="kubectl/v1.36",
            Audit_ID="an-id",
            X_Forwarded_For="192.0.2.7, 192.0.2.8",
        )
        span = self.root
        self.assertEqual(span.name, "GET /api/v1/namespaces/{:namespace}/pods/{:name}")
        peer = {name: span.attributes.pop(name) for name in ("network.peer.address", "network.peer.port")}
        self.assertEqual(peer, {"network.peer.address": "192.168.1.1", "network.peer.port": 54321})
        self.assertEqual(
            span.attributes,
            {
                "audit-id": "an-id",
                "client.address": "192.0.2.7",
                "http.request.method": "GET",
                "http.response.body.size": len(f"GET {PODS}/web-0 "),
                "http.response.status_code": 200,
                "http.target": f"{PODS}/web-0?pretty=1&access_token=REDACTED",
                "network.protocol.version": "1.1",
                "server.address": "api.example.org",
                "server.port": 6443,
                "url.path": f"{PODS}/web-0",
                "url.scheme": "https",
                "user_agent.original": "kubectl/v1.36",
            },
        )
        self.assertFalse(span.failed)

    def test_names(self) -> None:
        """The name of a span is the method and the resource path, or the method alone."""
        client = self.client()
        for method, path, name in (
            ("GET", "/healthz", "GET"),
            ("FETCH", "/healthz", "FETCH"),
            ("GET", "/api/v1/nodes", "GET /api/v1/nodes"),
            ("PUT", "/apis/apps/v1/namespaces/a/deployments/b/scale", "PUT /apis/apps/v1/namespaces/{:namespace}/"),
        ):
            del self.spans[:]
            client.request(method, path)
            self.assertTrue(self.root.name.startswith(name), self.root.name)
        self.assertEqual(self.root.name, "PUT /apis/apps/v1/namespaces/{:namespace}/deployments/{:name}/scale")

    def test_unknown_method(self) -> None:
        """An unknown method is recorded as the original method, beside GET."""
        self.client().request("FETCH", "/healthz")
        attributes = self.root.attributes
        self.assertEqual(attributes["http.request.method"], "GET")
        self.assertEqual(attributes["http.request.method_original"], "FETCH")

    def test_sizes(self) -> None:
        """Attributes are truncated, and do not contain bodies."""
        long = "x" * 8000
        self.client().request("POST", f"/api/v1/{long}", b"secret", User_Agent=long, Audit_ID=long, Host=long)
        span = self.root
        self.assertLess(len(span.name), 1000)
        for name, value in span.attributes.items():
            self.assertLess(len(str(value)), 1100, name)
            self.assertNotIn("secret", str(value))
        self.assertEqual(span.attributes["http.request.body.size"], 6)

    def test_server_error(self) -> None:
        """A server error fails the span; a client error does not."""
        for code, failed in ((404, False), (500, True)):
            del self.spans[:]
            self.client(partial(KubeRequest.respond_text, code=code, text="no")).request("GET", PODS)
            self.assertEqual(self.root.attributes["http.response.status_code"], code)
            self.assertEqual(self.root.failed, failed)

    def test_disconnected(self) -> None:
        """A disconnected client fails the span as aborted."""
        client = self.client(lambda request: None)
        client.send(f"GET {PODS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.assertEqual([name for name in self.names if name.startswith("GET")], [])
        client.channel.connectionLost(RuntimeError("gone"))
        self.assertTrue(self.root.failed)
        self.assertEqual(self.root.attributes["error.type"], "aborted")
        self.assertNotIn("http.response.status_code", self.root.attributes)


class FilterSpanTests(TracingCase):
    """Spans of filters."""

    def test_order(self) -> None:
        """Each filter has a span; the spans follow one another within the root span."""
        self.client(limit=lambda handler: handler).request("GET", PODS)
        *filters, root = self.spans
        names = ["authentication", "constrainedimpersonation", "priorityandfairness", "authorization"]
        self.assertEqual([span.name for span in filters], names)
        self.assertEqual({span.parent_id for span in filters}, {root.span_id})
        self.assertEqual(filters[0].began, root.began)
        for one, other in pairwise(filters):
            self.assertEqual(one.ended, other.began)
        self.assertLess(filters[-1].ended, root.ended)

    def test_refused(self) -> None:
        """The last span of a refused request is of the filter that refused it."""

        class Silent(Allow):
            def authorize(self, attributes: Any) -> Any:
                return Verdict(Decision.NO_OPINION)

        authorizer = Silent()
        self.assertEqual(self.client(authorizer=authorizer).request("GET", PODS).code, 403)
        self.assertEqual(self.names[:3], ["authentication", "constrainedimpersonation", "authorization"])
        self.assertEqual(self.root.attributes["http.response.status_code"], 403)

    def test_unauthenticated(self) -> None:
        """A request that fails authentication has no trace."""

        class NoUser:
            def authenticate(self, request: Any) -> None:
                return None

        answer = self.client(authenticator=NoUser()).request("GET", PODS, traceparent=PARENT)
        self.assertEqual((answer.code, self.spans), (401, []))

    def test_asynchronous(self) -> None:
        """The waiting time of an asynchronous filter is part of its span."""
        authenticator, authorizer = Later(), Later()
        client = self.client(authenticator=authenticator, authorizer=authorizer)
        client.send(f"GET {PODS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.assertIsNone(authenticator.place)
        self.assertEqual(self.spans, [])
        authenticator.asked.callback(UserInfo("ann"))
        self.assertEqual(self.names, ["authentication", "constrainedimpersonation"])
        authorizer.asked.callback(Verdict(Decision.ALLOW))
        self.assertEqual(self.names[2], "authorization")
        self.assertIs(authorizer.place, self.root)
        self.assertIsNone(current.get())


class SamplingTests(TracingCase):
    """Sampling decisions."""

    def headers_within(self, *, rate: int, groups: tuple[str, ...], **headers: str) -> dict[bytes, bytes]:
        """Return the trace context that a handler would propagate."""
        headers_sent: list[tuple[bytes, bytes]] = []

        def handle(request: KubeRequest) -> None:
            headers_sent.extend(current_span().propagation_headers())
            echo(request)

        answer: Answer = self.client(handle, rate=rate, groups=groups).request("GET", PODS, **headers)
        self.assertEqual(answer.code, 200)
        self.assertIsNone(current.get())
        return dict(headers_sent)

    def test_trusted(self) -> None:
        """Traces of system:masters and system:monitoring are continued with their sampling decision."""
        for group in ("system:masters", "system:monitoring"):
            del self.spans[:]
            headers_sent = self.headers_within(
                rate=0, groups=("a", group), traceparent=PARENT, tracestate="v=1", baggage="user=ann"
            )
            root = self.root
            self.assertEqual((root.trace.id, root.parent_id), (int(TRACE, 16), 0x00F067AA0BA902B7))
            self.assertTrue(root.remote_parent)
            self.assertIsNone(root.link)
            expected = f"00-{TRACE}-{root.span_id:016x}-01".encode()
            self.assertEqual(headers_sent, {b"traceparent": expected, b"tracestate": b"v=1", b"baggage": b"user=ann"})

    def test_trusted_unsampled(self) -> None:
        """A trusted client may also disable sampling."""
        headers_sent = self.headers_within(rate=1_000_000, groups=("system:masters",), traceparent=UNSAMPLED)
        self.assertEqual(self.spans, [])
        self.assertTrue(headers_sent[b"traceparent"].startswith(f"00-{TRACE}-".encode()))
        self.assertTrue(headers_sent[b"traceparent"].endswith(b"-00"))

    def test_untrusted(self) -> None:
        """Traces of other clients are linked; their sampling decision is ignored."""
        groups = ("system:authenticated",)
        headers_sent = self.headers_within(rate=0, groups=groups, traceparent=PARENT, tracestate="v=1")
        self.assertEqual(self.spans, [])
        self.assertNotIn(TRACE.encode(), headers_sent[b"traceparent"])
        self.assertTrue(headers_sent[b"traceparent"].endswith(b"-00"))
        self.assertNotIn(b"tracestate", headers_sent)
        self.headers_within(rate=1_000_000, groups=groups, traceparent=UNSAMPLED)
        root = self.root
        self.assertNotEqual(root.trace.id, int(TRACE, 16))
        self.assertEqual(root.parent_id, 0)
        assert root.link is not None
        self.assertEqual(root.link.trace_id, int(TRACE, 16))

    def test_impersonated(self) -> None:
        """The group of the authenticated user decides, not of the impersonated one."""
        client = self.client(rate=0, groups=("a",))
        client.request("GET", PODS, traceparent=PARENT, Impersonate_User="b", Impersonate_Group="system:masters")
        self.assertEqual(self.spans, [])

    def test_malformed(self) -> None:
        """A malformed trace context is ignored."""
        self.headers_within(rate=1_000_000, groups=("system:masters",), traceparent=PARENT.upper())
        self.assertEqual((self.root.parent_id, self.root.link), (0, None))

    def test_released_seat(self) -> None:
        """A request that starts when another one releases its seat keeps its own span."""
        waiting: list[Callable[[], None]] = []

        def limit(handler: Any) -> Any:
            def limited(request: KubeRequest) -> None:
                waiting.append(lambda: handler(request))

            return limited

        seen: dict[bytes, Any] = {}

        def handle(request: KubeRequest) -> None:
            seen[request.path] = current_span()
            if request.path == b"/one":
                waiting[1]()
            seen[request.path + b"/after"] = current_span()
            echo(request)

        site = self.site(handle, 1_000_000, ("a",), None, None, limit)
        for path in ("one", "two"):
            Client(site).send(f"GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        waiting[0]()
        self.assertIs(seen[b"/one"], seen[b"/one/after"])
        self.assertIsNot(seen[b"/two"], seen[b"/one"])
        self.assertIsNone(current.get())

    def test_pipelined(self) -> None:
        """A pipelined request is not part of the trace of the previous request."""
        places = []

        class Looks(Everyone):
            def authenticate(self, request: Any) -> Any:
                places.append(current.get())
                return succeed(self.user)

        client = self.client(authenticator=Looks())
        client.send(b"GET /one HTTP/1.1\r\nHost: x\r\n\r\nGET /two HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(len(client.answers()), 2)
        self.assertEqual(places, [None, None])
