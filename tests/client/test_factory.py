"""Tests of L{kubetwist.client.factory} and L{kubetwist.client.clientconfig}."""

from __future__ import annotations

import base64

from twisted.internet.defer import Deferred

from kubetwist.client.clientconfig import rest_config_for
from kubetwist.client.errors import CallError
from kubetwist.client.restconfig import RESTConfig
from kubetwist.testing.webhooks import NEVER
from tests.client.clientcase import (
    turns,
)
from tests.client.outgoingcase import OutgoingTestCase


class OutgoingTests(OutgoingTestCase):
    """Clients for targets that API objects name."""

    async def test_service(self) -> None:
        """A service is called at its cluster IP with its DNS name, which the certificate must contain."""
        server = await self.serve(lambda call: {}, names=("hook.ns.svc",))
        self.outgoing.address_overrides["10.0.0.7", 443] = ("127.0.0.1", server.port)
        client = self.outgoing.client(rest_config_for(self.config(server, "hook", path="/p"), self.outgoing))
        await client.post(b"{}", timeout=10)
        (call,) = server.calls
        self.assertEqual((call.path, call.headers["host"]), ("/p", "hook.ns.svc:443"))

    async def test_other_certificate(self) -> None:
        """A certificate for another service is refused."""
        server = await self.serve(lambda call: {}, names=("other.ns.svc",))
        self.outgoing.address_overrides["10.0.0.7", 443] = ("127.0.0.1", server.port)
        client = self.outgoing.client(rest_config_for(self.config(server, "hook"), self.outgoing))
        error = await self.refusal(client)
        self.assertIn("x509: certificate is valid for other.ns.svc, not hook.ns.svc", error.reason)

    async def test_services_are_not_here(self) -> None:
        """CVE-2022-3172 and similar: a service that resolves to this machine or to a metadata service is not called."""
        server = await self.serve(lambda call: {})
        for name, address in (("outside", r"(127\.0\.0\.1|\[::1\])"), ("metadata", r"169\.254\.169\.254")):
            config = self.config(server, name, port=server.port)
            error = await self.refusal(self.outgoing.client(rest_config_for(config, self.outgoing)))
            self.assertRegex(error.reason, rf"^dial tcp {address}:{server.port}: address not allowed$")
        self.assertEqual(server.calls, [])

    async def test_missing_service(self) -> None:
        """The error for a missing service contains the URL of the service."""
        server = await self.serve(lambda call: {})
        client = self.outgoing.client(rest_config_for(self.config(server, "gone"), self.outgoing))
        error = await self.refusal(client)
        self.assertEqual(str(error), 'Post "https://gone.ns.svc:443/?timeout=10s": service "gone" not found')

    async def test_close(self) -> None:
        """Closing the factory aborts calls and closes connections."""
        server = await self.serve(lambda call: NEVER)
        config = {"url": server.url, "caBundle": base64.b64encode(server.ca).decode()}
        client = self.outgoing.client(rest_config_for(config, self.outgoing))
        failing = Deferred.fromCoroutine(client.post(b"{}", timeout=60))
        while not server.calls:
            await turns()
        await self.outgoing.close()
        error = await self.assertFailure(failing, CallError)
        self.assertEqual(error.reason, "context canceled")
        while server._site.protocols:
            await turns()

    async def test_retired(self) -> None:
        """A retired client is tracked until its connections are closed."""
        server = await self.serve(lambda call: {}, tls=False)
        await self.outgoing.client(RESTConfig(url=server.url)).post(b"{}", timeout=10)
        (client,) = self.outgoing._connected
        client.retire()
        while self.outgoing._connected:
            await turns()
