"""Tests of L{kubetwist.client.tracing}."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.client.errors import CallError
from kubetwist.client.factory import ClientFactory
from kubetwist.client.restconfig import RESTConfig
from kubetwist.client.tracing import span_attributes
from kubetwist.testing.webhooks import HANG_UP, Call, Reply, WebhookServer
from kubetwist.tracing.propagation import RemoteSpanContext
from kubetwist.tracing.spans import CLIENT, NonRecordingSpan, Span, Tracer, current

CALLER = RemoteSpanContext(0xABC, 0xDEF, True, b"a=1")


class CallTests(TestCase):
    """Calls of traced requests."""

    async def called_with(self, place: Span | NonRecordingSpan | None, answer: Any) -> dict[str, str]:
        """Call a server that answers with C{answer}; return the request headers it received."""
        server = WebhookServer(reactor, lambda call: answer)
        await server.start()
        self.addCleanup(server.stop)
        outgoing = ClientFactory(reactor, lambda namespace, name: None)
        outgoing.traced = True
        self.addCleanup(lambda: Deferred.fromCoroutine(outgoing.close()))
        self.url = f"{server.url}/hook"
        client = outgoing.client(RESTConfig(url=self.url, ca=server.ca, token="secret", allow_loopback=True))
        current.set(place)
        try:
            await client.post(b"{}", timeout=10)
        except CallError:
            pass
        finally:
            self.assertIs(current.get(), place)
            current.set(None)
        (call,) = server.calls
        self.assertIsInstance(call, Call)
        return dict(call.headers)

    def traced_request(self) -> Span:
        """Return the span of a traced request."""
        self.spans: list[Span] = []
        request = Tracer(0, self.spans.append).start_trace(CALLER, True, b"who=me", 1.0)
        assert isinstance(request, Span)
        request.name = "request"
        return request

    async def test_recorded(self) -> None:
        """A call has a span and sends the trace context; the span does not contain the user."""
        request = self.traced_request()
        headers = await self.called_with(request, {})
        span = self.spans[0]
        self.assertEqual((span.name, span.kind, span.parent_id), ("HTTP POST", CLIENT, request.span_id))
        self.assertEqual(headers["traceparent"], f"00-{0xABC:032x}-{span.span_id:016x}-01")
        self.assertEqual((headers["tracestate"], headers["baggage"]), ("a=1", "who=me"))
        self.assertEqual(headers["authorization"], "Bearer secret")
        self.assertEqual(span.attributes["url.full"], f"{self.url}?timeout=10s")
        self.assertEqual(span.attributes["http.response.status_code"], 200)
        self.assertNotIn("secret", str(span.attributes))

    async def test_unrecorded(self) -> None:
        """A call for a request that is not sampled has no span and sends an unsampled trace context."""
        place = Tracer(0, lambda span: self.fail("recorded")).start_trace(None, False, b"", 1.0)
        self.assertTrue((await self.called_with(place, {}))["traceparent"].endswith("-00"))

    async def test_without_request(self) -> None:
        """A call outside of a request sends no trace context."""
        self.assertNotIn("traceparent", await self.called_with(None, {}))

    async def test_errors(self) -> None:
        """A failed call marks its span as failed."""
        for answer, kind in ((Reply(503), "503"), (HANG_UP, "CallError")):
            await self.called_with(self.traced_request(), answer)
            self.assertEqual((self.spans[0].failed, self.spans[0].attributes["error.type"]), (True, kind))


class AttributeTests(SynchronousTestCase):
    """Attributes of spans."""

    def test_credentials(self) -> None:
        """User names, passwords and tokens in URLs are redacted."""
        attributes = span_attributes("GET", "https://me:hush@[::1]:8443/a?token=hush&b=c")
        self.assertEqual(
            attributes,
            {
                "http.request.method": "GET",
                "url.full": "https://[::1]:8443/a?token=REDACTED&b=c",
                "server.address": "::1",
                "server.port": 8443,
            },
        )
        self.assertEqual(span_attributes("GET", "http://a/")["server.port"], 80)
