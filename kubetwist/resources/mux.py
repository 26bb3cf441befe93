"""
One server of the chain, as a resource of Twisted's traversal.

A server claims paths for its Klein apps. It delegates a request to the next server if no app claims its path, or if the
app that claims it has no route there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from twisted.web.resource import IResource, Resource
from twisted.web.server import NOT_DONE_YET

from ..http.request import KubeRequest
from .routing import MAX_CACHED_LENGTH, Route, RoutedApp

#: Maximum number of segments of the paths that are claimed.
MAX_SEGMENTS = 3
#: Maximum number of found routes that are kept per server; all are dropped above that.
MAX_FOUND = 4096


class NotFound(Resource):
    """The end of the chain: no server has a handler for the path."""

    isLeaf = True

    def render(self, request: KubeRequest) -> int:
        """Answer any method in plain text."""
        request.respond_text(404, "404 page not found\n")
        return NOT_DONE_YET


class DelegatingMux(Resource):
    """
    One server of the chain: routes the paths that its apps claim, and delegates all further paths.

    @ivar name: The name in logs, traces and health checks: C{"kube-aggregator"}.
    @ivar delegate: The next server's mux, or the end of the chain.
    """

    def __init__(self, name: str, delegate: IResource) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Twisted has no annotations here
        self.name = name
        self.delegate = delegate
        self._exact: dict[tuple[bytes, ...], RoutedApp] = {}
        self._prefixes: dict[tuple[bytes, ...], RoutedApp] = {}
        self._overrides: dict[tuple[bytes, ...], RoutedApp] = {}
        #: The lengths of prefixes by their first segment, the longest first.
        self._lengths: dict[bytes, tuple[int, ...]] = {}
        self._unlisted: set[tuple[bytes, ...]] = set()
        self._one_slash: set[tuple[bytes, ...]] = set()
        self._listed_subpaths: dict[str, Callable[[], Iterable[str]]] = {}
        #: Routes that were found, by method and path; L{None} for paths of the delegate. Emptied when claims change.
        self._found: dict[tuple[bytes, bytes], Route | None] = {}

    def handle(self, path: str, app: RoutedApp, *, exposed: bool = True, slashes: bool = True) -> None:
        """
        Claim C{path} itself for an app, with or without a trailing slash, but no paths below it.

        @param exposed: Whether the index lists the path.
        @param slashes: Whether any number of trailing slashes is allowed, not only one.
        """
        if not slashes:
            self._one_slash.add(segments(path))
        if not exposed:
            self._unlisted.add(segments(path))
        self._found.clear()
        self._exact[segments(path)] = app

    def handle_prefix(
        self,
        path: str,
        app: RoutedApp,
        *,
        exposed: bool = True,
        listed_subpaths: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """
        Claim C{path} and everything below it for an app.

        @param app: The app, whose routes are of whole paths.
        @param exposed: Whether the index lists this path.
        @param listed_subpaths: The paths below it that the index lists, too, without C{path} and a slash.
        """
        if not exposed:
            self._unlisted.add(segments(path))
        if listed_subpaths is not tuple:
            self._listed_subpaths[path] = listed_subpaths
        key = segments(path)
        self._found.clear()
        self._prefixes[key] = app
        self._lengths[key[0]] = tuple(sorted({len(key), *self._lengths.get(key[0], ())}, reverse=True))

    def override(self, path: str, app: RoutedApp) -> None:
        """Claim C{path} and everything below it, before all other claims, until L{remove_override}."""
        self._found.clear()
        self._overrides[segments(path)] = app

    def remove_override(self, path: str) -> None:
        """End the claim of L{override}."""
        self._found.clear()
        self._overrides.pop(segments(path), None)

    def unregister(self, path: str) -> None:
        """End the claims of C{path} and of everything below it."""
        self._found.clear()
        self._exact.pop(segments(path), None)
        self._prefixes.pop(segments(path), None)

    def claims(self) -> Iterator[tuple[str, RoutedApp]]:
        """Return all claimed paths with their apps, in the order in which they are compared."""
        for claims in (self._overrides, self._exact, self._prefixes):
            for path, app in claims.items():
                yield _joined(path), app

    def listed_paths(self) -> list[str]:
        """Return all listed paths and their listed subpaths, sorted."""
        listed = {*self._exact, *self._prefixes} - self._unlisted
        subpaths = (
            f"{path}/{rest}" for path, list_subpaths in self._listed_subpaths.items() for rest in list_subpaths()
        )
        return sorted({*map(_joined, listed), *subpaths})

    def getChildWithDefault(self, path: bytes, request: KubeRequest) -> IResource:
        """Restore the segment that traversal has consumed, as apps route on the whole path."""
        request.prepath.clear()
        request.postpath.insert(0, path)
        key = (request.method, request.path)
        try:
            return self._found[key] or self.delegate
        except KeyError:
            pass
        route = self._find(request)
        if len(request.method) + len(request.path) <= MAX_CACHED_LENGTH:
            if len(self._found) >= MAX_FOUND:
                self._found.clear()
            self._found[key] = route
        return route or self.delegate

    def _find(self, request: KubeRequest) -> Route | None:
        """
        Return the route of a request, if an app has one.

        A trailing slash is an empty segment. A path that begins with several slashes is not claimed.
        """
        path = request.postpath
        if len(path) > 1 and not path[0]:
            return None
        count = len(path)
        while count and not path[count - 1]:
            count -= 1
        if self._overrides:
            for length in (MAX_SEGMENTS, 1):
                app = self._overrides.get(tuple(path[:length]))
                if app is not None:
                    return app.find(request)
        if count <= MAX_SEGMENTS:
            key = tuple(path[:count])
            app = self._exact.get(key)
            if app is not None and not (len(path) > count + 1 and key in self._one_slash):
                route = app.find(request)
                if route is not None:
                    return route
        for length in self._lengths.get(path[0], ()):
            app = self._prefixes.get(tuple(path[:length]))
            if app is not None:
                route = app.find(request)
                if route is not None:
                    return route
        return None


def segments(path: str) -> tuple[bytes, ...]:
    """Return the segments of a path, as in traversal: two for C{"/apis/apps"}, none for C{"/"}."""
    found = tuple(part.encode() for part in path.split("/") if part)
    assert len(found) <= MAX_SEGMENTS, f"{path} is too long for a claim"
    return found


def _joined(path: tuple[bytes, ...]) -> str:
    return "/" + b"/".join(path).decode()
