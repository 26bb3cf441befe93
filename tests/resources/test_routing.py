"""Tests for L{kubetwist.resources.routing} and L{kubetwist.resources.install}: the routing of paths and methods."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import orjson

from klein import Klein
from twisted.internet.defer import CancelledError, Deferred, fail, succeed
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.filters.handlerchain import build_handler_chain
from kubetwist.http.request import KubeRequest
from kubetwist.http.site import traverse
from kubetwist.resources import routing
from kubetwist.resources.mux import DelegatingMux, NotFound
from kubetwist.resources.routing import RoutedApp, add_route, new_app
from kubetwist.storage.errors import OutcomeUnknown, StorageUnwritable
from tests.http.harness import Allow, Everyone, make_site
from tests.resources.server import JSONClient, Server, config_map

MAPS = "/api/v1/namespaces/default/configmaps"


class Boom(Exception):
    """An unexpected exception."""


class HandlerTests(SynchronousTestCase):
    """The results of handlers."""

    def client(self, handler: Any, method: str = "GET") -> JSONClient:
        """Connect a client to a server with one route, C{/api/v1/things/<name>}."""

        def make() -> Klein:
            app = new_app()
            add_route(app, method, "/api/v1/things/<name>", handler)
            return app

        mux = DelegatingMux("test", NotFound())
        self.app = RoutedApp(make)
        mux.handle_prefix("/api/v1", self.app)
        site = make_site()
        handle = build_handler_chain(traverse(mux), reactor=site.reactor, authenticator=Everyone(), authorizer=Allow())
        return JSONClient(make_site(handle))

    def test_werkzeug(self) -> None:
        """The rules of an app are rules of werkzeug, which matches paths by them and builds URLs."""
        app = new_app()
        add_route(app, "GET", "/api/v1/things/<name>", lambda request, name: name)
        paths = app.url_map.bind("localhost")
        self.assertEqual(paths.match("/api/v1/things/a"), ("GET /api/v1/things/<name>", {"name": "a"}))
        self.assertEqual(paths.build("GET /api/v1/things/<name>", {"name": "a"}), "/api/v1/things/a")
        add_route(app, "GET", "/api/v1/more", lambda request: None)
        self.assertEqual(app.url_map.bind("localhost").match("/api/v1/more")[0], "GET /api/v1/more")
        self.assertEqual([rule.rule for rule in app.url_map.iter_rules("GET /api/v1/more")], ["/api/v1/more"])

    def test_at_once(self) -> None:
        """A handler may respond immediately."""
        client = self.client(lambda request, name: request.respond(200, name.encode(), b"text/plain"))
        self.assertEqual(client.request("GET", "/api/v1/things/a").body, b"a")

    def test_body(self) -> None:
        """A handler may return the body of its response."""
        answer = self.client(lambda request, name: name.encode()).request("GET", "/api/v1/things/a")
        self.assertEqual((answer.code, answer.body), (200, b"a"))

    def test_refused_method(self) -> None:
        """A method without a route is answered with a Status and the methods that are allowed."""
        for method in ("PUT", "HEAD", "OPTIONS", "X", "get", "HEAD-ALONE"):
            answer = self.client(lambda request, name: b"").answer(method, "/api/v1/things/a")
            self.assertEqual((answer.code, answer.header("allow")), (405, "GET"), method)
        self.assertEqual(self.client(lambda request, name: b"", "HEAD").answer("HEAD", "/api/v1/things/a").code, 200)

    def test_later(self) -> None:
        """A handler may respond later."""
        waiting: Deferred[None] = Deferred()

        async def handler(request: KubeRequest, name: str) -> None:
            await waiting
            request.respond(200, b"done", b"text/plain")

        client = self.client(handler)
        client.send(b"GET /api/v1/things/a HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(client.answers(), [])
        waiting.callback(None)
        self.assertEqual(client.answers()[0].body, b"done")

    def test_write(self) -> None:
        """A handler that writes may wait several times, also for failures and for what has happened before."""
        waiting: list[Deferred[str]] = [Deferred(), Deferred()]
        number: ContextVar[int] = ContextVar("number", default=0)

        async def handler(request: KubeRequest, name: str) -> None:
            number.set(1)
            texts = [await succeed("before"), await waiting[0]]
            for outcome in (fail(Boom("at once")), waiting[1]):
                try:
                    await outcome
                except Boom as error:
                    texts.append(str(error))
            request.respond(200, f"{texts} {number.get()}".encode(), b"text/plain")

        client = self.client(handler, "POST")
        client.send(b"POST /api/v1/things/a HTTP/1.1\r\nHost: x\r\n\r\n")
        number.set(2)
        waiting[0].callback("first")
        self.assertEqual(client.answers(), [])
        waiting[1].errback(Boom("second"))
        self.assertEqual(client.answers()[0].body, b"['before', 'first', 'at once', 'second'] 1")
        self.assertEqual(number.get(), 2)

    def test_failed_write(self) -> None:
        """The error of a handler that writes is answered, whether it fails at once or later."""
        for waits in (False, True):
            for error, code in ((APIStatusError.bad_request("no"), 400), (Boom(), 500), (CancelledError(), 0)):
                waiting: Deferred[None] = Deferred()

                async def handler(
                    request: KubeRequest,
                    name: str,
                    waits: bool = waits,
                    error: Exception = error,
                    waiting: Deferred[None] = waiting,
                ) -> None:
                    if waits:
                        await waiting
                    raise error

                client = self.client(handler, "DELETE")
                client.send(b"DELETE /api/v1/things/a HTTP/1.1\r\nHost: x\r\n\r\n")
                waiting.callback(None)
                self.assertEqual([answer.code for answer in client.answers()], [code] if code else [])
        self.assertEqual(len(self.flushLoggedErrors(Boom)), 2)

    def test_status(self) -> None:
        """An API error is answered as its Status, whether raised immediately or later."""
        error = APIStatusError.bad_request("no")

        def now(request: KubeRequest, name: str) -> None:
            raise error

        async def later(request: KubeRequest, name: str) -> None:
            raise error

        for handler in (now, later):
            code, status = self.client(handler).ask("GET", "/api/v1/things/a")
            self.assertEqual((code, status["message"], status["kind"]), (400, "no", "Status"))

    def test_storage(self) -> None:
        """Storage errors are reported to clients as in kube-apiserver: without a reason and without file names."""
        full = StorageUnwritable("/data/store.sqlite", "database or disk is full")
        for error, message in (
            (full, "storage cannot be written at present: database or disk is full"),
            (OutcomeUnknown("etcdserver: request timed out"), "etcdserver: request timed out"),
        ):

            def now(request: KubeRequest, name: str, error: Exception = error) -> None:
                raise error

            async def later(request: KubeRequest, name: str, error: Exception = error) -> None:
                raise error

            for handler in (now, later):
                code, status = self.client(handler).ask("GET", "/api/v1/things/a")
                self.assertEqual((code, status["message"], status.get("reason")), (500, message, None))

    def test_bug(self) -> None:
        """A bug is logged, and answered with a 500 without its message."""

        def now(request: KubeRequest, name: str) -> None:
            raise Boom("a secret")

        async def later(request: KubeRequest, name: str) -> None:
            raise Boom("a secret")

        for handler in (now, later):
            answer = self.client(handler).request("GET", "/api/v1/things/a")
            self.assertEqual((answer.code, orjson.loads(answer.body)["reason"]), (500, "InternalError"))
            self.assertNotIn(b"secret", answer.body)
            self.assertEqual(len(self.flushLoggedErrors(Boom)), 1)

    def test_bug_in_the_middle(self) -> None:
        """After a bug during a response the connection is closed, so that the response is incomplete."""

        async def handler(request: KubeRequest, name: str) -> None:
            request.write(b"half")
            raise Boom

        client = self.client(handler)
        client.send(b"GET /api/v1/things/a HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertTrue(client.transport.disconnected)
        self.assertFalse(client.transport.value().endswith(b"0\r\n\r\n"))
        self.assertEqual(len(self.flushLoggedErrors(Boom)), 1)

    def test_hangs_up(self) -> None:
        """A read is cancelled when its client disconnects; a write is completed."""
        for method, cancelled in (("GET", True), ("POST", False), ("PATCH", False), ("DELETE", False)):
            seen: list[Any] = []
            waiting: Deferred[None] = Deferred()

            async def handler(
                request: KubeRequest, name: str, waiting: Deferred[None] = waiting, seen: list[Any] = seen
            ) -> None:
                try:
                    await waiting
                except CancelledError:
                    seen.append("cancelled")
                    raise
                seen.append("done")
                request.respond(200, b"", b"text/plain")

            client = self.client(handler, method)
            client.send(f"{method} /api/v1/things/a HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            client.disconnect()
            if not cancelled:
                waiting.callback(None)
            self.assertEqual(seen, ["cancelled" if cancelled else "done"])

    def test_cached_matches(self) -> None:
        """Routes are cached for short paths and methods with a handler only, up to a limit."""
        self.patch(routing, "ROUTE_CACHE_SIZE", 3)
        client = self.client(lambda request, name: request.respond(200, b"", b"text/plain"))
        for name in ("a", "b", "a", "c", "d", "e", "x" * 300):
            self.assertEqual(client.request("GET", f"/api/v1/things/{name}").code, 200)
            self.assertLessEqual(len(self.app._routes), 3)
        self.assertFalse(any(len(path) > 256 for _, path in self.app._routes))
        for method, path, code in (("GET", "/api/v1/nothing", 404), ("PUT", "/api/v1/things/a", 405)):
            self.assertEqual(client.request(method, path).code, code)
            self.assertNotIn((method.encode(), path.encode()), self.app._routes)


class PathTests(SynchronousTestCase):
    """The handlers of paths."""

    def setUp(self) -> None:
        """Create some resources."""
        self.server = Server(
            "configmaps", "namespaces", "nodes", "pods", "deployments", "clusterroles", "services", "endpoints"
        )
        self.client = self.server.client()
        self.client.ask("POST", MAPS, config_map("a"))

    def test_methods(self) -> None:
        """A method that a path does not support is a 405."""
        for method, path in (
            ("POST", f"{MAPS}/a"),
            ("PUT", MAPS),
            ("PATCH", MAPS),
            ("OPTIONS", MAPS),
            ("HEAD", f"{MAPS}/a"),
            ("POST", "/api/v1/configmaps"),
            ("DELETE", "/api/v1/namespaces"),
            ("GET", "/api/v1/namespaces/default/finalize"),
        ):
            answer = self.client.answer(method, path)
            self.assertEqual(answer.code, 405, (method, path))
            if method != "HEAD":
                self.assertEqual(orjson.loads(answer.body)["reason"], "MethodNotAllowed")

    def test_unknown(self) -> None:
        """A resource or subresource that is not served is a 404."""
        for path in ("/api/v1/things", f"{MAPS}/a/status", "/api/v1/namespaces/default/things", "/api/v1/pods/a/b/c"):
            code, status = self.client.ask("GET", path)
            self.assertEqual((code, status["reason"]), (404, "NotFound"), path)

    def test_other_scope(self) -> None:
        """
        CVE-2019-11247: cluster-scoped resources are not found below a namespace, and namespaced objects not without
        one.
        """
        for method in ("GET", "DELETE", "POST", "PATCH", "PUT"):
            for path in (
                "/api/v1/namespaces/default/nodes",
                "/api/v1/namespaces/default/nodes/n",
                "/apis/rbac.authorization.k8s.io/v1/namespaces/default/clusterroles",
                "/apis/rbac.authorization.k8s.io/v1/namespaces/default/clusterroles/c",
                "/api/v1/namespaces/default/namespaces/n",
                "/api/v1/configmaps/a",
            ):
                self.assertEqual(self.client.answer(method, path, {}).code, 404, (method, path))

    def test_slashes(self) -> None:
        """A trailing slash is ignored."""
        self.assertEqual(self.client.ask("GET", f"{MAPS}/")[0], 200)
        self.assertEqual(self.client.ask("GET", f"{MAPS}/a/")[0], 200)
        self.assertEqual(self.client.ask("GET", f"{MAPS}//")[0], 200)
        self.assertEqual(self.client.ask("GET", f"{MAPS}/a//")[0], 200)

    def test_empty_namespace(self) -> None:
        """A list with an empty namespace in the path is of all namespaces, and other verbs are rejected."""
        self.client.ask("POST", "/api/v1/namespaces/other/configmaps", {"metadata": {"name": "b"}})
        nowhere = "/api/v1/namespaces//configmaps"
        code, found = self.client.ask("GET", nowhere)
        self.assertEqual((code, [one["metadata"]["name"] for one in found["items"]]), (200, ["a", "b"]))
        for method, path in (
            ("GET", f"{nowhere}/a"),
            ("PUT", f"{nowhere}/a"),
            ("PATCH", f"{nowhere}/a"),
            ("DELETE", f"{nowhere}/a"),
            ("DELETE", nowhere),
            ("GET", "/api/v1/namespaces//services/web/proxy/"),
        ):
            body = {"metadata": {"name": "a"}} if method in ("PUT", "PATCH") else None
            media = {"content-type": "application/merge-patch+json"} if method == "PATCH" else {}
            code, status = self.client.ask(method, path, body, **media)
            self.assertEqual((code, status["message"]), (400, "Namespace parameter required."), (method, path))
        for meta in ({"name": "c"}, {"name": "c", "namespace": "default"}):
            code, status = self.client.ask("POST", nowhere, {"metadata": meta})
            self.assertEqual(code, 422)
            self.assertEqual(status["message"], 'ConfigMap "c" is invalid: metadata.namespace: Required value')
        self.assertEqual(self.client.ask("GET", f"{MAPS}/a")[0], 200)

    def test_empty_name(self) -> None:
        """A subresource without a name is rejected; a name after an empty segment is not found."""
        for path in ("/api/v1/nodes//status", "/api/v1/nodes//proxy", "/api/v1/namespaces/default/services//status"):
            code, status = self.client.ask("GET", path)
            self.assertEqual((code, status["message"]), (400, "name must be provided"), path)
        for path in (f"{MAPS}//a", "/api/v1//nodes", "/api/v1/namespaces///configmaps"):
            self.assertEqual(self.client.ask("GET", path)[0], 404, path)

    def test_connections(self) -> None:
        """Connecting subresources support every method, and paths below them."""
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            for path in ("proxy", "proxy/", "proxy/some/where"):
                self.assertEqual(self.client.answer(method, f"/api/v1/nodes/n/{path}").code, 404, (method, path))

    def test_service_proxy(self) -> None:
        """The proxy of a service accepts a name with a scheme and a port, and needs endpoints."""
        services = "/api/v1/namespaces/default/services"
        path = "/api/v1/namespaces/default/endpoints"
        for name in ("web", "web:80", "https:web:80", ":web:"):
            self.assertEqual(self.client.ask("GET", f"{services}/{name}/proxy/")[1]["details"]["name"], "web")
        self.client.ask("POST", services, {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
        self.client.ask("POST", path, {"metadata": {"name": "web"}})
        self.assertEqual(self.client.ask("GET", f"{services}/web:80/proxy/")[0], 503)
        subsets = [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}]
        self.client.ask("PUT", f"{path}/web", {"metadata": {"name": "web"}, "subsets": subsets})
        for name in ("web", "web:80", "http:web:80"):
            self.assertEqual(self.client.ask("GET", f"{services}/{name}/proxy/")[0], 503, name)
        for name in ("a:b:c:d", "ftp:web:80", "::80"):
            self.assertEqual(self.client.ask("GET", f"{services}/{name}/proxy/")[0], 400, name)
