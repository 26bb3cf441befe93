"""Tests for L{kubetwist.resources.mux}, over HTTP in memory."""

from __future__ import annotations

from klein import Klein
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources import mux
from kubetwist.resources.mux import DelegatingMux, NotFound
from kubetwist.resources.routing import RoutedApp, add_route, new_app

from .apps import app_of, ask, text_app

NOWHERE = (404, b"404 page not found\n")


class DelegatingMuxTests(SynchronousTestCase):
    """L{DelegatingMux}."""

    def setUp(self) -> None:
        """Create two servers, the end of the chain, and an app."""
        self.second = DelegatingMux("second", NotFound())
        self.first = DelegatingMux("first", self.second)
        self.app = text_app(b"app")
        self.other = text_app(b"other")

    def ask(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        """Return the code and the body of a response of the chain."""
        return ask(self.first, method, path)[::2]

    def assertAnswered(self, body: bytes, *paths: str) -> None:
        """Assert that the app with this text answers each path."""
        for path in paths:
            self.assertEqual(self.ask(path), (200, body), path)

    def assertNotFound(self, *paths: str) -> None:
        """Assert that the end of the chain answers each path."""
        for path in paths:
            self.assertEqual(self.ask(path), NOWHERE, path)

    def test_prefix(self) -> None:
        """An app that claims a prefix gets all paths below it, and routes on the whole path."""
        self.first.handle_prefix("/api/v1", app_of(lambda request: b"/".join(request.postpath)))
        self.assertAnswered(b"api/v1/pods/web-0", "/api/v1/pods/web-0")
        self.assertAnswered(b"api/v1/pods/web-0", "/api/v1/pods%2Fweb-0", "/%61pi/v1/pods/web-0")

    def test_exact(self) -> None:
        """
        An app that claims a path gets it with and without a trailing slash, not paths below it, and precedes prefixes.
        """
        self.first.handle("/apis/apps/v1", self.other)
        self.first.handle_prefix("/apis/apps/v1", self.app)
        self.assertAnswered(b"other", "/apis/apps/v1", "/apis/apps/v1/")
        self.assertAnswered(b"app", "/apis/apps/v1/deployments")

    def test_root(self) -> None:
        """The root is claimed like any other path."""
        self.first.handle("/", self.app)
        self.assertAnswered(b"app", "/")
        self.assertNotFound("/x")

    def test_slashes(self) -> None:
        """A path that begins with several slashes is not claimed; several trailing slashes may be allowed."""
        self.first.handle("/", self.app)
        self.first.handle("/api", self.app)
        self.first.handle("/apis", self.app, slashes=False)
        self.assertNotFound("//", "///", "//api", "/apis//")
        self.assertAnswered(b"app", "/", "/api/", "/api//", "/apis/")

    def test_longest_prefix(self) -> None:
        """The longest claimed prefix comes first; an app without a route for the path leaves it to the next claim."""

        def make() -> Klein:
            app = new_app()
            add_route(app, "GET", "/apis/apps/v1/deployments", lambda request: b"deployments")
            return app

        self.first.handle_prefix("/apis", self.app)
        self.first.handle_prefix("/apis/apps", self.other)
        self.first.handle_prefix("/apis/apps/v1", RoutedApp(make))
        self.assertAnswered(b"deployments", "/apis/apps/v1/deployments")
        self.assertAnswered(b"other", "/apis/apps/v1/nothing", "/apis/apps/v2/deployments")
        self.assertAnswered(b"app", "/apis/batch/v1/jobs")

    def test_no_route(self) -> None:
        """A path without a route is delegated, even if an app claims it; an unsupported method is not."""

        def make() -> Klein:
            app = new_app()
            add_route(app, ("GET", "PUT"), "/apis/a/v1/things", lambda request: b"first")
            return app

        self.first.handle_prefix("/apis/a", RoutedApp(make))
        self.second.handle_prefix("/apis", self.app)
        self.assertAnswered(b"first", "/apis/a/v1/things")
        self.assertAnswered(b"app", "/apis/a/v1/nothing", "/apis/b")
        code, headers, _ = ask(self.first, "DELETE", "/apis/a/v1/things")
        self.assertEqual((code, headers.getRawHeaders("allow")), (405, ["GET, PUT"]))

    def test_listed_paths(self) -> None:
        """Claimed paths are listed, sorted, with their listed subpaths; unexposed paths are not."""
        self.first.handle_prefix("/readyz", self.app, listed_subpaths=lambda: ("ping", "log"))
        self.first.handle("/version", self.app)
        self.first.handle("/", self.app, exposed=False)
        self.first.handle_prefix("/debug", self.app, exposed=False)
        self.first.handle_prefix("/openapi/v3", self.app, listed_subpaths=lambda: ("",))
        self.assertEqual(
            self.first.listed_paths(),
            ["/openapi/v3", "/openapi/v3/", "/readyz", "/readyz/log", "/readyz/ping", "/version"],
        )
        self.assertEqual(
            [path for path, _ in self.first.claims()], ["/version", "/", "/readyz", "/debug", "/openapi/v3"]
        )

    def test_delegation(self) -> None:
        """A path without a claim is delegated to the next server."""
        self.second.handle_prefix("/apis/a", self.app)
        self.assertAnswered(b"app", "/apis/a/v1/things")
        self.assertNotFound("/apis/b/v1/things")

    def test_changed_claims(self) -> None:
        """A path that was answered before is answered by the claims of the present."""
        path = "/apis/a"
        self.assertNotFound(path)
        self.second.handle_prefix(path, self.app)
        self.assertAnswered(b"app", path)
        self.first.handle(path, self.other)
        self.assertAnswered(b"other", path)
        self.first.override(path, self.app)
        self.assertAnswered(b"app", path)
        self.first.remove_override(path)
        self.assertAnswered(b"other", path)
        self.first.unregister(path)
        self.assertAnswered(b"app", path)
        self.second.unregister(path)
        self.assertNotFound(path)

    def test_kept_routes(self) -> None:
        """Found routes of short paths are kept, up to a limit."""
        self.patch(mux, "MAX_FOUND", 3)
        self.first.handle_prefix("/apis/a", self.app)
        for name in ("b", "c", "b", "d", "e", "x" * 300):
            self.assertAnswered(b"app", f"/apis/a/{name}")
            self.assertLessEqual(len(self.first._found), 3)
        self.assertFalse(any(len(path) > 256 for _, path in self.first._found))

    def test_created_at_first_request(self) -> None:
        """A Klein app is created once, at its first request."""
        created = []

        def make() -> Klein:
            created.append(new_app())
            add_route(created[-1], "GET", "/api/v1/<name>", lambda request, name: name.encode())
            return created[-1]

        self.first.handle_prefix("/api/v1", RoutedApp(make))
        self.assertEqual(created, [])
        self.assertAnswered(b"pods", "/api/v1/pods")
        self.assertAnswered(b"nodes", "/api/v1/nodes")
        self.assertEqual(len(created), 1)

    def test_unregister(self) -> None:
        """A path whose claims have ended is delegated to the next server."""
        self.first.handle_prefix("/apis/a", self.app)
        self.first.handle("/apis/a", self.other)
        self.first.unregister("/apis/a")
        self.assertNotFound("/apis/a/v1", "/apis/a")
        self.first.unregister("/apis/a")

    def test_override(self) -> None:
        """An override precedes all claims until it is removed."""
        self.first.handle("/apis/apps/v1", self.app)
        self.second.handle_prefix("/apis/apps/v1", self.app)
        self.first.override("/apis/apps/v1", self.other)
        self.first.override("/api", self.other)
        self.assertAnswered(
            b"other", "/apis/apps/v1", "/apis/apps/v1/", "/apis/apps/v1/deployments", "/api", "/api/v1/pods"
        )
        self.assertNotFound("/apis/apps/v2/deployments", "/apis/apps")
        self.first.remove_override("/apis/apps/v1")
        self.assertAnswered(b"app", "/apis/apps/v1", "/apis/apps/v1/deployments")
