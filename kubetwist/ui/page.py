"""
What answers below C{/ui}.

It stands in front of the filters: whoever is not signed in yet must get the page. Nothing here tells of any object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import orjson

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from ..api.errors import APIStatusError
from ..authentication.sessions import KEY, LONGEST, SessionAuthenticator, from_same_origin, take_cookie
from ..authentication.union import TokenFinding
from .assets import Asset, Assets, read_assets

if TYPE_CHECKING:
    from ..server.site import Handler, KubeRequest

PATH: Final = b"/ui"
SESSION: Final = b"/ui/session"
#: Bytes of the body of who signs in; tokens may be 64 kB long.
_LONGEST_BODY: Final = 80 * 1024
_FOR_EVER: Final = b"public, max-age=31536000, immutable"
#: For everything below C{/ui}. Scripts, styles and answers come from this server alone; nothing that is in a page or
#: put in by a script is taken for a script or for HTML.
POLICY: Final = (
    b"default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self';"
    b" object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; frame-src 'none';"
    b" worker-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS: Final = (
    (b"Content-Security-Policy", POLICY),
    (b"X-Content-Type-Options", b"nosniff"),
    (b"X-Frame-Options", b"DENY"),
    (b"Referrer-Policy", b"no-referrer"),
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (b"Cross-Origin-Resource-Policy", b"same-origin"),
    (b"Permissions-Policy", b"camera=(), geolocation=(), microphone=()"),
)


def with_page(handler: Handler, page: Page) -> Handler:
    """Have C{page} answer below C{/ui}, and C{handler} all else."""
    answer = page.answer

    def front(request: KubeRequest) -> None:
        if request.uri.startswith(PATH) and _is_below(request.path):
            answer(request)
        else:
            handler(request)

    return front


def _is_below(path: bytes) -> bool:
    return path == PATH or path.startswith(b"/ui/")


class Page:
    """Answers what comes for the page."""

    _log = Logger()

    def __init__(
        self,
        authenticator: SessionAuthenticator,
        reactor: Any,
        read: Callable[[], Assets] = read_assets,
    ) -> None:
        """
        @param read: Called in a thread, when the page is first asked for.
        """
        self._sessions = authenticator.sessions
        self._cookie = authenticator.cookie
        self._user_of_token = authenticator.user_of_token
        self._reactor = reactor
        self._read = read
        self._assets: Assets | None = None

    def answer(self, request: KubeRequest) -> None:
        """Answer it, now or when the files are read."""
        for name, value in _HEADERS:
            request.setHeader(name, value)
        if request.path == SESSION:
            self._answer_session(request)
        elif request.method not in (b"GET", b"HEAD"):
            request.setHeader(b"Allow", b"GET, HEAD")
            request.respond_text(405, "405 method not allowed\n")
        elif request.path == PATH:
            request.setHeader(b"Location", b"/ui/")
            request.respond_text(308, "")
        elif self._assets is not None:
            self._answer_file(request, self._assets)
        else:
            reading = Deferred.fromCoroutine(self._read_files())
            reading.addCallback(lambda assets: self._answer_file(request, assets)).addErrback(request.crashed)

    # Files.

    async def _read_files(self) -> Assets:
        read = await deferToThreadPool(self._reactor, self._reactor.getThreadPool(), self._read)
        self._assets = read
        return read

    def _answer_file(self, request: KubeRequest, assets: Assets) -> None:
        if request.path == b"/ui/":
            request.setHeader(b"Cache-Control", b"no-cache")
            self._send(request, assets.page)
            return
        folder, _, name = request.path[len(PATH) + 1 :].decode("latin-1").partition("/")
        found = assets.files.get(name) if folder == assets.folder else None
        if found is None:
            request.setHeader(b"Cache-Control", b"no-store")
            request.respond_text(404, "404 page not found\n")
            return
        request.setHeader(b"Cache-Control", _FOR_EVER)
        self._send(request, found)

    def _send(self, request: KubeRequest, asset: Asset) -> None:
        request.setHeader(b"ETag", asset.tag)
        request.setHeader(b"Vary", b"Accept-Encoding")
        known = request.header(b"if-none-match")
        if known is not None and asset.tag in known:
            request.respond(304, b"", b"")
            return
        body = asset.content
        accepted = request.header(b"accept-encoding") or b""
        if any(one.partition(b";")[0].strip() == b"gzip" for one in accepted.split(b",")):
            request.setHeader(b"Content-Encoding", b"gzip")
            body = asset.packed
        request.respond(200, body, asset.media_type)

    # Sessions.

    def _answer_session(self, request: KubeRequest) -> None:
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
        body = request.read_body()
        if len(body) > _LONGEST_BODY:
            raise APIStatusError.too_large(f"Request entity too large: limit is {_LONGEST_BODY}")
        if (request.header(b"content-type") or b"").partition(b";")[0].strip() != b"application/json":
            raise APIStatusError.bad_request("the body must be application/json")
        try:
            given = orjson.loads(body)
            token = given["token"]
        except (ValueError, KeyError, TypeError):
            token = None
        if not isinstance(token, str) or not token.strip() or not token.isprintable():
            raise APIStatusError.bad_request('the body must be {"token": "..."}')
        token = token.strip()
        found = self._user_of_token(token)
        if isinstance(found, Deferred):
            found.addCallback(self._signed_in, token, request).addErrback(request.crashed)
        else:
            self._signed_in(found, token, request)

    def _signed_in(self, found: TokenFinding, token: str, request: KubeRequest) -> None:
        if found.user is None:
            request.fail(APIStatusError.unauthorized())
            return
        secret, key = self._sessions.begin(token, found.user.name)
        self._set_cookie(request, secret.encode(), int(LONGEST))
        self._log.info("{user} has signed in to the page", user=found.user.name)
        answer = {"user": {"username": found.user.name, "groups": list(found.user.groups)}, "key": key}
        request.respond(201, orjson.dumps(answer), b"application/json")

    def _sign_out(self, request: KubeRequest) -> None:
        secret = take_cookie(dict(request.fields), self._cookie())
        if secret is not None:
            self._sessions.end(secret, request.header(KEY) or b"")
        self._set_cookie(request, b"", 0)
        request.respond(204, b"", b"")

    def _set_cookie(self, request: KubeRequest, value: bytes, seconds: int) -> None:
        cookie = b"%b=%b; Path=/; Max-Age=%d; Secure; HttpOnly; SameSite=Strict" % (self._cookie(), value, seconds)
        request.setHeader(b"Set-Cookie", cookie)
