"""Tests for L{kubetwist.server.endpoints.signinlinks}, with a server over HTTP."""

from __future__ import annotations

import json
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from twisted.internet.threads import deferToThread

from kubetwist.authentication.signinlinks import SIGN_IN_LINKS
from tests.server.endpoints.endpointcase import EndpointCase

RBAC = "/apis/rbac.authorization.k8s.io/v1"


class SignInLinkTests(EndpointCase):
    """C{/ui/sign-in-links}."""

    async def issue(self, **user: Any) -> tuple[int, Any]:
        """Request a link as a user."""
        connection = self.server.connection.as_user("ops", **user)
        return await deferToThread(connection.request, "POST", SIGN_IN_LINKS)

    async def test_link(self) -> None:
        """A member of C{system:masters} gets a link, which signs in as this user, once; its secret is not audited."""
        folder = Path(self.mktemp())
        folder.mkdir()
        policy, log = folder / "policy.json", folder / "audit.log"
        rules = [{"level": "RequestResponse"}]
        policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
        await self.serve(
            "--enable-ui", f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-mode=blocking"
        )
        code, link = await self.issue(groups=["system:masters"])
        self.assertEqual((code, link["kind"], link["expirationSeconds"]), (201, "SignInLink", 900))
        address, _, secret = link["url"].partition("/ui/#sign-in=")
        self.assertEqual(address, self.server.connection.url)
        answers = [await self.sign_in({"link": secret}) for _ in range(2)]
        self.assertEqual([answer.status for answer, _ in answers], [201, 401])
        user = {"username": "ops", "groups": ["system:masters", "system:authenticated"]}
        self.assertEqual(answers[0][1]["user"], user)
        logged = log.read_text()
        self.assertIn(SIGN_IN_LINKS, logged)
        self.assertNotIn(secret, logged)

    async def test_refused(self) -> None:
        """Other users get no link, even with all permissions; nor does a session of the UI."""
        await self.serve("--enable-ui", "--authorization-mode=RBAC")
        self.assertEqual((await self.issue())[0], 403)
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ops"}
        role = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "cluster-admin"}
        binding = {"metadata": {"name": "ops"}, "subjects": [subject], "roleRef": role}
        self.assertEqual((await self.ask("POST", f"{RBAC}/clusterrolebindings", binding))[0], 201)
        while (await self.ask_for_maps())[0] == 403:
            pass
        code, answer = await self.issue()
        self.assertEqual((code, answer["reason"]), (403, "Forbidden"))
        self.assertIn("members of system:masters", answer["message"])
        self.assertEqual((await self.ask("GET", SIGN_IN_LINKS))[0], 405)
        self.assertEqual((await self.ask("POST", SIGN_IN_LINKS))[0], 201)
        answer, begun = await self.sign_in({"token": self.server.connection.token})
        cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]
        answer, _ = await self.send(SIGN_IN_LINKS, None, {"Cookie": cookie, "X-Kubetwist-UI": begun["key"]})
        self.assertEqual(answer.status, 403)

    async def sign_in(self, credential: dict[str, str]) -> tuple[HTTPResponse, Any]:
        """Sign in to the UI."""
        headers = {"X-Kubetwist-UI": "1", "Content-Type": "application/json"}
        return await self.send("/ui/session", credential, headers)

    async def send(self, path: str, body: Any, headers: dict[str, str]) -> tuple[HTTPResponse, Any]:
        """Send a POST without credentials but the ones in the headers; return the response, and its decoded body."""

        def post() -> tuple[HTTPResponse, Any]:
            parts = urlsplit(self.server.connection.url)
            context = self.server.connection.credentials_context()
            connection = HTTPSConnection(parts.hostname or "", parts.port, context=context, timeout=30)
            try:
                connection.request("POST", path, json.dumps(body), headers)
                response = connection.getresponse()
                return response, json.loads(response.read())
            finally:
                connection.close()

        return await deferToThread(post)

    async def ask_for_maps(self) -> tuple[int, Any]:
        """Send a request that the role allows."""
        connection = self.server.connection.as_user("ops")
        return await deferToThread(connection.request, "GET", "/api/v1/namespaces/default/configmaps")

    async def test_without_ui(self) -> None:
        """Without the UI there is no such path."""
        await self.serve("--enable-ui=false")
        self.assertEqual((await self.issue(groups=["system:masters"]))[0], 404)
