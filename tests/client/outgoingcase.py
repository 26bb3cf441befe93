"""Base of tests with a client factory and services."""

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
    """Base of tests that combine several test cases."""

    def setUp(self) -> None:
        """Create a client factory that finds some services."""
        super().setUp()
        self.outgoing = ClientFactory(reactor, self.find)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.outgoing.close()))

    def find(self, namespace: str, name: str) -> Any:
        """Return a service of the namespace C{ns}; L{None} if it does not exist."""
        return {"spec": SERVICES[name]} if namespace == "ns" and name in SERVICES else None

    def config(self, server: WebhookServer, name: str, **service: Any) -> dict[str, Any]:
        """Return a clientConfig that references a service."""
        bundle = base64.b64encode(server.ca).decode()
        return {"caBundle": bundle, "service": {"namespace": "ns", "name": name, **service}}
