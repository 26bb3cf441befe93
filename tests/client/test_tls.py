"""Tests of L{kubetwist.client.tls}."""

from __future__ import annotations

from twisted.internet import reactor

from kubetwist.client.errors import (
    InvalidRESTConfig,
)
from kubetwist.client.httpclient import WebhookClient
from kubetwist.client.restconfig import RESTConfig
from tests.client.clientcase import ClientCase


class TrustTests(ClientCase):
    """Verification of certificates, and client certificates."""

    async def test_unknown_authority(self) -> None:
        """A certificate of an unknown authority is refused before data are sent."""
        server = await self.serve(lambda call: {})
        stranger = await self.serve(lambda call: {})
        for ca in (stranger.ca, b""):
            error = await self.refusal(self.client(server, ca=ca, token="secret"))
            self.assertEqual(
                error.reason, "tls: failed to verify certificate: x509: certificate signed by unknown authority"
            )
        self.assertEqual(server.calls, [])

    async def test_other_name(self) -> None:
        """A certificate must be valid for the host, or for the configured server name."""
        server = await self.serve(lambda call: {}, names=("a.example", "*.b.example"))
        failed = "tls: failed to verify certificate: x509: "
        error = await self.refusal(self.client(server))
        self.assertEqual(
            error.reason, f"{failed}cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"
        )
        error = await self.refusal(self.client(server, server_name="c.example"))
        self.assertEqual(error.reason, f"{failed}certificate is valid for a.example, *.b.example, not c.example")
        for name in ("a.example", "x.b.example"):
            answer = await self.client(server, server_name=name).post(b"{}", timeout=10)
            self.assertEqual(answer.code, 200)

    async def test_other_address(self) -> None:
        """Addresses in certificates are compared, too."""
        server = await self.serve(lambda call: {}, names=("10.0.0.7",))
        error = await self.refusal(self.client(server))
        self.assertEqual(
            error.reason, "tls: failed to verify certificate: x509: certificate is valid for 10.0.0.7, not 127.0.0.1"
        )

    async def test_common_name_only(self) -> None:
        """A certificate with a common name only is refused."""
        server = await self.serve(lambda call: {}, names=())
        error = await self.refusal(self.client(server, server_name="webhook"))
        self.assertEqual(
            error.reason,
            "tls: failed to verify certificate: x509: certificate relies on legacy Common Name field, use SANs instead",
        )

    async def test_expired(self) -> None:
        """An expired certificate is refused; the error contains the time."""
        server = await self.serve(lambda call: {}, expired=True)
        error = await self.refusal(self.client(server))
        self.assertRegex(
            error.reason,
            "^tls: failed to verify certificate: x509: certificate has expired or is not yet valid:"
            r" current time \S+Z is after \S+Z$",
        )

    async def test_insecure(self) -> None:
        """With C{insecure} every certificate is accepted."""
        server = await self.serve(lambda call: {}, names=("elsewhere",))
        answer = await self.client(server, ca=b"", insecure=True).post(b"{}", timeout=10)
        self.assertEqual(answer.code, 200)

    async def test_client_certificate(self) -> None:
        """A client certificate is presented on request; without one the server's TLS alert is reported."""
        server = await self.serve(lambda call: {}, require_client=True)
        pair = server.client_pair("apiserver")
        await self.client(server, certificate=pair.certificate, key=pair.key).post(b"{}", timeout=10)
        self.assertEqual(server.calls[0].client, "apiserver")
        error = await self.refusal(self.client(server))
        self.assertEqual(error.reason, "remote error: tls: certificate required")

    async def test_no_tls(self) -> None:
        """A server without TLS fails the call with Go's text."""
        port = self.raw(b"HTTP/1.1 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
        error = await self.refusal(self.client_of(RESTConfig(url=f"https://127.0.0.1:{port}/")))
        self.assertEqual(error.reason, "http: server gave HTTP response to HTTPS client")

    def test_invalid_settings(self) -> None:
        """Invalid settings are refused when the client is created."""
        for settings in (
            RESTConfig(url="ftp://x"),
            RESTConfig(url="https://"),
            RESTConfig(url="https://x:99999"),
            RESTConfig(url="https://[127.0.0.1:80]:443"),
            RESTConfig(url="https://[x"),
            RESTConfig(url="https://x", ca=b"nonsense"),
            RESTConfig(url="https://x", certificate=b"nonsense", key=b"more"),
        ):
            self.assertRaises(InvalidRESTConfig, WebhookClient, reactor, settings)

    def test_secrets_are_not_shown(self) -> None:
        """The repr of settings contains no secrets."""
        text = repr(RESTConfig(url="https://x", token="hush", basic_auth=("me", "hush"), key=b"hush"))
        self.assertNotIn("hush", text)
