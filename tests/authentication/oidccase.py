"""An issuer with keys, and test cases that authenticate its tokens."""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.configuration import ClaimOrExpression, JWTAuthenticatorConfig
from kubetwist.authentication.configuration import Issuer as IssuerSettings
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.authentication.oidc import OIDCAuthenticator
from kubetwist.interfaces import IAuthenticator
from tests.oidcissuer import NOW, Issuer, Network

HERE = "https://here"


URL = "https://issuer.example.com"


class Request:
    """The part of a request that authenticators use."""

    def __init__(self, token: str | None) -> None:
        self.fields = {} if token is None else {b"authorization": [b"Bearer " + token.encode()]}

    def warn(self, text: str) -> None:
        """Ignore the warning."""


class TokenCase(SynchronousTestCase):
    """A test case with an issuer whose tokens are accepted."""

    mapping: ClassVar[dict[str, Any]] = {"groups": ClaimOrExpression("groups")}

    def setUp(self) -> None:
        """Configure the issuer."""
        self.clock = Clock()
        self.now = float(NOW)
        self.issuer = Issuer(URL)
        self.network = Network(self.issuer)
        self.tokens = OIDCAuthenticator(self.network, self.clock, [HERE], now=lambda: self.now)
        verifyObject(IAuthenticator, self.tokens)
        self.addCleanup(self.tokens.stop)
        self.tokens.configure([self.configuration()])
        self.network.calls.clear()

    def configuration(
        self, url: str = URL, audiences: tuple[str, ...] = ("me",), **changes: Any
    ) -> JWTAuthenticatorConfig:
        """Return the configuration of the issuer."""
        values = {"username": ClaimOrExpression("sub", "oidc:"), **self.mapping, **changes}
        return JWTAuthenticatorConfig(IssuerSettings(url, audiences), **values)

    def user(self, token: str | None) -> UserInfo | None:
        """Return the user of a token."""
        user = self.tokens.authenticate(Request(token))
        return self.successResultOf(user) if isinstance(user, Deferred) else user  # type: ignore[no-any-return]

    def error_text(self, token: str) -> str:
        """Return the error for a token."""
        try:
            user = self.tokens.authenticate(Request(token))
        except AuthenticationFailed as error:
            return str(error)
        self.assertIsInstance(user, Deferred)
        return str(self.failureResultOf(user, AuthenticationFailed).value)
