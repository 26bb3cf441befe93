"""Tests for L{kubetwist.client.clientconfig}."""

from __future__ import annotations

import base64
from ipaddress import ip_network

from kubetwist.client.clientconfig import rest_config_for
from tests.client.outgoingcase import OutgoingTestCase


class ConfigTests(OutgoingTestCase):
    """Tests for L{kubetwist.client.clientconfig}."""

    async def test_url(self) -> None:
        """Whoever may write webhook configurations may name this machine by URL, as in the reference."""
        server = await self.serve(lambda call: {})
        config = {"url": f"{server.url}/x", "caBundle": base64.b64encode(server.ca).decode()}
        answer = await self.outgoing.client(rest_config_for(config, self.outgoing)).post(b"{}", timeout=10)
        self.assertEqual(answer.code, 200)

    async def test_denied_url(self) -> None:
        """Where the operator does not want URLs of objects to lead they do not."""
        server = await self.serve(lambda call: {})
        self.outgoing.denied_networks = (ip_network("127.0.0.0/8"),)
        config = {"url": f"{server.url}/x", "caBundle": base64.b64encode(server.ca).decode()}
        error = await self.refusal(self.outgoing.client(rest_config_for(config, self.outgoing)))
        self.assertEqual(error.why, f"dial tcp 127.0.0.1:{server.port}: address not allowed")
        self.assertEqual(server.calls, [])
