"""
Signing in and out, at C{/ui/session}: in front of the filters, as nobody is known yet who asks for it.

The audit is told of it as of any request that is about no object: of who signs in or out, of tokens that nobody knows,
and of what is none of the page's. Neither the token nor the key of a session is ever told.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import orjson

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from ..api.errors import APIStatusError
from ..api.resource import UserInfo
from ..authentication.sessions import (
    KEY,
    LONGEST,
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

SESSION: Final = b"/ui/session"
#: Bytes of the body of who signs in; tokens may be 64 kB long.
_LONGEST_BODY: Final = 80 * 1024


class SigningIn:
    """
    Answers who signs in and out.

    @ivar answer: Answers a request, now or later.
    """

    _log = Logger()

    def __init__(self, authenticator: SessionAuthenticator, auditor: Auditor | None) -> None:
        """
        @param auditor: Told of it, if there is one.
        """
        self._sessions = authenticator.sessions
        self._links = authenticator.links
        self._cookie = authenticator.cookie
        self._user_of_token = authenticator.authenticate_token
        self._auditor = auditor
        self.answer: Handler = with_audit_id(with_panic_recovery(with_request_info(self._answer)))

    def _answer(self, request: KubeRequest) -> None:
        request.setHeader(b"Cache-Control", b"no-store")
        try:
            # No page of another site gets anybody signed in, or out.
            if request.header(KEY) is None or not from_same_origin(request):
                raise APIStatusError.bad_request("this is for the page at /ui")
            if request.method == b"POST":
                self._sign_in(request)
            elif request.method == b"DELETE":
                self._sign_out(request)
            else:
                request.setHeader(b"Allow", b"POST, DELETE")
                raise APIStatusError.method_not_allowed()
        except APIStatusError as error:
            request.fail(error)

    def _sign_in(self, request: KubeRequest) -> None:
        kind, secret = _credential_in(request)
        token = secret if kind == "token" else ""

        def begin(user: UserInfo, request: KubeRequest) -> None:
            cookie, key = self._sessions.begin(token, user)
            self._set_cookie(request, cookie.encode(), int(LONGEST))
            self._log.info("{user} signed in to the page with a {kind}", user=user.name, kind=kind)
            answer = {"user": {"username": user.name, "groups": list(user.groups)}, "key": key}
            request.respond(201, orjson.dumps(answer), b"application/json")

        def refuse(request: KubeRequest) -> None:
            request.fail(APIStatusError.unauthorized())

        if kind == "link":
            user = self._links.redeem(secret, request)
            if user is None:
                refuse(request)
            else:
                self._audited(begin, user, request)
        else:
            self._when_known(token, request, begin, refuse)

    def _sign_out(self, request: KubeRequest) -> None:
        key = request.header(KEY) or b""
        secret = pop_cookie(dict(request.fields), self._cookie())
        session = None if secret is None else self._sessions.find(secret, key)
        if secret is None or session is None:
            # There is none, or no more: what is left of it goes, and nobody is there to tell of.
            self._forget_cookie(request)
            return

        def end(user: UserInfo, request: KubeRequest) -> None:
            self._sessions.end(secret, key)
            self._forget_cookie(request)

        # Users whose token is no longer valid may sign out, too.
        as_at_sign_in = partial(self._audited, end, session.user)
        if session.token:
            self._when_known(session.token, request, end, as_at_sign_in)
        else:
            as_at_sign_in(request)

    def _when_known(
        self, token: str, request: KubeRequest, known: Callable[[UserInfo, KubeRequest], None], unknown: Handler
    ) -> None:
        """Find out whose the token is, and go on."""

        def go_on(found: TokenAuthentication) -> None:
            if request.over:
                return
            if found.user is None:
                unknown(request)
            else:
                self._audited(known, found.user, request)

        found = self._user_of_token(token)
        if isinstance(found, Deferred):
            found.addCallback(go_on).addErrback(request.crashed)
        else:
            go_on(found)

    def _audited(self, act: Callable[[UserInfo, KubeRequest], None], user: UserInfo, request: KubeRequest) -> None:
        """Tell the audit that a user does it, and do it."""
        request.user = user
        handler = partial(act, user)
        (handler if self._auditor is None else with_audit(handler, self._auditor))(request)

    def _forget_cookie(self, request: KubeRequest) -> None:
        self._set_cookie(request, b"", 0)
        request.respond(204, b"", b"")

    def _set_cookie(self, request: KubeRequest, value: bytes, seconds: int) -> None:
        cookie = b"%b=%b; Path=/; Max-Age=%d; Secure; HttpOnly; SameSite=Strict" % (self._cookie(), value, seconds)
        request.setHeader(b"Set-Cookie", cookie)


def _credential_in(request: KubeRequest) -> tuple[str, str]:
    """
    Return the credential in the body: C{("token", token)} or C{("link", secret)}.

    @raise APIStatusError: There is none, or both.
    """
    body = request.read_body()
    if len(body) > _LONGEST_BODY:
        raise APIStatusError.too_large(f"Request entity too large: limit is {_LONGEST_BODY}")
    if (request.header(b"content-type") or b"").partition(b";")[0].strip() != b"application/json":
        raise APIStatusError.bad_request("the body must be application/json")
    try:
        ((kind, secret),) = orjson.loads(body).items()
    except (ValueError, AttributeError):
        kind = secret = None
    if kind not in ("token", "link") or not isinstance(secret, str) or not secret.strip() or not secret.isprintable():
        raise APIStatusError.bad_request('the body must be {"token": "..."} or {"link": "..."}')
    return kind, secret.strip()
