"""Tests for L{kubetwist.resources.routetree}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from werkzeug.exceptions import MethodNotAllowed as WerkzeugMethodNotAllowed
from werkzeug.exceptions import NotFound
from werkzeug.routing import RequestRedirect

from klein import Klein
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.routetree import MethodNotAllowed, RouteTree
from kubetwist.resources.routing import add_route, new_app

#: Patterns of segments; few, so that rules overlap.
SEGMENTS = st.sampled_from(("a", "b", "<x>", "<y>"))
LISTS = st.lists(SEGMENTS, min_size=1, max_size=4).filter(
    lambda parts: parts.count("<x>") < 2 and parts.count("<y>") < 2
)
TAILS = st.sampled_from(("", "/<path:z>", "/<rest:z>"))
METHODS = st.sampled_from((None, ("GET",), ("PUT",), ("GET", "PUT")))
PATTERNS = st.builds(lambda segments, tail: f"/{'/'.join(segments)}{tail}", LISTS, TAILS)
RULES = st.lists(st.tuples(METHODS, PATTERNS), min_size=1, max_size=8, unique=True)
#: No path begins with several slashes: the chain does not claim these, and werkzeug ignores all but one.
PATHS = (
    st.lists(st.sampled_from(("a", "b", "c", "")), min_size=1, max_size=5)
    .filter(lambda parts: parts[0] != "")
    .map(lambda parts: "/" + "/".join(parts))
)


def made(rules: Any, slashes: bool = True) -> Klein:
    """Return an app with these methods and patterns."""
    app = new_app()
    for methods, pattern in rules:
        add_route(app, methods, pattern, lambda request, **named: None, slashes=slashes)
    return app


def by_tree(app: Klein, method: str, path: str) -> Any:
    """Return the endpoint and the arguments, the allowed methods, or C{"not found"}."""
    try:
        found = RouteTree(app.url_map).find(method, path[1:].split("/"))
    except MethodNotAllowed as error:
        return set(error.allowed)
    return "not found" if found is None else (found.endpoint, found.arguments)


def by_werkzeug(app: Klein, method: str, path: str) -> Any:
    """Return the same as L{by_tree}, from werkzeug."""
    try:
        return app.url_map.bind("test").match(path, method)
    except WerkzeugMethodNotAllowed as error:
        return set(error.valid_methods or ())
    except (NotFound, RequestRedirect):
        return "not found"


class RouteTreeTests(SynchronousTestCase):
    """L{RouteTree}."""

    @given(RULES, st.sampled_from(("GET", "PUT", "POST")), PATHS.filter(lambda path: not path.endswith("/")))
    def test_as_werkzeug(self, rules: Any, method: str, path: str) -> None:
        """A path without a trailing slash has the route that werkzeug finds, with the same arguments."""
        app = made(rules)
        self.assertEqual(by_tree(app, method, path), by_werkzeug(app, method, path))

    @given(LISTS, PATHS)
    def test_strict(self, segments: list[str], path: str) -> None:
        """A route without trailing slashes has the matches of werkzeug."""
        app = made([(None, f"/{'/'.join(segments)}")], slashes=False)
        if segments[-1].startswith("<") and path.endswith("/"):
            # werkzeug takes the empty segment for the name; here it is a trailing slash.
            self.assertEqual(by_tree(app, "GET", path), "not found")
        else:
            self.assertEqual(by_tree(app, "GET", path), by_werkzeug(app, "GET", path))

    def test_trailing_slashes(self) -> None:
        """Trailing slashes are ignored, unless the route forbids them or has one itself; a rest contains them."""
        lenient = made([(None, "/a/<x>")])
        for path in ("/a/1", "/a/1/", "/a/1//"):
            self.assertEqual(by_tree(lenient, "GET", path), ("any method /a/<x>", {"x": "1"}))
        strict = made([(None, "/a"), (None, "/a/"), (None, "/a/<rest:z>")], slashes=False)
        self.assertEqual(by_tree(strict, "GET", "/a"), ("any method /a", {}))
        self.assertEqual(by_tree(strict, "GET", "/a/"), ("any method /a/", {}))
        self.assertEqual(by_tree(strict, "GET", "/a//"), ("any method /a/<rest:z>", {"z": "/"}))
        self.assertEqual(by_tree(strict, "GET", "/a/b/"), ("any method /a/<rest:z>", {"z": "b/"}))

    def test_rest(self) -> None:
        """A rest may be empty or begin with a slash, but a path may not."""
        rest, path = made([(None, "/a/<rest:z>")]), made([(None, "/a/<path:z>")])
        for text in ("", "/", "/b", "b/c"):
            self.assertEqual(by_tree(rest, "GET", f"/a/{text}"), ("any method /a/<rest:z>", {"z": text}))
        self.assertEqual(by_tree(rest, "GET", "/a"), "not found")
        self.assertEqual(by_tree(path, "GET", "/a/b/c"), ("any method /a/<path:z>", {"z": "b/c"}))
        for text in ("", "/", "/b"):
            self.assertEqual(by_tree(path, "GET", f"/a/{text}"), "not found")

    def test_order(self) -> None:
        """A text precedes a name, a name precedes a rest, and of equal patterns the first one is used."""
        app = made([(None, "/a/<rest:z>"), (None, "/a/<x>"), (("PUT",), "/a/b"), (("GET",), "/a/b"), (None, "/a/b")])
        for method, path, endpoint in (
            ("PUT", "/a/b", "PUT /a/b"),
            ("GET", "/a/b", "GET /a/b"),
            ("POST", "/a/b", "any method /a/b"),
            ("GET", "/a/c", "any method /a/<x>"),
            ("GET", "/a/c/d", "any method /a/<rest:z>"),
        ):
            self.assertEqual(by_tree(app, method, path)[0], endpoint)

    def test_unsupported(self) -> None:
        """A pattern that the tree does not support is refused."""
        for pattern in ("/a-<x>", "/<int:x>", "/<rest:z>/a", "/<x>-<y>"):
            self.assertRaises(ValueError, RouteTree, made([(None, pattern)]).url_map)
