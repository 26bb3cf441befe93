"""Tests for L{kubetwist.authentication.oidcsignin}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.configurations import ConfigurationError
from kubetwist.authentication.configuration import (
    AuthenticationConfiguration,
    ClaimOrExpression,
    Issuer,
    JWTAuthenticatorConfig,
)
from kubetwist.authentication.oidcclient import SignInFailed
from kubetwist.authentication.oidcsignin import OIDCSignIn, make_sign_in
from tests.oidcprovider import CLIENT


def request(host: str) -> Any:
    """Return a request with a host."""
    return SimpleNamespace(header={b"host": host.encode("latin-1")}.get)


class HostTests(SynchronousTestCase):
    """The redirect URI contains only hosts of this server."""

    def sign_in(self, external_url: str = "", external_hostname: str = "", client_id: str = CLIENT) -> OIDCSignIn:
        """Return the sign-in of a server."""
        options = {
            "ui-oidc-client-id": client_id,
            "ui-oidc-client-secret-file": "",
            "ui-oidc-issuer-url": "",
            "ui-oidc-scopes": (),
            "ui-external-url": external_url,
            "external-hostname": external_hostname,
        }
        issuer = JWTAuthenticatorConfig(Issuer("https://issuer", (CLIENT,)), ClaimOrExpression("sub"))
        server: Any = SimpleNamespace(
            authentication_configuration=AuthenticationConfiguration((issuer,)),
            address="192.0.2.7:6443",
            outgoing=None,
            reactor=Clock(),
        )
        return make_sign_in(options, server)  # type: ignore[arg-type] # flags as a dict

    def test_this_machine(self) -> None:
        """At this machine any port is accepted, as it may be forwarded."""
        sign_in = self.sign_in()
        for host in ("localhost", "localhost:8443", "127.0.0.1:6443", "[::1]:6443", "LOCALHOST:1"):
            self.assertEqual(sign_in.redirect_uri(request(host)), f"https://{host.lower()}/ui/oidc/callback")

    def test_known(self) -> None:
        """The advertised address and the external host name are accepted, with the server's port."""
        sign_in = self.sign_in(external_hostname="API.example.com")
        for host in ("192.0.2.7:6443", "api.example.com:6443"):
            self.assertEqual(sign_in.redirect_uri(request(host)), f"https://{host}/ui/oidc/callback")
        sign_in = self.sign_in(external_hostname="api.example.com:443")
        self.assertEqual(sign_in.redirect_uri(request("api.example.com")), "https://api.example.com/ui/oidc/callback")

    def test_unknown(self) -> None:
        """Other values of Host are refused."""
        sign_in = self.sign_in(external_hostname="api.example.com")
        for host in (
            "",
            "evil.example.com",
            "api.example.com",
            "api.example.com:6443.evil.example.com",
            "192.0.2.7",
            "192.0.2.7:6444",
            "localhost.evil.example.com",
            "localhost@evil.example.com",
            "evil.example.com@localhost",
            "localhost:x",
            "localhost:99999",
            "localhost/evil",
            "localhost?x",
            "localhost#x",
            "127.0.0.2",
            "[::2]",
            "::1",
            "local\xa0host",
        ):
            self.assertRaises(SignInFailed, sign_in.redirect_uri, request(host))

    def test_external_url(self) -> None:
        """With --ui-external-url its host is the only one: the cookie is for it."""
        for url in ("https://K8s.example.com", "https://k8s.example.com:443/"):
            sign_in = self.sign_in(url)
            uri = sign_in.redirect_uri(request("k8s.example.com"))
            self.assertEqual(uri, "https://k8s.example.com/ui/oidc/callback")
            for host in ("localhost", "192.0.2.7:6443", "evil.example.com"):
                with self.assertRaises(SignInFailed) as raised:
                    sign_in.redirect_uri(request(host))
                self.assertIn("https://k8s.example.com/ui/", str(raised.exception))

    def test_cookie(self) -> None:
        """The name of the cookie has the port, as all ports of a host share their cookies."""
        self.assertEqual(self.sign_in().cookie(), b"__Host-kubetwist-oidc-6443")

    def test_not_configured(self) -> None:
        """A client ID is required."""
        self.assertRaises(ConfigurationError, self.sign_in, client_id="")
