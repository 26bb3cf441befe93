"""Tests for L{kubetwist.controllers.fakekubelet.containerusage}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.quantity import Quantity
from kubetwist.controllers.fakeimages import Usage
from kubetwist.controllers.fakekubelet.containerusage import container_usage


class ContainerUsageTests(SynchronousTestCase):
    """L{container_usage}."""

    def usage(self, resource: str, configured: Usage | None = None, **annotations: str) -> str:
        """Return the usage of a container."""
        renamed = {f"kubetwist.dev/usage-{key}": value for key, value in annotations.items()}
        return str(container_usage(renamed, "c", configured, resource))

    def test_order(self) -> None:
        """An annotation for the container precedes the one for all, which precedes the image and the default."""
        configured = Usage(cpu=Quantity.parse("2"), ephemeral_storage=Quantity.parse("5Mi"))
        self.assertEqual([self.usage(one) for one in ("cpu", "memory", "ephemeral-storage")], ["1m", "16Mi", "1Mi"])
        self.assertEqual([self.usage(one, configured) for one in ("cpu", "memory")], ["2", "0"])
        self.assertEqual(self.usage("ephemeral-storage", configured), "5Mi")
        self.assertEqual(self.usage("cpu", configured, cpu="3"), "3")
        self.assertEqual(self.usage("cpu", configured, **{"cpu": "3", "cpu.c": "4", "cpu.d": "5"}), "4")
        self.assertEqual(self.usage("cpu", configured, cpu="x"), "2")
        self.assertEqual(self.usage("cpu", configured, cpu="-1"), "2")
