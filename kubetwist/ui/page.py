"""
Serve C{/ui} and C{/swagger-ui}, and redirect browsers from C{/} to the former.

These resources precede the filters, since users without a session must get the page. They contain no data of objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool

from ..authentication.sessions import SessionAuthenticator
from ..authentication.signinlinks import SIGN_IN_LINKS
from ..filters.authorization import HISTORY
from ..http.request import Handler, KubeRequest
from .proxied import PROXY, ProxyEndpoint
from .session import (
    SESSION,
    SessionEndpoint,
)

if TYPE_CHECKING:
    from ..audit.auditor import Auditor
    from ..interfaces import IServerReactor
    from .assets import Asset, Assets

PATH: Final = b"/ui"
SWAGGER_PATH: Final = b"/swagger-ui"
_PATHS: Final = (PATH, SWAGGER_PATH)
_WITH_TICKET: Final = PROXY + b"/"
_CACHE_IMMUTABLE: Final = b"public, max-age=31536000, immutable"
_POLICY: Final = (
    b"default-src 'self'; script-src 'self'; style-src 'self'; img-src %b; font-src 'self'; connect-src 'self';"
    b" object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; frame-src 'none';"
    b" worker-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
#: The policy of all paths below C{/ui}. Scripts, styles and connections are limited to this server, and neither inline
#: scripts nor strings are executed or parsed as HTML.
POLICY: Final = _POLICY % b"'self'"
#: The policy of all paths below C{/swagger-ui}, whose style sheet contains images.
SWAGGER_POLICY: Final = _POLICY % b"'self' data:"
_HEADERS: Final = (
    (b"X-Content-Type-Options", b"nosniff"),
    (b"X-Frame-Options", b"DENY"),
    (b"Referrer-Policy", b"no-referrer"),
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (b"Cross-Origin-Resource-Policy", b"same-origin"),
    (b"Permissions-Policy", b"camera=(), geolocation=(), microphone=()"),
)


def with_ui(
    handler: Handler,
    authenticator: SessionAuthenticator,
    reactor: IServerReactor,
    *,
    swagger_ui: bool = True,
    oidc_button: str = "",
    auditor: Auditor | None = None,
) -> Handler:
    """
    Route the paths of the pages, and pass other requests to C{handler}.

    @param swagger_ui: Whether C{/swagger-ui} is enabled.
    @param oidc_button: The text of the button for signing in with OpenID Connect.
    @param auditor: Audits sign-in and sign-out.
    """
    button = escape(oidc_button) if authenticator.oidc is not None else ""
    replacements = {b"{{swagger-ui}}": b"yes" if swagger_ui else b"no", b"{{oidc-button}}": button.encode()}
    ui = Page(PATH, POLICY, partial(_read_ui, replacements), reactor)
    session = SessionEndpoint(authenticator, auditor)
    proxy = ProxyEndpoint(authenticator, handler)
    answers = {SESSION: with_security_headers(session.answer, POLICY), PATH: ui.answer}
    # The filters authenticate and authorize requests for metrics and links, as they do with all other data.
    answers[HISTORY.encode()] = with_security_headers(handler, POLICY)
    answers[SIGN_IN_LINKS.encode()] = with_security_headers(handler, POLICY)
    if authenticator.oidc is not None:
        # Imported late: most servers have no provider.
        from .oidc import CALLBACK, END, START, OIDCEndpoint

        oidc = OIDCEndpoint(authenticator.oidc)
        answers[START] = with_security_headers(oidc.start, POLICY)
        answers[END] = with_security_headers(oidc.end, POLICY)
        answers[CALLBACK] = with_security_headers(oidc.callback, POLICY)
    if swagger_ui:
        answers[SWAGGER_PATH] = Page(SWAGGER_PATH, SWAGGER_POLICY, _read_swagger_ui, reactor).answer

    answers[PROXY] = with_security_headers(proxy.issue, POLICY)

    def front(request: KubeRequest) -> None:
        if request.uri == b"/" and request.method == b"GET" and _prefers_html(request.header(b"accept")):
            # Browsers of users who open the server's address; API clients do not request HTML.
            request.setHeader(b"Location", PATH + b"/")
            request.setHeader(b"Vary", b"Accept")
            request.setHeader(b"Cache-Control", b"no-store")
            request.respond_text(302, "")
            return
        if request.uri.startswith(_PATHS):
            path = request.path
            if path.startswith(_WITH_TICKET):
                proxy.open(request)
                return
            if path in _PATHS and not _accepts_html(request.header(b"accept")):
                # API clients that search for paths find none here, as in the reference.
                handler(request)
                return
            answer = answers.get(path) or answers.get(b"/" + path[1:].partition(b"/")[0])
            if answer is not None:
                answer(request)
                return
        handler(request)

    return front


# These run in a thread, at the first request for a page.


def _read_ui(replacements: Mapping[bytes, bytes]) -> Assets:
    from .assets import UI, read_assets

    return read_assets(UI, replacements)


def _read_swagger_ui() -> Assets:
    from .assets import SWAGGER_UI, read_assets

    return read_assets(SWAGGER_UI)


def _prefers_html(accept: bytes | None) -> bool:
    """Return whether a client names HTML before other types, as browsers do."""
    return accept is not None and accept.split(b",", 1)[0].partition(b";")[0].strip() == b"text/html"


def _accepts_html(accept: bytes | None) -> bool:
    """Return whether a client accepts HTML; a client without C{Accept} does."""
    if not accept:
        return True
    accepted = {clause.partition(b";")[0].strip() for clause in accept.split(b",")}
    return not accepted.isdisjoint((b"text/html", b"text/*", b"*/*"))


def with_security_headers(handler: Handler, policy: bytes) -> Handler:
    """Set the Content-Security-Policy and the other security headers."""

    def answer(request: KubeRequest) -> None:
        request.setHeader(b"Content-Security-Policy", policy)
        for name, value in _HEADERS:
            request.setHeader(name, value)
        handler(request)

    return answer


class Page:
    """
    Serves the files of one page.

    @ivar answer: The request handler.
    """

    def __init__(self, path: bytes, policy: bytes, read: Callable[[], Assets], reactor: IServerReactor) -> None:
        """
        @param path: Path of the page.
        @param policy: Content-Security-Policy.
        @param read: Reads the files; called in a thread at the first request.
        @param reactor: Provides the thread pool.
        """
        self.answer = with_security_headers(self._answer, policy)
        self._path = path
        self._read = read
        self._reactor = reactor
        self._assets: Assets | None = None

    def _answer(self, request: KubeRequest) -> None:
        if request.method not in (b"GET", b"HEAD"):
            request.setHeader(b"Allow", b"GET, HEAD")
            request.respond_text(405, "405 method not allowed\n")
        elif request.path == self._path:
            request.setHeader(b"Location", self._path + b"/")
            request.respond_text(308, "")
        elif self._assets is not None:
            self._answer_file(request, self._assets)
        else:
            reading = Deferred.fromCoroutine(self._read_files())
            reading.addCallback(lambda assets: self._answer_file(request, assets)).addErrback(request.handle_failure)

    async def _read_files(self) -> Assets:
        read = await deferToThreadPool(self._reactor, self._reactor.getThreadPool(), self._read)
        self._assets = read
        return read

    def _answer_file(self, request: KubeRequest, assets: Assets) -> None:
        if len(request.path) == len(self._path) + 1:
            request.setHeader(b"Cache-Control", b"no-cache")
            self._send(request, assets.page)
            return
        folder, _, name = request.path[len(self._path) + 1 :].decode("latin-1").partition("/")
        found = assets.files.get(name) if folder == assets.folder else None
        if found is None:
            request.setHeader(b"Cache-Control", b"no-store")
            request.respond_text(404, "404 page not found\n")
            return
        request.setHeader(b"Cache-Control", _CACHE_IMMUTABLE)
        self._send(request, found)

    def _send(self, request: KubeRequest, asset: Asset) -> None:
        request.setHeader(b"ETag", asset.etag)
        request.setHeader(b"Vary", b"Accept-Encoding")
        known = request.header(b"if-none-match")
        if known is not None and asset.etag in known:
            request.respond(304, b"", b"")
            return
        body = asset.content
        accepted = request.header(b"accept-encoding") or b""
        if any(one.partition(b";")[0].strip() == b"gzip" for one in accepted.split(b",")):
            request.setHeader(b"Content-Encoding", b"gzip")
            body = asset.gzipped
        request.respond(200, body, asset.media_type)
