"""One server of the chain, as a resource of Twisted's traversal."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from twisted.web.iweb import IRequest
from twisted.web.resource import IResource, Resource


class DelegatingMux(Resource):
    """
    One server of the chain: routes its registered paths, and delegates all further paths.

    @ivar name: The name in logs and health checks: C{"kube-aggregator"}.
    @ivar delegate: The next server's mux, or the end of the chain.
    """

    def __init__(self, name: str, delegate: IResource) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Twisted has no annotations here
        self.name = name
        self.delegate = delegate
        self._exact: dict[tuple[bytes, ...], IResource] = {}
        self._prefixes: dict[tuple[bytes, ...], IResource | Callable[[], IResource]] = {}
        self._overrides: dict[tuple[bytes, ...], IResource] = {}
        self._unlisted: set[tuple[bytes, ...]] = set()
        self._one_slash: set[tuple[bytes, ...]] = set()
        self._listed_subpaths: dict[str, Callable[[], Iterable[str]]] = {}

    def handle(self, path: str, resource: IResource, *, exposed: bool = True, slashes: bool = True) -> None:
        """
        Answer C{path} itself, with or without a trailing slash, but no paths below it.

        @param exposed: Whether the index lists the path.
        @param slashes: Whether any number of trailing slashes is allowed, not only one.
        """
        if not slashes:
            self._one_slash.add(segments(path))
        if not exposed:
            self._unlisted.add(segments(path))
        self._exact[segments(path)] = resource

    def handle_prefix(
        self,
        path: str,
        resource: IResource | Callable[[], IResource],
        *,
        exposed: bool = True,
        listed_subpaths: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """
        Answer C{path} and everything below it.

        @param resource: A leaf that routes on the whole path, or the function that creates it at the first request.
        @param exposed: Whether the index lists this path.
        @param listed_subpaths: The paths below it that the index lists, too, without C{path} and a slash.
        """
        if not exposed:
            self._unlisted.add(segments(path))
        if listed_subpaths is not tuple:
            self._listed_subpaths[path] = listed_subpaths
        self._prefixes[segments(path)] = resource

    def override(self, path: str, resource: IResource) -> None:
        """Answer C{path} and everything below it, instead of its registered handler, until L{remove_override}."""
        self._overrides[segments(path)] = resource

    def remove_override(self, path: str) -> None:
        """Restore the registered handler of C{path}."""
        self._overrides.pop(segments(path), None)

    def unregister(self, path: str) -> None:
        """Unregister both handlers of C{path}."""
        self._exact.pop(segments(path), None)
        self._prefixes.pop(segments(path), None)

    def listed_paths(self) -> list[str]:
        """Return all listed paths and their listed subpaths, sorted."""
        listed = {*self._exact, *self._prefixes} - self._unlisted
        subpaths = (
            f"{path}/{rest}" for path, list_subpaths in self._listed_subpaths.items() for rest in list_subpaths()
        )
        return sorted({*("/" + b"/".join(path).decode() for path in listed), *subpaths})

    def getChild(self, path: bytes, request: IRequest) -> IResource:
        """Restore the segment that traversal has consumed, as resources route on the whole path."""
        del request.prepath[-1]
        request.postpath = [path, *request.postpath]
        resource = self._find(request.postpath)
        return self.delegate if resource is None else resource

    def _find(self, path: list[bytes]) -> IResource | None:
        """
        Return the registered handler of a path.

        @param path: The segments of the path; a trailing slash is an empty segment. A path that begins with several
            slashes has no handler.
        """
        if len(path) > 1 and not path[0]:
            return None
        full_path = path
        while path and not path[-1]:
            path = path[:-1]
        if self._overrides:
            for length in (3, 1):
                override = self._overrides.get(tuple(path[:length]))
                if override is not None:
                    return override
        exact = self._exact.get(tuple(path))
        if exact is not None:
            return None if len(full_path) > len(path) + 1 and tuple(path) in self._one_slash else exact
        prefixes = self._prefixes
        for length in (3, 2, 1):
            key = tuple(path[:length])
            resource = prefixes.get(key)
            if resource is not None:
                if not IResource.providedBy(resource):
                    assert callable(resource)
                    resource = prefixes[key] = resource()
                return resource
        return None


def segments(path: str) -> tuple[bytes, ...]:
    """Return the segments of a path, as in traversal: two for C{"/apis/apps"}, none for C{"/"}."""
    return tuple(part.encode() for part in path.split("/") if part)
