"""
Sign-in, sign-out, and the end of a session of the page, at C{/ui/session}.

It precedes the filters, as the user is not authenticated yet.

Sign-in and sign-out are audited as non-resource requests. Tokens and session keys are never part of audit events.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import orjson

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from ..api.errors import APIStatusError
from ..api.resource import UserInfo
from ..authentication.sessions import (
    CSRF_HEADER,
    SESSION_TIMEOUT,
    Session,
    SessionAuthenticator,
    from_same_origin,
    pop_cookie,
)
from ..authentication.union import TokenAuthentication
from ..filters.audit import with_audit
from ..filters.auditid import with_audit_id
from ..filters.panicrecovery import with_panic_recovery
from ..filters.requestinfo import with_request_info
from ..http.request import (
    Handler,
    KubeRequest,
)

if TYPE_CHECKING:
    from ..audit.auditor import Auditor
    from ..authentication.oidcsignin import OIDCSignIn

T = TypeVar("T")

SESSION: Final = b"/ui/session"
#: Maximum bytes of the body; tokens may be 64 kB long.
_MAX_BODY_SIZE: Final = 80 * 1024


class SessionEndpoint:
    """
    Handles sign-in (POST) and sign-out (DELETE), and reports when the session ends (GET).

    @ivar answer: The request handler.
    """

    _log = Logger()

    def __init__(self, authenticator: SessionAuthenticator, auditor: Auditor | None) -> None:
        """
        @param authenticator: Has the sessions and the sign-in links.
        @param auditor: Audits the requests; L{None} without audit.
        """
        self._sessions = authenticator.sessions
        self._links = authenticator.links
        self._cookie = authenticator.cookie
        self._authenticate_token = authenticator.authenticate_token
        self._oidc = authenticator.oidc
        self._auditor = auditor
        self.answer: Handler = with_audit_id(with_panic_recovery(with_request_info(self._answer)))

    def _answer(self, request: KubeRequest) -> None:
        request.setHeader(b"Cache-Control", b"no-store")
        try:
            # Pages of other origins must not sign users in or out.
            if request.header(CSRF_HEADER) is None or not from_same_origin(request):
                raise APIStatusError.bad_request("this endpoint accepts requests of the page at /ui only")
            if request.method == b"POST":
                self._sign_in(request)
            elif request.method == b"DELETE":
                self._sign_out(request)
            elif request.method == b"GET":
                self._report_end(request)
            else:
                request.setHeader(b"Allow", b"GET, POST, DELETE")
                raise APIStatusError.method_not_allowed()
        except APIStatusError as error:
            request.fail(error)

    def _sign_in(self, request: KubeRequest) -> None:
        kind, secret = _read_credential(request)
        if kind != "oidc":
            self._sign_in_with(kind, secret, request)
        elif self._oidc is None:
            raise APIStatusError.bad_request("OpenID Connect is not configured for /ui")
        else:
            redeeming = Deferred.fromCoroutine(self._redeem(self._oidc, secret, request))
            redeeming.addErrback(request.handle_failure)

    async def _redeem(self, oidc: OIDCSignIn, query: str, request: KubeRequest) -> None:
        """
        Begin a session with the response of a provider.

        @param query: The parameters of the response.
        """
        # Imported late: most servers have no provider.
        from ..authentication.oidcclient import SignInFailed

        binding = pop_cookie(dict(request.fields), oidc.cookie()) or b""
        # A response can be used once.
        add_cookie(request, oidc.cookie(), b"", 0)
        try:
            tokens = await oidc.redeem(binding.decode("latin-1"), request, query)
        except SignInFailed as error:
            if not request.is_done:
                request.fail(APIStatusError.unauthorized(str(error)))
            return
        if not request.is_done:
            self._sign_in_with("oidc", tokens.id_token, request, tokens.refresh_token)

    def _sign_in_with(self, kind: str, secret: str, request: KubeRequest, refresh_token: str = "") -> None:
        """
        Begin a session with a credential.

        @param kind: C{"token"}, C{"link"} or C{"oidc"}, for an ID token.
        """
        token = "" if kind == "link" else secret

        def begin(user: UserInfo, request: KubeRequest) -> None:
            def begun(secrets: tuple[str, str]) -> None:
                cookie, key = secrets
                self._end_previous(request)
                self._set_cookie(request, cookie.encode(), int(SESSION_TIMEOUT))
                self._log.info(
                    "signed in to /ui: user={user} credential={kind} audit-id={audit_id}",
                    user=user.name,
                    kind=kind,
                    audit_id=request.audit_id,
                )
                answer = {"user": {"username": user.name, "groups": list(user.groups)}, "key": key}
                request.respond(201, orjson.dumps(answer), b"application/json")

            continue_with(self._sessions.begin(token, user, refresh_token), begun, request)

        def reject(request: KubeRequest) -> None:
            text = "Unauthorized" if kind != "oidc" else "the server does not accept the ID token of the provider"
            request.fail(APIStatusError.unauthorized(text))

        def redeemed(user: UserInfo | None) -> None:
            if user is None:
                reject(request)
            else:
                self._run_audited(begin, user, request)

        if kind == "link":
            continue_with(self._links.redeem(secret, request), redeemed, request)
        else:
            self._authenticate_then(token, request, begin, reject)

    def _end_previous(self, request: KubeRequest) -> None:
        """End the session with which a sign-in was sent, if there is one."""
        secret = pop_cookie(dict(request.fields), self._cookie())
        if secret is None:
            return
        ending = self._sessions.end(secret, request.header(CSRF_HEADER) or b"")
        if ending is not None:
            ending.addErrback(lambda failure: self._log.failure("ending a session failed", failure))

    def _report_end(self, request: KubeRequest) -> None:
        """Answer with the seconds until the session ends, independent of the clock of the browser."""
        secret = pop_cookie(dict(request.fields), self._cookie())

        def report(remaining: float | None) -> None:
            if remaining is None:
                request.fail(APIStatusError.unauthorized())
            else:
                request.respond(200, orjson.dumps({"secondsLeft": int(remaining)}), b"application/json")

        if secret is None:
            report(None)
        else:
            continue_with(self._sessions.remaining(secret, request.header(CSRF_HEADER) or b""), report, request)

    def _sign_out(self, request: KubeRequest) -> None:
        key = request.header(CSRF_HEADER) or b""
        secret = pop_cookie(dict(request.fields), self._cookie())

        def end(user: UserInfo, request: KubeRequest) -> None:
            assert secret is not None
            continue_with(self._sessions.end(secret, key), lambda _: self._clear_cookie(request), request)

        def found(session: Session | None) -> None:
            if session is None:
                # There is no session: remove the cookie, without an audit event.
                self._clear_cookie(request)
                return
            # Users whose token is no longer valid may sign out, too.
            end_as_session_user = partial(self._run_audited, end, session.user)
            if session.token:
                self._authenticate_then(session.token, request, end, end_as_session_user)
            else:
                end_as_session_user(request)

        if secret is None:
            found(None)
        else:
            continue_with(self._sessions.find(secret, key), found, request)

    def _authenticate_then(
        self, token: str, request: KubeRequest, on_user: Callable[[UserInfo, KubeRequest], None], on_unknown: Handler
    ) -> None:
        """
        Authenticate a token.

        @param token: The bearer token.
        @param request: The request of the page.
        @param on_user: Called with the user of a valid token.
        @param on_unknown: Called if the token is not valid.
        """

        def authenticated(found: TokenAuthentication) -> None:
            if request.is_done:
                return
            if found.user is None:
                on_unknown(request)
            else:
                self._run_audited(on_user, found.user, request)

        found = self._authenticate_token(token)
        if isinstance(found, Deferred):
            found.addCallback(authenticated).addErrback(request.handle_failure)
        else:
            authenticated(found)

    def _run_audited(self, act: Callable[[UserInfo, KubeRequest], None], user: UserInfo, request: KubeRequest) -> None:
        """Run an action of a user with audit."""
        request.user = user
        handler = partial(act, user)
        (handler if self._auditor is None else with_audit(handler, self._auditor))(request)

    def _clear_cookie(self, request: KubeRequest) -> None:
        self._set_cookie(request, b"", 0)
        request.respond(204, b"", b"")

    def _set_cookie(self, request: KubeRequest, value: bytes, seconds: int) -> None:
        add_cookie(request, self._cookie(), value, seconds)


def continue_with(result: T | Deferred[T], use: Callable[[T], object], request: KubeRequest) -> None:
    """Continue a request with a result, which another process may have to send."""
    if not isinstance(result, Deferred):
        use(result)
        return

    def received(value: T) -> None:
        if not request.is_done:
            use(value)

    result.addCallback(received).addErrback(request.handle_failure)


def _read_credential(request: KubeRequest) -> tuple[str, str]:
    """
    Return the credential in the body: C{("token", token)}, C{("link", secret)} or C{("oidc", parameters)}.

    @raise APIStatusError: There is none, or more than one.
    """
    body = request.read_body()
    if len(body) > _MAX_BODY_SIZE:
        raise APIStatusError.too_large(f"Request entity too large: limit is {_MAX_BODY_SIZE}")
    if (request.header(b"content-type") or b"").partition(b";")[0].strip() != b"application/json":
        raise APIStatusError.bad_request("the body must be application/json")
    try:
        ((kind, secret),) = orjson.loads(body).items()
    except (ValueError, AttributeError):
        kind = secret = None
    if (
        kind not in ("token", "link", "oidc")
        or not isinstance(secret, str)
        or not secret.strip()
        or not secret.isprintable()
    ):
        raise APIStatusError.bad_request('the body must be {"token": "..."}, {"link": "..."} or {"oidc": "..."}')
    return kind, secret.strip()


def add_cookie(request: KubeRequest, name: bytes, value: bytes, seconds: int) -> None:
    """
    Set a cookie that is sent to this server only, with requests of its pages.

    @param seconds: The lifetime; 0 removes the cookie.
    """
    cookie = b"%b=%b; Path=/; Max-Age=%d; Secure; HttpOnly; SameSite=Strict" % (name, value, seconds)
    request.responseHeaders.addRawHeader(b"Set-Cookie", cookie)
