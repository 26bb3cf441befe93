"""
Pages of pods and services in the browser, at C{/ui/proxy/TICKET/}.

The page of the UI gets a ticket for one target with a POST to C{/ui/proxy}. A request with a ticket becomes a request
to the proxy of the API, as the user of the session, and with the same filters: authorization, audit and limits. Its
other credentials are removed. The response is sandboxed, so that its scripts run in an opaque origin: they reach
neither the session nor the storage of the page, and their requests have no cookies. See decision 42.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

import orjson

from ..api.errors import APIStatusError
from ..authentication.proxytickets import is_target
from ..authentication.sessions import CSRF_HEADER, SessionAuthenticator, from_same_origin, pop_cookie
from ..filters.auditid import with_audit_id
from ..filters.panicrecovery import with_panic_recovery
from ..http.request import Handler, KubeRequest
from .session import continue_with

if TYPE_CHECKING:
    from ..authentication.sessions import Session

#: The path at which tickets are issued, and below which they are used.
PROXY: Final = b"/ui/proxy"
#: Fields of a request that must not reach the API or the backend: credentials, and the browser's view of the origin.
_REMOVED: Final = (b"authorization", b"cookie", CSRF_HEADER, b"origin", b"referer")
_REMOVED_PREFIXES: Final = (b"impersonate-", b"sec-fetch-")
_EXPIRED: Final = "This address has expired. Open it again from the page of the service or pod.\n"


class ProxyEndpoint:
    """
    Issues tickets and forwards requests that have one.

    @ivar issue: The handler of requests for tickets.
    @ivar open: The handler of requests with a ticket.
    """

    def __init__(self, authenticator: SessionAuthenticator, handler: Handler) -> None:
        """
        @param authenticator: Has the sessions and the tickets.
        @param handler: Handles the requests to the API.
        """
        self._authenticator = authenticator
        self._tickets = authenticator.tickets
        self._handler = handler
        self.issue: Handler = with_audit_id(with_panic_recovery(self._issue))
        self.open: Handler = self._open

    def _issue(self, request: KubeRequest) -> None:
        request.setHeader(b"Cache-Control", b"no-store")
        key = request.header(CSRF_HEADER)
        session_id = pop_cookie(dict(request.fields), self._authenticator.cookie())
        try:
            if request.method != b"POST":
                request.setHeader(b"Allow", b"POST")
                raise APIStatusError.method_not_allowed()
            if key is None or not from_same_origin(request):
                raise APIStatusError.bad_request("this endpoint accepts requests of the page at /ui only")
            target = _read_target(request)
            if session_id is None:
                raise APIStatusError.unauthorized()
        except APIStatusError as error:
            request.fail(error)
            return

        def issued(ticket: str | None) -> None:
            if ticket is None:
                request.fail(APIStatusError.unauthorized())
            else:
                request.respond(201, orjson.dumps({"path": f"{PROXY.decode()}/{ticket}/"}), b"application/json")

        continue_with(self._tickets.issue(session_id, key, target), issued, request)

    def _open(self, request: KubeRequest) -> None:
        secret, slash, rest = request.uri[len(PROXY) + 1 :].partition(b"/")
        if not slash or _leaves(rest):
            _refuse(request)
            return
        found = self._tickets.find(secret)
        continue_with(found, partial(self._forward, request, PROXY + b"/" + secret, rest), request)

    def _forward(self, request: KubeRequest, shown: bytes, rest: bytes, found: tuple[Session, str] | None) -> None:
        if found is None:
            _refuse(request)
            return
        session, target = found
        fields = request.fields
        # Requests of an opaque origin are cross-origin ones. They have no credentials but the ticket.
        request.setHeader(b"Access-Control-Allow-Origin", b"*")
        request.setHeader(b"Referrer-Policy", b"no-referrer")
        if request.method == b"OPTIONS" and b"access-control-request-method" in fields:
            request.setHeader(b"Access-Control-Allow-Methods", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
            request.setHeader(b"Access-Control-Allow-Headers", request.header(b"access-control-request-headers") or b"")
            request.setHeader(b"Access-Control-Max-Age", b"600")
            request.respond(204, b"", b"")
            return
        for name in [name for name in fields if name in _REMOVED or name.startswith(_REMOVED_PREFIXES)]:
            del fields[name]
        request.shown_prefix = shown
        request.uri = target.encode() + rest
        request.path = request.uri.partition(b"?")[0]
        self._authenticator.assign(request, session)
        self._handler(request)


def _leaves(rest: bytes) -> bool:
    """Return whether a part of a path is a dot segment, which a later parser could resolve to another target."""
    parts = re.split(rb"[/\\]", unquote_to_bytes(rest.partition(b"?")[0]))
    return b"." in parts or b".." in parts


def _refuse(request: KubeRequest) -> None:
    request.setHeader(b"Cache-Control", b"no-store")
    request.respond_text(404, _EXPIRED)


def _read_target(request: KubeRequest) -> str:
    """
    Return the path in the body.

    @raise APIStatusError: There is none, or it is not the proxy of a port.
    """
    try:
        target = orjson.loads(request.read_body())["path"]
    except (ValueError, TypeError, KeyError):
        target = None
    if not isinstance(target, str) or not is_target(target):
        raise APIStatusError.bad_request('the body must be {"path": "..."} with the path of a port\'s proxy')
    return target
