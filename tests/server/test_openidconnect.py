"""Tests of OpenID Connect tokens and anonymous requests, with a whole server."""

from __future__ import annotations

import json
import time
from typing import Any

from twisted.internet.task import deferLater

from kubetwist.authentication import _jwks as oidckeys
from kubetwist.testing.webhooks import Call, Reply, WebhookServer
from tests.oidcissuer import KEYS, Issuer
from tests.server.servercase import ServerCase, reactor


class OpenIDConnectTests(ServerCase):
    """A server and an issuer."""

    async def issue(self) -> None:
        """Start an issuer."""

        def answer(call: Call) -> Reply:
            code, body = self.issuer.answer(call.path)
            return Reply(code, body, {"Content-Type": "application/json"})

        self.fake = await WebhookServer(reactor, answer).start()
        self.addCleanup(self.fake.stop)
        self.issuer = Issuer(self.fake.url)
        self.ca = self.folder / "issuer.crt"
        self.ca.write_bytes(self.fake.ca)
        self.file = self.folder / "authentication.json"

    def token(self, *arguments: Any, **claims: Any) -> dict[str, str]:
        """Return the header with a valid token."""
        token = self.issuer.token(*arguments, **{"exp": int(time.time()) + 600, **claims})
        return {"Authorization": f"Bearer {token}"}

    async def known(self) -> None:
        """Wait until the server has fetched the keys of the issuer."""
        while not self.issuer.asked or self.issuer.asked[-1] != "/keys":
            await deferLater(reactor, 0.01)
        while (await self.ask("/api/v1/x/y", **self.token())).code == 401:
            await deferLater(reactor, 0.01)

    def configure(self, *issuers: Any, **more: Any) -> str:
        """Write a configuration file; return the flag for it."""
        document = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": issuers}
        self.file.write_text(json.dumps({**document, **more}))
        return f"--authentication-config={self.file}"

    def jwt(self, prefix: str = "") -> dict[str, Any]:
        """Return the issuer's entry in the file."""
        return {
            "issuer": {"url": self.fake.url, "audiences": ["me"], "certificateAuthority": self.fake.ca.decode()},
            "claimMappings": {"username": {"claim": "sub", "prefix": prefix}},
        }

    async def test_flags(self) -> None:
        """Tokens of the issuer in flags are accepted, also with a new key."""
        await self.issue()
        await self.start(
            f"--oidc-issuer-url={self.fake.url}",
            "--oidc-client-id=me",
            f"--oidc-ca-file={self.ca}",
            "--oidc-groups-claim=groups",
        )
        await self.known()
        answer = await self.ask("/api/v1/x/y", **self.token(groups=["a"]))
        self.assertEqual(answer.body.decode(), f"{self.fake.url}#alice a,system:authenticated")
        for claims in ({"aud": "x"}, {"exp": 5}):
            answer = await self.ask("/api/v1/x/y", **self.token(**claims))
            self.assertEqual((answer.code, json.loads(answer.body)["message"]), (401, "Unauthorized"))
        self.assertEqual((await self.ask("/readyz", **self.token(iss="https://x"))).code, 401)

    async def test_file(self) -> None:
        """A changed file is reloaded, except for its anonymous settings; an invalid one is ignored."""
        await self.issue()
        anonymous = {"enabled": True, "conditions": [{"path": "/livez"}]}
        await self.start(self.configure(self.jwt("x:"), anonymous=anonymous))
        await self.known()
        self.assertEqual((await self.ask("/livez")).code, 200)
        self.assertEqual((await self.ask("/readyz")).code, 401)
        for change, name in (
            (lambda: self.configure(self.jwt("y:"), anonymous=anonymous), "y:alice"),
            (lambda: self.file.write_text("garbage"), "y:alice"),
            (lambda: self.configure(self.jwt("z:")), "y:alice"),
            (lambda: self.configure(self.jwt("z:"), anonymous=anonymous), "z:alice"),
        ):
            change()
            await self.check_files()
            answer = await self.ask("/api/v1/x/y", **self.token())
            self.assertEqual(answer.body.decode(), f"{name} system:authenticated")
        self.configure(anonymous=anonymous)
        await self.check_files()
        self.assertEqual((await self.ask("/api/v1/x/y", **self.token())).code, 401)

    async def check_files(self) -> None:
        """Check the files for changes."""
        files = self.config.files
        files._apply_changes(files._changes())

    async def test_refusals(self) -> None:
        """Invalid configurations fail the start."""
        await self.issue()
        for more, flags, text in (
            ({"x": 1}, (), 'strict decoding error: unknown field "x"'),
            (
                {"anonymous": {"enabled": True}},
                ("--anonymous-auth=true",),
                "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured",
            ),
            ({"jwt": [self.jwt() | {"userValidationRules": [{"expression": "user."}]}]}, (), "compilation failed"),
            ({}, ("--authentication-config=/nowhere",), "open /nowhere: no such file or directory"),
        ):
            self.assertIn(text, await self.refused(self.configure(self.jwt(), **more), *flags))

    async def test_key_rotation(self) -> None:
        """A token with a new key is accepted ten seconds after the keys were fetched."""
        await self.issue()
        await self.start(self.configure(self.jwt()))
        await self.known()
        self.issuer.keys = {"two": KEYS["two"]}
        self.assertEqual((await self.ask("/api/v1/x/y", **self.token("two"))).code, 401)
        self.patch(oidckeys, "RETRY_INTERVAL", 0.0)
        answer = await self.ask("/api/v1/x/y", **self.token("two"))
        self.assertEqual(answer.body, b"alice system:authenticated")
