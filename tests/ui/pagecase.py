"""Test case with a server behind the web page."""

from __future__ import annotations

import json
import re
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.sessions import SessionAuthenticator, SessionStore
from kubetwist.authentication.signinlinks import SignInLinks
from kubetwist.authentication.union import AuthenticatorUnion, TokenAuthentication
from kubetwist.filters.handlerchain import build_handler_chain
from kubetwist.http.request import KubeRequest
from kubetwist.http.site import traverse
from kubetwist.ui.page import with_ui
from tests.http.harness import Allow, Answer, Client, Leaf, echo, make_site

COOKIE = "__Host-kubetwist-6443"


JSON = {"Content_Type": "application/json"}


class AtOnce:
    """A reactor that runs functions for threads immediately."""

    def getThreadPool(self) -> AtOnce:
        """Return the reactor itself."""
        return self

    def callInThreadWithCallback(self, done: Any, call: Any, *arguments: Any) -> None:
        """Call the function immediately."""
        done(True, call(*arguments))

    def callFromThread(self, call: Any, *arguments: Any) -> None:
        """Call the function immediately."""
        call(*arguments)


class PageTestCase(SynchronousTestCase):
    """Test case with the page in front of a server that allows everything to signed-in users."""

    def setUp(self) -> None:
        """Create the server with one valid token."""
        self.finding: Any = None
        clock = Clock()
        authenticator = SessionAuthenticator(
            SessionStore(clock.seconds), lambda: COOKIE.encode(), self.authenticate_token, SignInLinks(clock.seconds)
        )
        self.authenticator = authenticator
        self.handler = handler = build_handler_chain(
            traverse(Leaf(self.serve)),
            reactor=clock,
            authenticator=AuthenticatorUnion([authenticator]),
            authorizer=Allow(),
        )
        self.site = make_site(with_ui(handler, authenticator, AtOnce()), clock)

    def serve(self, request: KubeRequest) -> None:
        """Answer a request to the API."""
        echo(request)

    def authenticate_token(self, token: str) -> Any:
        """Authenticate the valid token only."""
        if self.finding is not None:
            return self.finding
        return TokenAuthentication(UserInfo("alice", groups=("qa",)) if token == "good" else None)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Send one request."""
        return Client(self.site).request(method, path, body, **headers)

    def sign_in(self, token: str = "good", **headers: str) -> Answer:
        """Send a sign-in request."""
        body = json.dumps({"token": token}).encode()
        return self.ask("POST", "/ui/session", body, **{**JSON, "X_Kubetwist_UI": "1", **headers})

    def session(self) -> dict[str, str]:
        """Return the headers of a signed-in client."""
        answer = self.sign_in()
        cookie = answer.header("Set-Cookie")
        assert cookie is not None
        return {"Cookie": cookie.partition(";")[0], "X_Kubetwist_UI": json.loads(answer.body)["key"]}


class FilesTestCase(PageTestCase):
    """Test case with tools that several test cases need."""

    def folder(self, place: str = "/ui") -> str:
        """Return the folder of the page's files."""
        page = self.ask("GET", f"{place}/").body.decode()
        found = re.search(rf'href="({place}/[0-9a-f]{{16}})/icon.svg"', page)
        assert found is not None, page
        return found[1]
