"""Tests for L{kubetwist.extension._delegation}."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.internet.task import Clock
from twisted.trial.unittest import TestCase

from kubetwist.client.errors import CallError
from kubetwist.client.httpclient import Response
from kubetwist.extension._delegation import (
    INTERVAL,
    DelegatedAuthentication,
    LookupFailed,
)
from kubetwist.server.credentials.certificates import CertificateAuthority


class StubCluster:
    """A fake client that returns a configured response."""

    description = "a kubeconfig"

    def __init__(self) -> None:
        self.response: Any = Response(404, {}, b"")
        self.requests = 0

    async def get(self, path: str, timeout: float) -> Response:
        """Return the configured response."""
        self.requests += 1
        if isinstance(self.response, Exception):
            raise self.response
        assert isinstance(self.response, Response)
        return self.response

    def set_config_map(self, **data: Any) -> None:
        """Set the content of the config map."""
        names = {name.replace("_", "-"): value for name, value in data.items()}
        self.response = Response(200, {}, orjson.dumps({"data": names}))


class LookupTests(TestCase):
    """Loading of the authentication configuration."""

    def setUp(self) -> None:
        """Create a delegated authentication with a fake client."""
        self.cluster = StubCluster()
        self.clock = Clock()
        self.authentication = DelegatedAuthentication(self.cluster, self.clock, 10.0)  # type: ignore[arg-type]
        self.addCleanup(self.authentication.stop)
        self.ca = CertificateAuthority.make("ca").pair.certificate.decode()
        self.proxy_ca = CertificateAuthority.make("proxies").pair.certificate.decode()

    async def test_periodic_refresh(self) -> None:
        """The config map is read at the start, and then periodically."""
        self.cluster.set_config_map(client_ca_file=self.ca)
        await self.authentication.start(tolerate_lookup_failure=False)
        users, proxies = self.authentication.authorities
        self.assertEqual((len(users.pool.certificates), len(proxies.pool.certificates)), (1, 0))
        self.cluster.set_config_map(requestheader_client_ca_file=self.ca)
        self.clock.advance(INTERVAL)
        self.assertEqual((len(users.pool.certificates), len(proxies.pool.certificates)), (0, 1))
        self.assertEqual(self.cluster.requests, 2)

    async def test_damaged(self) -> None:
        """An invalid config map is rejected with a message, and the previous configuration stays in use."""
        self.cluster.set_config_map(client_ca_file=self.ca, requestheader_client_ca_file=self.proxy_ca)
        await self.authentication.start(tolerate_lookup_failure=False)
        for damaged in (
            {"client_ca_file": "-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----"},
            {"client_ca_file": "", "requestheader_allowed_names": "7"},
            {"client_ca_file": "", "requestheader_allowed_names": "["},
            {"client_ca_file": self.ca, "requestheader_client_ca_file": self.proxy_ca + self.ca},
        ):
            self.cluster.set_config_map(**damaged)
            with self.assertRaisesRegex(LookupFailed, "invalid config map"):
                await self.authentication.refresh()
            self.assertEqual([len(one.pool.certificates) for one in self.authentication.authorities], [1, 1])
        self.cluster.response = Response(200, {}, b"[]")
        with self.assertRaises(LookupFailed):
            await self.authentication.refresh()

    async def test_no_response(self) -> None:
        """Without a response the start fails, unless lookup failures are tolerated; then the lookup is repeated."""
        self.cluster.response = CallError("Get", "https://kube", "connection refused")
        with self.assertRaisesRegex(LookupFailed, "connection refused"):
            await self.authentication.start(tolerate_lookup_failure=False)
        await self.authentication.start(tolerate_lookup_failure=True)
        self.cluster.set_config_map(client_ca_file=self.ca)
        self.clock.advance(INTERVAL)
        self.assertEqual(len(self.authentication.authorities[0].pool.certificates), 1)
