"""Tests of authentication files that are reloaded."""

from __future__ import annotations

import json

from cryptography.hazmat.primitives.asymmetric import ec

from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from tests.server.servercase import ServerCase
from tests.tokenkeys import private_pem, public_pem


class ReloadingTests(ServerCase):
    """Reloading of each file."""

    def check_files(self) -> None:
        """Check the files for changes."""
        files = self.config.files
        files._apply_changes(files._changes())

    async def test_client_authorities(self) -> None:
        """
        A new client authority replaces the previous one, also on open connections; the server's authority remains.
        """
        first, second = CertificateAuthority.make("first"), CertificateAuthority.make("second")
        path = self.folder / "clients.crt"
        path.write_bytes(first.pair.certificate)
        await self.start(f"--client-ca-file={path}")
        connection = await self.connect(first.issue(CertConfig("alice")))
        self.assertEqual((await self.ask_on(connection, "/api/v1/x")).code, 200)
        carol = second.issue(CertConfig("carol"))
        self.assertEqual((await self.ask("/api/v1/x", carol)).code, 401)
        path.write_bytes(second.pair.certificate)
        self.check_files()
        self.assertEqual((await self.ask_on(connection, "/api/v1/x")).code, 401)
        self.assertEqual((await self.ask("/api/v1/x", carol)).code, 200)
        self.assertEqual((await self.ask("/api/v1/x", self.admin)).code, 200)
        path.write_text("garbage")
        self.check_files()
        self.assertEqual((await self.ask("/api/v1/x", carol)).code, 200)

    async def test_proxies(self) -> None:
        """New authorities of proxies replace the previous ones."""
        first, second = CertificateAuthority.make("first"), CertificateAuthority.make("second")
        path = self.folder / "proxies.crt"
        path.write_bytes(first.pair.certificate)
        await self.start(f"--requestheader-client-ca-file={path}", "--requestheader-username-headers=X-Remote-User")
        headers = {"X-Remote-User": "alice"}
        front = second.issue(CertConfig("front"))
        self.assertEqual((await self.ask("/api/v1/x", front, **headers)).code, 401)
        path.write_bytes(second.pair.certificate)
        self.check_files()
        self.assertEqual((await self.ask("/api/v1/x", front, **headers)).body, b"alice system:authenticated")

    async def test_requested_authorities(self) -> None:
        """The TLS handshake names the current authorities for users and proxies."""
        paths = [self.folder / name for name in ("clients.crt", "proxies.crt")]
        for path, name in zip(paths, ("first", "second"), strict=True):
            path.write_bytes(CertificateAuthority.make(name).pair.certificate)
        await self.start(f"--client-ca-file={paths[0]}", f"--requestheader-client-ca-file={paths[1]}")

        async def asked() -> list[str]:
            connection = await self.connect()
            await self.ask_on(connection, "/readyz")
            return sorted(name.CN for name in connection.transport.getHandle().get_client_ca_list())

        self.assertEqual(await asked(), ["first", "kubetwist-ca", "second"])
        paths[0].write_bytes(CertificateAuthority.make("third").pair.certificate)
        self.check_files()
        self.assertEqual(await asked(), ["kubetwist-ca", "second", "third"])

    async def test_tokens(self) -> None:
        """A token is valid while it is in the file; an invalid file is ignored."""
        path = self.folder / "tokens.csv"
        path.write_text("one,alice,u\n")
        await self.start(f"--token-auth-file={path}")
        for content, good in (("two,alice,u\n", "two"), ("three\n", "two"), ("three,alice,u\n", "three")):
            path.write_text(content)
            self.check_files()
            for token in ("one", "two", "three"):
                code = (await self.ask("/api/v1/x", Authorization=f"Bearer {token}")).code
                self.assertEqual(code, 200 if token == good else 401)

    async def test_token_keys(self) -> None:
        """The published keys are the current ones of the files."""
        path = self.folder / "sa.pub"
        keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
        signing = self.folder / "sa.key"
        signing.write_bytes(private_pem(keys[0]))
        path.write_bytes(public_pem(keys[0]))
        await self.start(f"--service-account-key-file={path}", f"--service-account-signing-key-file={signing}")
        listened_keys = []
        for content in (None, public_pem(keys[0]) + public_pem(keys[1]), b"garbage"):
            if content is not None:
                path.write_bytes(content)
                self.check_files()
            answer = await self.ask("/openid/v1/jwks", self.admin)
            listened_keys.append([key["kid"] for key in json.loads(answer.body)["keys"]])
        self.assertEqual([len(one) for one in listened_keys], [1, 2, 2])
        self.assertEqual(listened_keys[1][0], listened_keys[0][0])
