"""Tests for L{kubetwist.resources.mux}."""

from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource, getChildForRequest
from twisted.web.test.requesthelper import DummyRequest

from kubetwist.resources.mux import DelegatingMux


class Leaf(Resource):
    """Remembers what it was given to route on."""

    isLeaf = True


def found(mux, path):
    """The resource that traversal comes to."""
    request = DummyRequest(path.split(b"/")[1:])
    return getChildForRequest(mux, request), request


class DelegatingMuxTests(SynchronousTestCase):
    """Tests for L{DelegatingMux}."""

    def setUp(self) -> None:
        """Two servers and the end of the chain."""
        self.end = Leaf()
        self.second = DelegatingMux("second", self.end)
        self.first = DelegatingMux("first", self.second)
        self.leaf = Leaf()

    def test_below(self) -> None:
        """A claim holds for everything below its path, and its resource routes on the whole path."""
        self.first.handle_prefix("/api/v1", self.leaf)
        resource, request = found(self.first, b"/api/v1/pods/web-0")
        self.assertIs(resource, self.leaf)
        self.assertEqual(request.postpath, [b"api", b"v1", b"pods", b"web-0"])

    def test_exact(self) -> None:
        """An exact claim holds with and without a slash behind it, but for nothing below, and comes before others."""
        other = Leaf()
        self.first.handle("/apis/apps/v1", other)
        self.first.handle_prefix("/apis/apps/v1", self.leaf)
        self.assertIs(found(self.first, b"/apis/apps/v1")[0], other)
        self.assertIs(found(self.first, b"/apis/apps/v1/")[0], other)
        self.assertIs(found(self.first, b"/apis/apps/v1/deployments")[0], self.leaf)

    def test_root(self) -> None:
        """The root is a path like any other."""
        self.first.handle("/", self.leaf)
        self.assertIs(found(self.first, b"/")[0], self.leaf)

    def test_slashes(self) -> None:
        """A path that begins with several slashes is claimed by no server; several at the end may be allowed."""
        self.first.handle("/", self.leaf)
        self.first.handle("/api", self.leaf)
        self.first.handle("/apis", self.leaf, slashes=False)
        for path in (b"//", b"///", b"//api", b"/apis//"):
            self.assertIs(found(self.first, path)[0], self.end, path)
        for path in (b"/", b"/api/", b"/api//", b"/apis/"):
            self.assertIs(found(self.first, path)[0], self.leaf, path)

    def test_listed_paths(self) -> None:
        """Claims are listed, sorted, with what is told to be below them; but for those that are not to be."""
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
        """What a server does not claim is answered by the one behind it."""
        self.second.handle_prefix("/apis/a", self.leaf)
        self.assertIs(found(self.first, b"/apis/a/v1/things")[0], self.leaf)
        self.assertIs(found(self.first, b"/apis/b/v1/things")[0], self.end)

    def test_made_at_first_request(self) -> None:
        """A claim may be a function, which is called once."""
        made = []

        def make():
            made.append(Leaf())
            return made[-1]

        self.first.handle_prefix("/api/v1", make)
        self.assertEqual(made, [])
        self.assertIs(found(self.first, b"/api/v1/pods")[0], found(self.first, b"/api/v1/nodes")[0])
        self.assertEqual(len(made), 1)

    def test_release(self) -> None:
        """A claim that is given up is the next server's to answer."""
        self.first.handle_prefix("/apis/a", self.leaf)
        self.first.unregister("/apis/a")
        self.assertIs(found(self.first, b"/apis/a/v1")[0], self.end)

    def test_paths(self) -> None:
        """A layer tells which paths it answers."""
        self.first.handle("/version", self.leaf)
        self.first.handle_prefix("/api/v1", self.leaf)
        self.assertEqual(self.first.listed_paths(), ["/api/v1", "/version"])

    def test_taken(self) -> None:
        """What is taken comes before all claims, whoever's, until it is given back."""
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
