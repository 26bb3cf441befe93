"""Tests for L{kubetwist.resources.mux}."""

from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource, getChildForRequest
from twisted.web.test.requesthelper import DummyRequest

from kubetwist.resources.mux import DelegatingMux


class Leaf(Resource):
    """Leaf that records the path to route on."""

    isLeaf = True


def found(mux, path):
    """Return the resource at which traversal ends."""
    request = DummyRequest(path.split(b"/")[1:])
    return getChildForRequest(mux, request), request


class DelegatingMuxTests(SynchronousTestCase):
    """L{DelegatingMux}."""

    def setUp(self) -> None:
        """Create two servers and the end of the chain."""
        self.end = Leaf()
        self.second = DelegatingMux("second", self.end)
        self.first = DelegatingMux("first", self.second)
        self.leaf = Leaf()

    def test_prefix(self) -> None:
        """A prefix handler gets all paths below its path, and routes on the whole path."""
        self.first.handle_prefix("/api/v1", self.leaf)
        resource, request = found(self.first, b"/api/v1/pods/web-0")
        self.assertIs(resource, self.leaf)
        self.assertEqual(request.postpath, [b"api", b"v1", b"pods", b"web-0"])

    def test_exact(self) -> None:
        """
        An exact handler gets its path with and without a trailing slash, not paths below, and precedes prefix handlers.
        """
        other = Leaf()
        self.first.handle("/apis/apps/v1", other)
        self.first.handle_prefix("/apis/apps/v1", self.leaf)
        self.assertIs(found(self.first, b"/apis/apps/v1")[0], other)
        self.assertIs(found(self.first, b"/apis/apps/v1/")[0], other)
        self.assertIs(found(self.first, b"/apis/apps/v1/deployments")[0], self.leaf)

    def test_root(self) -> None:
        """The root is handled like any other path."""
        self.first.handle("/", self.leaf)
        self.assertIs(found(self.first, b"/")[0], self.leaf)

    def test_slashes(self) -> None:
        """A path that begins with several slashes has no handler; several trailing slashes may be allowed."""
        self.first.handle("/", self.leaf)
        self.first.handle("/api", self.leaf)
        self.first.handle("/apis", self.leaf, slashes=False)
        for path in (b"//", b"///", b"//api", b"/apis//"):
            self.assertIs(found(self.first, path)[0], self.end, path)
        for path in (b"/", b"/api/", b"/api//", b"/apis/"):
            self.assertIs(found(self.first, path)[0], self.leaf, path)

    def test_listed_paths(self) -> None:
        """Registered paths are listed, sorted, with their listed subpaths; unexposed paths are not."""
        self.first.handle_prefix("/readyz", self.leaf, listed_subpaths=lambda: ("ping", "log"))
        self.first.handle("/version", self.leaf)
        self.first.handle("/", self.leaf, exposed=False)
        self.first.handle_prefix("/debug", self.leaf, exposed=False)
        self.first.handle_prefix("/openapi/v3", self.leaf, listed_subpaths=lambda: ("",))
        self.assertEqual(
            self.first.listed_paths(),
            ["/openapi/v3", "/openapi/v3/", "/readyz", "/readyz/log", "/readyz/ping", "/version"],
        )

    def test_delegation(self) -> None:
        """A path without a handler is delegated to the next server."""
        self.second.handle_prefix("/apis/a", self.leaf)
        self.assertIs(found(self.first, b"/apis/a/v1/things")[0], self.leaf)
        self.assertIs(found(self.first, b"/apis/b/v1/things")[0], self.end)

    def test_created_at_first_request(self) -> None:
        """A handler may be a function, which is called once."""
        created = []

        def make():
            created.append(Leaf())
            return created[-1]

        self.first.handle_prefix("/api/v1", make)
        self.assertEqual(created, [])
        self.assertIs(found(self.first, b"/api/v1/pods")[0], found(self.first, b"/api/v1/nodes")[0])
        self.assertEqual(len(created), 1)

    def test_unregister(self) -> None:
        """An unregistered path is delegated to the next server."""
        self.first.handle_prefix("/apis/a", self.leaf)
        self.first.unregister("/apis/a")
        self.assertIs(found(self.first, b"/apis/a/v1")[0], self.end)

    def test_listed_subpaths(self) -> None:
        """A mux lists its registered paths."""
        self.first.handle("/version", self.leaf)
        self.first.handle_prefix("/api/v1", self.leaf)
        self.assertEqual(self.first.listed_paths(), ["/api/v1", "/version"])

    def test_override(self) -> None:
        """An override precedes all handlers until it is removed."""
        other = Leaf()
        self.first.handle("/apis/apps/v1", self.leaf)
        self.second.handle_prefix("/apis/apps/v1", self.leaf)
        self.first.override("/apis/apps/v1", other)
        self.first.override("/api", other)
        for path in (b"/apis/apps/v1", b"/apis/apps/v1/", b"/apis/apps/v1/deployments", b"/api", b"/api/v1/pods"):
            self.assertIs(found(self.first, path)[0], other)
        self.assertIs(found(self.first, b"/apis/apps/v2/deployments")[0], self.end)
        self.assertIs(found(self.first, b"/apis/apps")[0], self.end)
        self.first.remove_override("/apis/apps/v1")
        self.assertIs(found(self.first, b"/apis/apps/v1")[0], self.leaf)
        self.assertIs(found(self.first, b"/apis/apps/v1/deployments")[0], self.leaf)
