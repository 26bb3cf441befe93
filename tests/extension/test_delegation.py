"""What is made of the config map that tells how users are known."""

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
    """Answers with what it is given."""

    where = "a kubeconfig"

    def __init__(self) -> None:
        self.answer: Any = Response(404, {}, b"")
        self.asked = 0

    async def get(self, path: str, timeout: float) -> Response:
        """The same for all."""
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        assert isinstance(self.answer, Response)
        return self.answer

    def tell(self, **data: Any) -> None:
        """Have a config map from now on."""
        names = {name.replace("_", "-"): value for name, value in data.items()}
        self.answer = Response(200, {}, orjson.dumps({"data": names}))


class LookupTests(TestCase):
    """Finding out, and finding out again."""

    def setUp(self) -> None:
        """A cluster that tells what a test wants."""
        self.cluster = StubCluster()
        self.clock = Clock()
        self.authentication = DelegatedAuthentication(self.cluster, self.clock, 10.0)  # type: ignore[arg-type]
        self.addCleanup(self.authentication.stop)
        self.ca = CertificateAuthority.make("ca").pair.certificate.decode()
        self.proxy_ca = CertificateAuthority.make("proxies").pair.certificate.decode()

    async def test_again(self) -> None:
        """The config map is read when the server starts, and from time to time from then on."""
        self.cluster.tell(client_ca_file=self.ca)
        await self.authentication.start(tolerate_lookup_failure=False)
        users, proxies = self.authentication.authorities
        self.assertEqual((len(users.pool.certificates), len(proxies.pool.certificates)), (1, 0))
        self.cluster.tell(requestheader_client_ca_file=self.ca)
        self.clock.advance(INTERVAL)
        self.assertEqual((len(users.pool.certificates), len(proxies.pool.certificates)), (0, 1))
        self.assertEqual(self.cluster.asked, 2)

    async def test_damaged(self) -> None:
        """What makes no sense changes nothing, and it is said what is wrong."""
        self.cluster.tell(client_ca_file=self.ca, requestheader_client_ca_file=self.proxy_ca)
        await self.authentication.start(tolerate_lookup_failure=False)
        for damaged in (
            {"client_ca_file": "-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----"},
            {"client_ca_file": "", "requestheader_allowed_names": "7"},
            {"client_ca_file": "", "requestheader_allowed_names": "["},
            {"client_ca_file": self.ca, "requestheader_client_ca_file": self.proxy_ca + self.ca},
        ):
            self.cluster.tell(**damaged)
            with self.assertRaisesRegex(LookupFailed, "invalid config map"):
                await self.authentication.refresh()
            self.assertEqual([len(one.pool.certificates) for one in self.authentication.authorities], [1, 1])
        self.cluster.answer = Response(200, {}, b"[]")
        with self.assertRaises(LookupFailed):
            await self.authentication.refresh()

    async def test_no_answer(self) -> None:
        """A server that must know does not start without an answer; one that need not asks again later."""
        self.cluster.answer = CallError("Get", "https://kube", "connection refused")
        with self.assertRaisesRegex(LookupFailed, "connection refused"):
            await self.authentication.start(tolerate_lookup_failure=False)
        await self.authentication.start(tolerate_lookup_failure=True)
        self.cluster.tell(client_ca_file=self.ca)
        self.clock.advance(INTERVAL)
        self.assertEqual(len(self.authentication.authorities[0].pool.certificates), 1)
