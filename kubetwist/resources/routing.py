"""
Serves a Klein app as a leaf of the chain, with cached routing.

Klein's own resource binds and matches werkzeug's map, and builds several Deferreds, at every request; that costs about
as much as all the rest of a small GET. Here the match of a method and path is looked up once and cached, and a handler
that answers synchronously needs no Deferred. Klein's map remains the only source of routes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import BaseConverter, MapAdapter, RequestRedirect

from klein import Klein
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from ..api.errors import APIStatusError, clear_frames
from ..http.request import KubeRequest
from ..http.responses import respond_error, respond_status
from ..storage.errors import OutcomeUnknown, StorageUnavailable

#: Maximum number of cached matches per app; the cache is cleared above that.
MATCH_CACHE_SIZE = 16384
#: Longer paths are not cached, so that a client cannot fill the memory.
MAX_CACHED_PATH_LENGTH = 256


def route_method(method: str) -> str:
    """
    Return the method to match in routes.

    werkzeug routes HEAD to every GET handler; the reference supports HEAD only on some paths.
    """
    return "HEAD-ALONE" if method == "HEAD" else method


class Segment(BaseConverter):
    """A segment of a path that a route names. It may be empty: handlers reject that, as in the reference."""

    regex = "[^/]*"
    part_isolating = True


def resource_routes() -> Klein:
    """Return a Klein app without routes, for paths of resources: empty segments are not skipped."""
    app = Klein()
    app.url_map.merge_slashes = False
    app.url_map.converters["default"] = Segment
    return app


class HandlerResource(Resource):
    """
    Calls handlers.

    A handler returns L{None} after it has answered, or a Deferred. An L{APIStatusError} becomes its Status.
    Unavailable storage becomes a 500 with its message, as in kube-apiserver. Any other exception is a bug: it is
    logged, and answered with a 500 without details.
    """

    isLeaf = True
    _log = Logger()

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Twisted has no annotations here

    def run(self, request: KubeRequest, handler: Callable[..., object], arguments: Mapping[str, object]) -> int:
        """Call C{handler}, and respond with its error if it fails, now or later."""
        try:
            result = handler(request, **arguments)
        except APIStatusError as error:
            respond_error(request, error, True)
            return NOT_DONE_YET
        except Exception:
            self._handle_failure(Failure(), request)
            return NOT_DONE_YET
        if isinstance(result, Deferred):
            self._handle_deferred(result, request)
        return NOT_DONE_YET

    def _handle_deferred(self, result: Deferred[object], request: KubeRequest) -> None:
        """
        Wait for a handler; cancel it when the client disconnects.

        Writes are not cancelled: they may be in storage already, and the steps after them must run then.
        """
        if request.method == b"GET" and (not result.called or result.paused):
            request.notifyFinish().addErrback(lambda reason: result.cancel())
        result.addErrback(self._handle_failure, request)

    def _handle_failure(self, failure: Failure, request: KubeRequest) -> None:
        error = failure.value
        if isinstance(error, CancelledError):
            clear_frames(error)
        elif isinstance(error, APIStatusError):
            respond_error(request, error, True)
        elif isinstance(error, (StorageUnavailable, OutcomeUnknown)):
            clear_frames(error)
            respond_error(request, APIStatusError.unknown(error.client_message), True)
        else:
            self._handle_bug(failure, request)

    def _handle_bug(self, failure: Failure, request: KubeRequest) -> None:
        self._log.failure(
            "{method} {path} failed (audit id {audit_id})",
            failure,
            method=request.method.decode("latin-1"),
            path=request.info.path,
            audit_id=request.audit_id,
        )
        request.panicked(failure)
        if not request.startedWriting:
            respond_status(request, 500, APIStatusError.internal("the server met an unexpected condition").status())
        elif not request.finished:
            request.abort()


class RoutedResource(HandlerResource):
    """Routes on the whole path by a Klein app's map."""

    def __init__(self, app: Klein) -> None:
        super().__init__()
        self._app = app
        self._map: MapAdapter = app.url_map.bind("kubetwist")
        self._matches: dict[tuple[bytes, str], tuple[Callable[..., Any], dict[str, Any]]] = {}

    def render(self, request: KubeRequest) -> int:
        """Answer, now or later."""
        path = request.info.path
        match = self._matches.get((request.method, path))
        if match is None:
            try:
                match = self._match(request.method, path)
            except APIStatusError as error:
                respond_error(request, error, True)
                return NOT_DONE_YET
        handler, arguments = match
        return self.run(request, handler, arguments)

    def _match(self, method: bytes, path: str) -> tuple[Callable[..., object], dict[str, object]]:
        verb = route_method(method.decode("latin-1"))
        try:
            endpoint, arguments = self._map.match(path.rstrip("/"), verb)
            if "path" in arguments:
                # Trailing slashes are significant for the target of a proxy.
                endpoint, arguments = self._map.match(path, verb)
        except (NotFound, RequestRedirect):
            raise APIStatusError.path_not_found() from None
        except MethodNotAllowed:
            raise APIStatusError.method_not_allowed() from None
        handler = self._handler(endpoint)
        match = (handler, dict(arguments))
        if len(path) <= MAX_CACHED_PATH_LENGTH:
            if len(self._matches) >= MATCH_CACHE_SIZE:
                self._matches.clear()
            self._matches[method, path] = match
        return match

    def _handler(self, endpoint: str) -> Callable[..., object]:
        execute = self._app.execute_endpoint

        def handle(request: KubeRequest, **arguments: object) -> object:
            return execute(endpoint, request, **arguments)

        return handle
