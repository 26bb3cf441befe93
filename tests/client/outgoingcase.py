"""What makes clients, and services that they call."""

from __future__ import annotations

import base64
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred

from kubetwist.client.factory import ClientFactory
from kubetwist.testing.webhooks import WebhookServer
from tests.client.clientcase import (
    ClientCase,
)

SERVICES: dict[str, dict[str, Any]] = {
    "hook": {"type": "ClusterIP", "clusterIP": "10.0.0.7", "ports": [{"port": 443}]},
    "outside": {"type": "ExternalName", "externalName": "localhost"},
    "metadata": {"type": "ExternalName", "externalName": "169.254.169.254"},
}


class OutgoingTestCase(ClientCase):
    """A test with the tools of several test cases."""

    def setUp(self) -> None:
        """A server with some services."""
        super().setUp()
        self.outgoing = ClientFactory(reactor, self.find)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.outgoing.close()))

    def find(self, namespace: str, name: str) -> Any:
        """The services of one namespace."""
        return {"spec": SERVICES[name]} if namespace == "ns" and name in SERVICES else None

    def config(self, server: WebhookServer, name: str, **service: Any) -> dict[str, Any]:
        """A clientConfig that names a service."""
        bundle = base64.b64encode(server.ca).decode()
        return {"caBundle": bundle, "service": {"namespace": "ns", "name": name, **service}}
