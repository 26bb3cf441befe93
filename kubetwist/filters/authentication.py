"""Authentication filter: sets the user of a request and removes the credentials, or answers 401."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, perf_counter
from typing import Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..api.errors import APIStatusError
from ..api.resource import UserInfo
from ..api.users import UNAUTHENTICATED
from ..authentication.bearer import without_token
from ..authentication.errors import AuthenticationFailed
from ..http.request import HTTP2, Handler, KubeRequest
from ..interfaces import IAuthenticator
from ..logs.ratelimit import RateLimiter

_log = Logger()

#: Requests with bad credentials that are logged individually per second.
LINES_PER_SECOND: Final = 100
_MAX_CACHED_NAMES: Final = 1024
#: Characters of a reason; parts of it may come from clients.
MAX_REASON_LENGTH: Final = 1000


def with_authentication(
    handler: Handler,
    authenticator: IAuthenticator,
    reserved_headers: tuple[frozenset[bytes], tuple[bytes, ...]],
    now: Callable[[], float] = monotonic,
) -> Handler:
    """
    Set C{request.user}, or answer 401.

    @param reserved_headers: Header fields that only authenticators may read: exact names, and name prefixes; see
        C{RequestHeaderConfig.reserved_headers}.
    @param now: Returns the seconds of a monotonic clock.
    """
    authenticate = authenticator.authenticate
    exact, prefixes = reserved_headers
    #: Names of fields that are not reserved; clients use few.
    public: set[bytes] = set()
    refusals = _UnauthorizedHandler(now)
    refuse = refusals.refuse

    def authenticated(request: KubeRequest, user: UserInfo) -> None:
        request.user = user
        request.authenticated_at = perf_counter()
        if request.clientproto == HTTP2 and UNAUTHENTICATED in user.groups:
            _end_connection(request)
        fields = request.fields
        fields.pop(b"authorization", None)
        protocols = fields.get(b"sec-websocket-protocol")
        if protocols is not None:
            fields[b"sec-websocket-protocol"] = without_token(protocols)
        for name in fields:
            if name not in public:
                if is_reserved(name):
                    request.fields = {name: values for name, values in fields.items() if not is_reserved(name)}
                    break
                if len(public) < _MAX_CACHED_NAMES:
                    public.add(name)
        handler(request)

    def is_reserved(name: bytes) -> bool:
        # Gateways replace underscores by dashes.
        dashed = name.replace(b"_", b"-")
        return name in exact or dashed in exact or name.startswith(prefixes) or dashed.startswith(prefixes)

    def authentication(request: KubeRequest) -> None:
        try:
            user = authenticate(request)
        except AuthenticationFailed as error:
            refuse(request, error)
            return
        if type(user) is UserInfo:
            authenticated(request, user)
        elif isinstance(user, Deferred):
            user.addCallbacks(_continue, refusals.failed, callbackArgs=(request,), errbackArgs=(request,))
            user.addErrback(request.handle_failure)
        elif user is None:
            refuse(request, None)
        else:
            authenticated(request, user)

    def _continue(user: UserInfo | None, request: KubeRequest) -> None:
        if request.is_done:
            return
        if user is None:
            refuse(request, None)
        else:
            authenticated(request, user)

    return authentication


def _end_connection(request: KubeRequest) -> None:
    """
    Close a connection of HTTP/2 after a request without credentials.

    A client without credentials cannot use the protocol to send many requests at low cost.

    @see: the feature gate C{UnauthenticatedHTTP2DOSMitigation} of the reference, which is enabled by default.
    """
    request.connection.disable_keep_alive()


class _UnauthorizedHandler:
    """Handler of failed authentication: answers 401 without a reason, and logs the reason within a rate limit."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._limiter = RateLimiter(self._report, LINES_PER_SECOND)

    def _report(self, count: int) -> None:
        _log.warn("rate limit: {count} requests with bad credentials were not logged", count=count)

    def failed(self, failure: Failure, request: KubeRequest) -> None:
        failure.trap(AuthenticationFailed)
        self.refuse(request, failure.value)

    def refuse(self, request: KubeRequest, error: BaseException | None) -> None:
        if error is not None and self._limiter.allow(self._now()):
            reason = str(error)[:MAX_REASON_LENGTH]
            if not reason.isprintable():
                reason = "".join(one if one.isprintable() else " " for one in reason)
            _log.info(
                "unable to authenticate a request ({audit_id}): {reason}", reason=reason, audit_id=request.audit_id
            )
        if request.clientproto == HTTP2:
            _end_connection(request)
        request.fail(APIStatusError.unauthorized())
