"""
Sign-in with an OpenID Connect provider: the start at C{/ui/oidc/start}, and the return of the browser; sign-out there.

The page asks for the URL of the provider, and the response sets the cookie that binds the sign-in to the browser. The
provider redirects the browser to C{/ui/oidc/callback}, which only moves the parameters into the fragment of the page's
address: no server and no C{Referer} sees it. The page removes it from its history and sends it to C{/ui/session}, where
everything is checked. Thus pages of other sites can neither start nor complete a sign-in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson

from twisted.internet.defer import Deferred

from ..api.errors import APIStatusError
from ..authentication.oidcclient import MAX_PARAMETERS_LENGTH, SIGN_IN_TIMEOUT, SignInFailed, new_secret
from ..authentication.sessions import CSRF_HEADER, from_same_origin
from .session import add_cookie

if TYPE_CHECKING:
    from ..authentication.oidcsignin import OIDCSignIn
    from ..http.request import KubeRequest

START: Final = b"/ui/oidc/start"
END: Final = b"/ui/oidc/end"
CALLBACK: Final = b"/ui/oidc/callback"
_PAGE: Final = b"/ui/"
#: What a query may contain: printable ASCII without spaces and C{#}.
_QUERY: Final = re.compile(rb"[!$-~]*")


class OIDCEndpoint:
    """Handles the start of sign-ins, the redirects of the provider, and sign-outs at the provider."""

    def __init__(self, sign_in: OIDCSignIn) -> None:
        self._sign_in = sign_in

    def start(self, request: KubeRequest) -> None:
        """Answer a POST of the page with the URL at which the user signs in."""
        secret = new_secret()
        cookie = self._sign_in.cookie(), secret.encode()
        self._answer_location(request, partial(self._sign_in.start, secret, request), cookie)

    def end(self, request: KubeRequest) -> None:
        """Answer a POST of the page with the URL at which the user signs out at the provider."""
        self._answer_location(request, self._sign_in.client.end_session_url, None)

    def _answer_location(
        self,
        request: KubeRequest,
        find: Callable[[], Coroutine[Deferred[Any], Any, str]],
        cookie: tuple[bytes, bytes] | None,
    ) -> None:
        """
        Answer a POST of the page with a URL.

        @param find: Returns the URL.
        @param cookie: The name and the value of a cookie to set.
        """
        request.setHeader(b"Cache-Control", b"no-store")
        if request.method != b"POST":
            request.setHeader(b"Allow", b"POST")
            request.fail(APIStatusError.method_not_allowed())
        elif request.header(CSRF_HEADER) is None or not from_same_origin(request):
            request.fail(APIStatusError.bad_request("this endpoint accepts requests of the page at /ui only"))
        else:
            Deferred.fromCoroutine(self._find(request, find, cookie)).addErrback(request.handle_failure)

    async def _find(
        self,
        request: KubeRequest,
        find: Callable[[], Coroutine[Deferred[Any], Any, str]],
        cookie: tuple[bytes, bytes] | None,
    ) -> None:
        try:
            location = await find()
        except SignInFailed as error:
            if not request.is_done:
                request.fail(APIStatusError.service_unavailable(str(error)))
            return
        if not request.is_done:
            if cookie is not None:
                add_cookie(request, *cookie, SIGN_IN_TIMEOUT)
            request.respond(200, orjson.dumps({"location": location}), b"application/json")

    def callback(self, request: KubeRequest) -> None:
        """Redirect the browser to the page, with the parameters of the provider in the fragment."""
        query = request.uri.partition(b"?")[2]
        # The log must not have the code.
        request.uri = request.path
        request.setHeader(b"Cache-Control", b"no-store")
        if request.method != b"GET":
            request.setHeader(b"Allow", b"GET")
            request.respond_text(405, "405 method not allowed\n")
            return
        usable = len(query) <= MAX_PARAMETERS_LENGTH and _QUERY.fullmatch(query)
        request.setHeader(b"Location", _PAGE + (b"#oidc?" + query if usable else b""))
        request.respond_text(303, "")
