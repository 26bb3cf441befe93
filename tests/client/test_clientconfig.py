"""Tests of L{kubetwist.client.clientconfig}."""

from __future__ import annotations

import base64
from ipaddress import ip_network

from kubetwist.client.clientconfig import rest_config_for
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
