"""
Klein apps as parts of a server of the chain.

Klein's own resource builds several objects for each request, which costs about as much as all the rest of a small GET.
Here the route of a method and path is found once and cached, and a handler that answers synchronously needs no
Deferred. The map of the Klein app remains the only source of routes, and Klein calls the handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextvars import copy_context
from functools import wraps
from inspect import iscoroutinefunction, unwrap
from typing import Any, Final

from werkzeug.routing import Map, MapAdapter, Rule, RuleFactory

from klein import Klein
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer

from ..api.errors import APIStatusError, clear_frames
from ..http.request import KubeRequest
from ..http.responses import respond_error, respond_status
from ..storage.errors import OutcomeUnknown, StorageUnavailable
from .routetree import CONVERTERS, Found, MethodNotAllowed, RouteTree

#: Maximum number of cached routes per app; the cache is cleared above that.
ROUTE_CACHE_SIZE = 16384
#: Longer methods and paths are not cached, so that a client cannot fill the memory.
MAX_CACHED_LENGTH = 256
#: HEAD in routes: werkzeug routes HEAD to every GET handler; the reference supports HEAD only on some paths. No client
#: can send this method, since it contains a space.
_HEAD: Final = "HEAD ALONE"

Handler = Callable[..., Any]
#: Answers a request whose method is not allowed; the second argument has the allowed methods, sorted.
Refuse = Callable[[KubeRequest, list[str]], object]
_log = Logger()


def new_app() -> Klein:
    """Return a Klein app without routes; it does not skip empty segments."""
    app = Klein()
    app._url_map = _UncompiledMap(merge_slashes=False)
    app.url_map.converters.update(CONVERTERS)
    return app


class _UncompiledMap(Map):
    """
    A map that compiles its rules when werkzeug matches paths or builds URLs by them.

    L{RouteTree} needs neither. For each rule werkzeug generates regular expressions and compiles two functions that
    build URLs, which takes 0.3 ms.
    """

    def __init__(self, **options: Any) -> None:
        self._added: list[Rule] = []
        self._compiled = 0
        super().__init__(**options)

    def add(self, rulefactory: RuleFactory) -> None:
        """Add rules."""
        self._added.extend(rulefactory.get_rules(self))

    def iter_rules(self, endpoint: Any = None) -> Iterator[Rule]:
        """Return the rules in the order of their registration."""
        return (rule for rule in self._added if endpoint is None or rule.endpoint == endpoint)

    def bind(self, *arguments: Any, **options: Any) -> MapAdapter:
        """Return what matches paths and builds URLs."""
        for rule in self._added[self._compiled :]:
            super().add(rule)
        self._compiled = len(self._added)
        return super().bind(*arguments, **options)


def add_route(
    app: Klein, methods: str | Iterable[str] | None, path: str, handler: Handler, *, slashes: bool = True
) -> None:
    """
    Register a route with a Klein app.

    A handler returns L{None} after it has answered, the body of the response, or a Deferred. It may raise an
    L{APIStatusError}.

    @param app: The app.
    @param methods: The HTTP methods; L{None} for any.
    @param path: The pattern of the path, from the root of the server.
    @param handler: Called with the request and the named segments of the path.
    @param slashes: Whether the path may have any number of trailing slashes, or only as many as the pattern.
    """
    if isinstance(methods, str):
        methods = (methods,)
    methods = None if methods is None else tuple(methods)
    if methods is not None and "GET" not in methods and iscoroutinefunction(handler):
        handler = run_to_the_end(handler)
    name = "any method" if methods is None else " ".join(methods)
    routed = None if methods is None else [_HEAD if method == "HEAD" else method for method in methods]
    app.route(path, methods=routed, endpoint=f"{name} {path}", strict_slashes=not slashes)(handler)


def handle_failure(request: KubeRequest, failure: Failure) -> None:
    """
    Answer a request whose handler has failed.

    An L{APIStatusError} becomes its Status. Unavailable storage becomes a 500 with its message, as in kube-apiserver.
    Any other exception is a bug: it is logged, and answered with a 500 without details.
    """
    error = failure.value
    if isinstance(error, CancelledError):
        clear_frames(error)
    elif isinstance(error, APIStatusError):
        respond_error(request, error, True)
    elif isinstance(error, (StorageUnavailable, OutcomeUnknown)):
        clear_frames(error)
        respond_error(request, APIStatusError.unknown(error.client_message), True)
    else:
        _handle_bug(request, failure)


def _handle_bug(request: KubeRequest, failure: Failure) -> None:
    _log.failure(
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


def run_to_the_end(handler: Handler) -> Handler:
    """
    Return a function that runs the coroutines of a handler, which are not cancelled.

    A Deferred and its callbacks for each request would cost several times as much.
    """

    @wraps(handler)
    def run(request: KubeRequest, **named: str) -> None:
        RunningHandler(request, handler(request, **named)).resume(None)

    return run


class RunningHandler:
    """The coroutine of a handler."""

    __slots__ = ("_coroutine", "_request", "_run")

    def __init__(self, request: KubeRequest, coroutine: Coroutine[Any, Any, object]) -> None:
        self._request = request
        self._coroutine = coroutine
        self._run = copy_context().run

    def resume(self, result: object) -> None:
        """
        Run until the coroutine waits for another Deferred; at its end, answer if it has failed.

        @param result: The result of the Deferred for which it has waited.
        """
        try:
            if isinstance(result, Failure):
                awaited: Deferred[object] = self._run(result.throwExceptionIntoGenerator, self._coroutine)
            else:
                awaited = self._run(self._coroutine.send, result)
        except StopIteration:
            pass
        except BaseException:
            handle_failure(self._request, Failure())
        else:
            # A coroutine does not wait for Deferreds that have fired.
            awaited.addBoth(self.resume)


def path_not_found(request: KubeRequest, **named: str) -> None:
    """Answer an unknown path with a 404 Status."""
    raise APIStatusError.path_not_found()


def refuse_method(request: KubeRequest, allowed: list[str]) -> None:
    """Answer a request whose method its path does not support."""
    raise APIStatusError.method_not_allowed()


@implementer(IResource)
class Route:
    """
    The handler of one method and path, with its arguments; Twisted's traversal of resources ends here.

    @ivar rule: The pattern of the path; C{""} if the method is not allowed.
    """

    __slots__ = ("_arguments", "_execute", "rule")

    isLeaf = True

    def __init__(self, execute: Handler, rule: str, arguments: dict[str, Any]) -> None:
        """
        @param execute: Klein's wrapper of the handler; its first argument is the instance of a bound app.
        @param rule: The pattern of the path.
        @param arguments: The named segments of the path.
        """
        self._execute = execute
        self._arguments = arguments
        self.rule = rule

    @property
    def handler_name(self) -> str:
        """Return the name of the handler: C{"ReadHandlers.get"}."""
        return str(unwrap(self._execute).__qualname__)

    def render(self, request: KubeRequest) -> bytes | int:
        """Call the handler, and respond with its error if it fails, now or later."""
        try:
            result = self._execute(None, request, **self._arguments)
        except APIStatusError as error:
            respond_error(request, error, True)
            return NOT_DONE_YET
        except Exception:
            handle_failure(request, Failure())
            return NOT_DONE_YET
        if isinstance(result, Deferred):
            self._handle_deferred(result, request)
        elif isinstance(result, bytes):
            return result
        return NOT_DONE_YET

    def _handle_deferred(self, result: Deferred[object], request: KubeRequest) -> None:
        """
        Wait for a handler; cancel it when the client disconnects.

        Writes are not cancelled: they may be in storage already, and the steps after them must run then.
        """
        if request.method == b"GET" and (not result.called or result.paused):
            request.notifyFinish().addErrback(lambda reason: result.cancel())
        result.addErrback(lambda failure: handle_failure(request, failure))

    def getChildWithDefault(self, name: bytes, request: IRequest) -> IResource:
        """Reject the lookup of a child, as a leaf has none."""
        raise NotImplementedError

    def putChild(self, path: bytes, child: IResource) -> None:
        """Reject a child, as a leaf has none."""
        raise NotImplementedError


class RoutedApp:
    """A Klein app, created at its first request, with a cache of the routes of paths."""

    def __init__(self, make: Callable[[], Klein], refuse: Refuse = refuse_method) -> None:
        """
        @param make: Creates the app, see L{new_app}.
        @param refuse: Answers requests whose method is not allowed.
        """
        self._make = make
        self._refuse = refuse
        self._app: Klein | None = None
        self._tree: RouteTree | None = None
        self._routes: dict[tuple[bytes, bytes], Route] = {}

    @property
    def app(self) -> Klein:
        """Return the Klein app."""
        if self._app is None:
            self._app = self._make()
        return self._app

    def find(self, request: KubeRequest) -> Route | None:
        """Return the route of a request whose C{postpath} has the segments of the path; L{None} if there is none."""
        key = (request.method, request.path)
        route = self._routes.get(key)
        if route is not None:
            return route
        try:
            found = self._match(request)
        except MethodNotAllowed as error:
            # werkzeug adds HEAD to all routes of GET.
            return self._refusal(sorted("HEAD" if one == _HEAD else one for one in error.allowed - {"HEAD"}))
        if found is None:
            return None
        route = Route(self.app.endpoints[found.endpoint], found.rule, found.arguments)
        if len(request.method) + len(request.path) <= MAX_CACHED_LENGTH:
            if len(self._routes) >= ROUTE_CACHE_SIZE:
                self._routes.clear()
            self._routes[key] = route
        return route

    def _match(self, request: KubeRequest) -> Found | None:
        if self._tree is None:
            self._tree = RouteTree(self.app.url_map)
        method = request.method.decode("latin-1")
        segments = [segment.decode("utf-8", "replace") for segment in request.postpath]
        return self._tree.find(_HEAD if method == "HEAD" else method, segments)

    def _refusal(self, allowed: list[str]) -> Route:
        refuse = self._refuse

        @wraps(refuse)
        def execute(instance: None, request: KubeRequest) -> object:
            request.setHeader(b"allow", ", ".join(allowed).encode("latin-1"))
            return refuse(request, allowed)

        return Route(execute, "", {})
