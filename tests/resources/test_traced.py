"""Tests for L{kubetwist.resources.traced}, L{kubetwist.admission.traced} and the spans of writes."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.admission.traced import TracedChain
from kubetwist.api.errors import APIStatusError
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from kubetwist.tracing.spans import INTERNAL, Span, Tracer, current

from .server import JSONClient, Server

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@implementer(IMutatingAdmission, IValidatingAdmission)
class Plugin:
    """
    Plugin that admits every request, immediately or later, unless the test rejects it.

    @ivar waits: The Deferred for the next request; L{None} to respond immediately.
    @ivar places: The current spans at its calls.
    """

    name = "Plugin"
    resources = ("configmaps",)

    def __init__(self) -> None:
        self.waits: Deferred[None] | None = None
        self.refuses = False
        self.places: list[Any] = []

    def handles(self, operation: str) -> bool:
        """Return L{True} for every operation."""
        return True

    def admit(self, attributes: Any) -> Any:
        """Admit the request."""
        self.places.append(current.get())

    async def validate(self, attributes: Any) -> None:
        """Admit the request later, or reject it."""
        self.places.append(current.get())
        if self.waits is not None:
            await self.waits
        self.places.append(current.get())
        if self.refuses:
            raise APIStatusError.bad_request("no secret in this")


class TracedCase(SynchronousTestCase):
    """Test case with a traced server of ConfigMaps, whose requests run within a span."""

    def setUp(self) -> None:
        """Start the server with tracing."""
        self.plugin = Plugin()
        self.server = Server(
            "configmaps",
            "namespaces",
            admission=lambda context: TracedChain([self.plugin], context.reactor),
            traced=True,
        )
        self.client = self.server.client()
        self.spans: list[Span] = []

    def traced(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send a request within a trace, as the filters do."""
        request = Tracer(1_000_000, self.spans.append).start_trace(None, False, b"", 1.0)
        assert isinstance(request, Span)
        request.trace.audit_id = "an-id"
        self.request = request
        del self.spans[:]
        current.set(request)
        try:
            return self.client.ask(method, path, body, **headers)
        finally:
            self.assertIs(current.get(), request)
            current.set(None)

    def tree(self, span: Span | None = None) -> list[Any]:
        """Return the names of spans, each followed by its children."""
        parent = self.request if span is None else span
        return [(one.name, *self.tree(one)) for one in self.spans if one.parent_id == parent.span_id]

    def one(self, name: str) -> Span:
        """Return the span with a name."""
        (span,) = [one for one in self.spans if one.name == name]
        self.assertEqual(span.kind, INTERNAL)
        return span


class ReadingTests(TracedCase):
    """GET of objects and collections."""

    def test_get(self) -> None:
        """A GET has a span of its handler, with children of the cache and of the encoder."""
        self.client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"password": "secret"}})
        code, _ = self.traced("GET", f"{CONFIG_MAPS}/a", Accept="application/json", User_Agent="me/1")
        self.assertEqual(code, 200)
        self.assertEqual(self.tree(), [("Get", ("cacher.Get",), ("SerializeObject",))])
        attributes = self.one("Get").attributes
        audit_id = attributes.pop("audit-id")
        self.assertEqual(len(str(audit_id)), 36)
        self.assertEqual(
            attributes,
            {
                "accept": "application/json",
                "api-group": "",
                "api-version": "v1",
                "client": "192.168.1.1",
                "name": "a",
                "namespace": "default",
                "protocol": "HTTP/1.1",
                "resource": "configmaps",
                "scope": "resource",
                "subresource": "",
                "url": f"{CONFIG_MAPS}/a",
                "user-agent": "me/1",
                "verb": "GET",
            },
        )
        self.assertEqual(
            self.one("cacher.Get").attributes,
            {"audit-id": "an-id", "key": "/configmaps/default/a", "resource-version": ""},
        )
        self.assertEqual(
            self.one("SerializeObject").attributes,
            {"audit-id": "an-id", "mediaType": "application/json", "encoder": "JSONEncoder"},
        )

    def test_list(self) -> None:
        """A list has these spans, too."""
        code, _ = self.traced("GET", f"{CONFIG_MAPS}?limit=3")
        self.assertEqual(code, 200)
        self.assertEqual(self.tree(), [("List", ("cacher.GetList",), ("SerializeObject",))])
        self.assertEqual(self.one("cacher.GetList").attributes, {"audit-id": "an-id", "type": "configmaps"})
        self.assertEqual(self.one("List").attributes["scope"], "namespace")

    def test_yaml(self) -> None:
        """Other media types and formats are encoded within a span, too."""
        code = self.client.answer("GET", CONFIG_MAPS, Accept="application/yaml").code
        self.assertEqual(code, 200)
        request = Tracer(1_000_000, self.spans.append).start_trace(None, False, b"", 1.0)
        assert isinstance(request, Span)
        request.trace.audit_id = "an-id"
        self.request = request
        current.set(request)
        answer = self.client.answer("GET", CONFIG_MAPS, Accept="application/yaml;as=Table;v=v1;g=meta.k8s.io")
        current.set(None)
        self.assertIn(b"kind: Table", answer.body)
        self.assertEqual(self.one("SerializeObject").attributes["encoder"], "TableEncoder")

    def test_not_found(self) -> None:
        """A 404 is not an error of the span."""
        code, _ = self.traced("GET", f"{CONFIG_MAPS}/none")
        self.assertEqual(code, 404)
        for name in ("Get", "cacher.Get"):
            span = self.one(name)
            self.assertEqual((span.failed, span.attributes["error.type"]), (False, "NotFound"))

    def test_watch(self) -> None:
        """The start of a watch has a span; its events have none."""
        request = Tracer(1_000_000, self.spans.append).start_trace(None, False, b"", 1.0)
        assert isinstance(request, Span)
        request.trace.audit_id = "an-id"
        self.request = request
        current.set(request)
        self.client.begin(f"{CONFIG_MAPS}?watch=1")
        current.set(None)
        self.server.client().ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        self.server.clock.advance(1)
        self.assertIn(b'"name":"a"', self.client.taken())
        self.assertEqual(self.tree(), [("cacher.Watch",)])

    def test_untraced(self) -> None:
        """A request that is not sampled leaves no spans."""
        current.set(Tracer(0, self.spans.append).start_trace(None, False, b"", 1.0))
        self.addCleanup(current.set, None)
        self.assertEqual(self.client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})[0], 201)
        self.assertEqual(self.client.ask("GET", f"{CONFIG_MAPS}/a")[0], 200)
        self.assertEqual(self.client.ask("GET", CONFIG_MAPS)[0], 200)
        self.assertEqual(self.spans, [])


class WritingTests(TracedCase):
    """Writes, with admission and storage."""

    def test_create(self) -> None:
        """A write has spans of the plugins that handle it, of the store, and of the encoder."""
        code, _ = self.traced("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        self.assertEqual(code, 201)
        self.assertEqual(self.tree(), [("Create", ("Plugin",), ("Plugin",), ("Create etcd3",), ("SerializeObject",))])
        mutating, validating = (span for span in self.spans if span.name == "Plugin")
        self.assertEqual(mutating.attributes, {"phase": "mutation", "operation": "CREATE"})
        self.assertEqual(validating.attributes, {"phase": "validation", "operation": "CREATE"})
        self.assertEqual(self.plugin.places, [mutating, validating, validating])
        self.assertEqual(
            self.one("Create etcd3").attributes,
            {
                "audit-id": "an-id",
                "key": "/configmaps/default/a",
                "type": "ConfigMap",
                "group": "",
                "resource": "configmaps",
            },
        )

    def test_verbs(self) -> None:
        """Each verb and each kind of write has its span name."""
        path = f"{CONFIG_MAPS}/a"
        self.client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        for method, handler, storage, body, headers in (
            ("PUT", "Update", "GuaranteedUpdate etcd3", {"metadata": {"name": "a"}, "data": {"a": "b"}}, {}),
            ("PATCH", "Patch", "GuaranteedUpdate etcd3", {"data": {"a": "c"}}, "application/merge-patch+json"),
            ("DELETE", "Delete", "Delete etcd3", None, {}),
        ):
            more = {"Content_Type": headers} if isinstance(headers, str) else {}
            code, answer = self.traced(method, path, body, **more)
            self.assertEqual(code, 200, answer)
            ((name, *within),) = self.tree()
            self.assertEqual(name, handler)
            self.assertIn((storage,), within)

    def test_later(self) -> None:
        """The span of a plugin that waits lasts as long, and concurrent work does not belong to it."""
        self.plugin.waits = Deferred()
        request = Tracer(1_000_000, self.spans.append).start_trace(None, False, b"", 1.0)
        assert isinstance(request, Span)
        request.trace.audit_id = "an-id"
        self.request = request
        current.set(request)
        self.client.send(
            f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 25\r\n\r\n"
            '{"metadata":{"name":"a"}}'.encode()
        )
        self.assertIs(current.get(), request)
        current.set(None)
        self.assertEqual([span.name for span in self.spans], ["Plugin"])
        other = JSONClient(self.server.site)
        self.assertEqual(other.ask("GET", CONFIG_MAPS)[0], 200)
        self.assertEqual([span.name for span in self.spans], ["Plugin"])
        self.plugin.waits.callback(None)
        self.assertEqual([answer.code for answer in self.client.answers()], [201])
        self.assertEqual(self.tree(), [("Create", ("Plugin",), ("Plugin",), ("Create etcd3",), ("SerializeObject",))])
        self.assertIsNone(current.get())

    def test_refused(self) -> None:
        """The rejection of a plugin is recorded by its reason, without its message."""
        self.plugin.refuses = True
        code, _ = self.traced("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        self.assertEqual(code, 400)
        for span in self.spans:
            self.assertNotIn("secret", str(span.attributes))
        refused = [span for span in self.spans if span.name == "Plugin"][-1]
        self.assertEqual((refused.failed, refused.attributes["error.type"]), (False, "BadRequest"))
