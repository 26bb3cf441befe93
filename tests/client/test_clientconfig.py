"""Tests of L{kubetwist.client.clientconfig}."""

from __future__ import annotations

import base64
from ipaddress import ip_network

from hypothesis import given
from hypothesis.strategies import text

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.clientconfig import clean_path, rest_config_for
from kubetwist.client.errors import InvalidRESTConfig
from tests.client.outgoingcase import OutgoingTestCase


class ConfigTests(OutgoingTestCase):
    """C{rest_config_for}."""

    async def test_url(self) -> None:
        """A URL in a webhook configuration may address this machine, as in the reference."""
        server = await self.serve(lambda call: {})
        config = {"url": f"{server.url}/x", "caBundle": base64.b64encode(server.ca).decode()}
        answer = await self.outgoing.client(rest_config_for(config, self.outgoing)).post(b"{}", timeout=10)
        self.assertEqual(answer.code, 200)

    async def test_denied_url(self) -> None:
        """A URL in a denied network is refused."""
        server = await self.serve(lambda call: {})
        self.outgoing.denied_networks = (ip_network("127.0.0.0/8"),)
        config = {"url": f"{server.url}/x", "caBundle": base64.b64encode(server.ca).decode()}
        error = await self.refusal(self.outgoing.client(rest_config_for(config, self.outgoing)))
        self.assertEqual(error.reason, f"dial tcp 127.0.0.1:{server.port}: address not allowed")
        self.assertEqual(server.calls, [])

    async def test_path(self) -> None:
        """The path of a URL is requested as Go's path.Join writes it."""
        server = await self.serve(lambda call: {})
        for path in ("//x/y", "/x/./y/", "/x//y", "/z/../x/y"):
            config = {"url": f"{server.url}{path}", "caBundle": base64.b64encode(server.ca).decode()}
            await self.outgoing.client(rest_config_for(config, self.outgoing)).post(b"{}", timeout=10)
        self.assertEqual([call.path for call in server.calls], ["/x/y"] * 4)
        self.assertRaises(InvalidRESTConfig, rest_config_for, {"url": "https://[::1/x"}, self.outgoing)


class PathTests(SynchronousTestCase):
    """C{clean_path}."""

    def test_examples(self) -> None:
        """No path is the root; names remain."""
        for path, cleaned in (("", "/"), ("/", "/"), ("///", "/"), ("a", "/a"), ("/a%2Fb", "/a%2Fb"), ("/..", "/")):
            self.assertEqual(clean_path(path), cleaned)

    @given(text(alphabet="/.ab", max_size=12))
    def test_clean(self, path: str) -> None:
        """A clean path has one slash in front, no empty and no relative parts, and is not changed again."""
        cleaned = clean_path(path)
        self.assertEqual(cleaned, clean_path(cleaned))
        self.assertTrue(cleaned.startswith("/") and (cleaned == "/" or not cleaned.endswith("/")))
        self.assertFalse({"", ".", ".."}.intersection(cleaned[1:].split("/")) if cleaned != "/" else False)
