"""Tests of L{kubetwist.filters.handlerchain}: the order of the filters."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes, Verdict
from kubetwist.filters.handlerchain import build_handler_chain
from kubetwist.http.request import Handler, KubeRequest
from tests.filters.answers import PODS, FixedResult
from tests.http.harness import Allow, Client, Everyone, echo, filtered_site, make_site


class OrderTests(SynchronousTestCase):
    """Order in which filters see a request."""

    def setUp(self) -> None:
        """Create a list of the steps of a request."""
        self.steps: list[str] = []

    def wrapper(self, name: str) -> Any:
        """Return a filter that records its name, the user and the verb."""

        def wrap(handler: Handler) -> Handler:
            def noting(request: KubeRequest) -> None:
                self.steps.append(f"{name} {request.user.name if request.user else 'unknown'} {request.info.verb}")
                handler(request)

            return noting

        return wrap

    def site(self) -> Any:
        """Return a site with all filters."""
        steps = self.steps

        class Noting(Allow):
            def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
                steps.append(f"authorize {attributes.verb}")
                verdict: Verdict = super().authorize(attributes)
                return verdict

        def answer(request: KubeRequest) -> None:
            steps.append("answer")
            echo(request)

        handler = build_handler_chain(
            answer,
            reactor=Clock(),
            authenticator=Everyone(),
            authorizer=Noting(),
            limit=self.wrapper("limit"),
            memory=self.wrapper("memory"),
        )
        site = make_site(handler)
        site.heads_first = True
        return site

    def test_small(self) -> None:
        """Memory is checked before a request waits for a seat, and both before it is authorized."""
        Client(self.site()).request("GET", PODS)
        self.assertEqual(self.steps, ["memory admin list", "limit admin list", "authorize list", "answer"])

    def test_large(self) -> None:
        """A request with a large body is authorized before the body is read; then it waits for a seat."""
        client = Client(self.site())
        client.send(f"POST {PODS} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n".encode())
        self.assertEqual(self.steps, ["memory admin create", "authorize create"])
        client.send(b"x" * 100_000)
        self.assertEqual(self.steps, ["memory admin create", "authorize create", "limit admin create", "answer"])

    def test_impersonated(self) -> None:
        """Impersonation precedes all filters that depend on the user."""
        Client(self.site()).request("GET", PODS, Impersonate_User="jane")
        self.assertEqual(self.steps[-4:], ["memory jane list", "limit jane list", "authorize list", "answer"])
        self.assertTrue(self.steps[0].startswith("authorize"))

    def test_unknown_user(self) -> None:
        """A request of an unknown user is answered before impersonation."""
        client = Client(filtered_site(authenticator=FixedResult(None)))
        self.assertEqual(client.request("GET", PODS, Impersonate_User="jane").code, 401)

    def test_malformed_timeout(self) -> None:
        """A malformed timeout is refused before authentication."""
        client = Client(filtered_site(authenticator=FixedResult(None)))
        self.assertEqual(client.request("GET", f"{PODS}?timeout=x").code, 400)
