"""Tests for L{kubetwist.cli.flags.secureserving} with a running server, and of its shutdown."""

from __future__ import annotations

import socket
import ssl
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL

from twisted.internet import reactor as the_reactor
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.python.usage import UsageError

from kubetwist.http.connection.ciphers import openssl_ciphers
from kubetwist.http.connection.curves import curves_supported, set_curves
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.credentials.namedcertificates import NamedFiles, certificate_names
from tests.cli.commandlines import CommandLineTestCase, parsed
from tests.http.harness import parse_answers
from tests.server.servercase import ServerCase

reactor: Any = the_reactor


class ServingTests(ServerCase):
    """TLS connections to a server."""

    def handshake(self, name: str, *ciphers: str) -> tuple[list[str], str]:
        """Return the names in the certificate for an SNI name, and the cipher suite. Call it in a thread."""
        context = SSL.Context(SSL.TLS_METHOD)
        if ciphers:
            context.set_max_proto_version(SSL.TLS1_2_VERSION)
            context.set_cipher_list(":".join(ciphers).encode())
        port = int(self.service.server.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
            connection = SSL.Connection(context, plain)
            plain.setblocking(True)
            connection.set_tlsext_host_name(name.encode())
            connection.set_connect_state()
            connection.do_handshake()
            shown = connection.get_peer_certificate(as_cryptography=True)
            assert shown is not None
            pem = ssl.DER_cert_to_PEM_cert(shown.public_bytes(Encoding.DER)).encode()
            return certificate_names(pem), connection.get_cipher_name() or ""

    async def test_names(self) -> None:
        """A client gets the certificate for its SNI name, or the default one."""
        pair = CertificateAuthority.make("ca").issue(CertConfig("other.test", names=("other.test",), server=True))
        for name, content in (("sni.crt", pair.certificate), ("sni.key", pair.key)):
            (self.folder / name).write_bytes(content)
        await self.start(f"--tls-sni-cert-key={self.folder}/sni.crt,{self.folder}/sni.key:*.other.test")
        names, _ = await deferToThread(self.handshake, "x.other.test")
        self.assertEqual(names, ["other.test"])
        names, _ = await deferToThread(self.handshake, "localhost")
        self.assertIn("kubernetes.default.svc", names)

    async def test_ciphers(self) -> None:
        """Only the configured cipher suites are accepted for TLS 1.2."""
        await self.start("--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")
        _, suite = await deferToThread(self.handshake, "localhost", "ECDHE-ECDSA-AES256-GCM-SHA384")
        self.assertEqual(suite, "ECDHE-ECDSA-AES256-GCM-SHA384")
        with self.assertRaises(SSL.Error):
            await deferToThread(self.handshake, "localhost", "ECDHE-ECDSA-AES128-GCM-SHA256")

    async def test_curves(self) -> None:
        """Only the configured groups are accepted in the key exchange."""
        await self.start("--tls-curve-preferences=24,25")
        port = int(self.service.server.url.rpartition(":")[2])

        def handshake(number: int) -> None:
            context = SSL.Context(SSL.TLS_METHOD)
            set_curves(context, (number,))
            with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
                connection = SSL.Connection(context, plain)
                plain.setblocking(True)
                connection.set_connect_state()
                connection.do_handshake()

        await deferToThread(handshake, 24)
        with self.assertRaises(SSL.Error):
            await deferToThread(handshake, 23)

    if not curves_supported():
        test_curves.skip = "the installed cryptography does not export the function"

    async def test_browsers(self) -> None:
        """Responses have the configured HSTS and CORS headers."""
        await self.start("--strict-transport-security-directives=max-age=60", r"--cors-allowed-origins=//a\.test$")
        response = await self.ask("/livez", Origin="https://a.test")
        self.assertEqual(response.header("strict-transport-security"), "max-age=60")
        self.assertEqual(response.header("access-control-allow-origin"), "https://a.test")

    async def test_grace(self) -> None:
        """During the grace period /livez succeeds although post-start hooks have not finished."""
        server = await self.start("--livez-grace-period=1h")
        (hook,) = [one for one in server.front.start_hooks() if one.name == "mine"]
        hook.problem = "not finished"
        self.assertEqual((await self.ask("/livez")).code, 200)
        self.assertEqual((await self.ask("/healthz")).code, 500)

    async def test_shutdown(self) -> None:
        """During shutdown the server answers new requests with 429 and health checks as usual."""
        await self.start("--authorization-mode=AlwaysAllow", "--shutdown-send-retry-after")
        waiting, late, health = [await self.connect(self.admin) for _ in range(3)]
        waiting.transport.write(b"GET /api/v1/x/wait HTTP/1.1\r\nHost: x\r\n\r\n")
        while not self.waiting:
            await deferLater(reactor, 0.01)
        stopped = self.service.stopService()
        while (await self.ask_on(health, "/api/v1/x")).code == 200:
            await deferLater(reactor, 0.01)
        response = await self.ask_on(late, "/api/v1/x")
        self.assertEqual((response.code, response.header("retry-after")), (429, "5"))
        self.assertEqual(response.body, b"The apiserver is shutting down, please try again later.\n")
        await late.ended
        self.assertEqual((await self.ask("/livez", self.admin)).code, 200)
        self.waiting[0].respond(200, b"done", b"text/plain")
        (response,) = parse_answers(await waiting.until(lambda data: data.endswith(b"done")))
        self.assertEqual(response.body, b"done")
        await stopped

    async def test_watches_end_gradually(self) -> None:
        """At shutdown, watches end within the grace period, spread over it."""
        await self.start("--authorization-mode=AlwaysAllow", "--shutdown-watch-termination-grace-period=10s")
        site = self.service.server.site
        ended: list[int] = []

        class Open:
            """A fake watch."""

        for index in range(30):
            watch: Any = Open()
            site.long_running_requests[watch] = lambda index=index, watch=watch: (
                ended.append(index),
                site.long_running_requests.pop(watch),
            )
        shares: list[int] = []
        server = self.service.server

        async def slept(seconds: float) -> None:
            # The first wait is the shutdown delay. The last one is for connections.
            if site.long_running_requests:
                shares.append(len(ended))

        server._sleep = slept
        await self.service.stopService()
        self.assertEqual((len(ended), shares), (30, [0, 10, 20]))


class ParsingTests(CommandLineTestCase):
    """Flags of certificates and cipher suites."""

    def test_ciphers(self) -> None:
        """Cipher suites have Go's names. TLS 1.3 suites are always enabled, and unsupported suites are rejected."""
        names = "TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_256_CBC_SHA"
        given = parsed(f"--tls-cipher-suites={names}")["tls-cipher-suites"]
        self.assertEqual(openssl_ciphers(given), "ECDHE-RSA-AES128-GCM-SHA256:AES256-SHA")
        self.assertEqual(openssl_ciphers(("TLS_AES_256_GCM_SHA384",)), "")
        for name in ("TLS_RSA_WITH_RC4_128_SHA", "x"):
            self.assert_rejected(
                f'invalid argument "{name}" for "--tls-cipher-suites" flag: Cipher suite {name} not supported or'
                " doesn't exist",
                f"--tls-cipher-suites={name}",
            )

    def test_named_certificates(self) -> None:
        """SNI certificates have optional names, and are merged if the flag is repeated."""
        given = parsed("--tls-sni-cert-key=a.crt,a.key", "--tls-sni-cert-key=b.crt,b.key:*.b.test,b.test")
        self.assertEqual(
            given["tls-sni-cert-key"],
            (NamedFiles("a.crt", "a.key"), NamedFiles("b.crt", "b.key", ("*.b.test", "b.test"))),
        )
        for text in ("a.crt", "a.crt,", ",a.key", "a,b,c", "a.crt,a.key:", "a.crt,a.key:x.*.y"):
            self.assertRaises(UsageError, parsed, f"--tls-sni-cert-key={text}")
