"""Tests for L{kubetwist.controllers.rootcacertpublisher}."""

from __future__ import annotations

from typing import Any

from kubetwist.controllers.rootcacertpublisher import (
    CONFIG_MAP,
    RootCAPublisher,
)
from tests.controllers.harness import ControllerTestCase
from tests.controllers.serviceaccounts.test_serviceaccounttokens import Config


class RootCAPublisherTests(ControllerTestCase):
    """The config map with the CA bundle."""

    resources = ("namespaces", "configmaps")

    def setUp(self) -> None:
        """Create a namespace."""
        self.config: Config = Config()
        super().setUp()
        self.make("namespaces", "one")

    def should_be_in_endpoints(self, namespace: str = "one") -> Any:
        """Return the data of the config map."""
        self.settle()
        found = self.find("configmaps", CONFIG_MAP, namespace)
        return found and found.get("data")

    def test_created(self) -> None:
        """Every namespace gets the config map, with a description."""
        self.start(RootCAPublisher)
        self.make("namespaces", "two")
        for namespace in ("one", "two"):
            self.assertEqual(self.should_be_in_endpoints(namespace), {"ca.crt": "our certificate"})
        annotations = self.find("configmaps", CONFIG_MAP, "one")["metadata"]["annotations"]
        self.assertIn("verify the kube-apiserver", annotations["kubernetes.io/description"])

    def test_corrected(self) -> None:
        """Changes are reverted, a deleted config map is recreated, and annotations are kept."""
        self.start(RootCAPublisher)

        def change(obj: Any) -> None:
            obj["data"] = {"ca.crt": "evil", "more": "too"}
            obj["metadata"]["annotations"] = {"mine": "yes"}

        self.change("configmaps", CONFIG_MAP, change, "one")
        self.assertEqual(self.should_be_in_endpoints(), {"ca.crt": "our certificate"})
        annotations = self.find("configmaps", CONFIG_MAP, "one")["metadata"]["annotations"]
        self.assertEqual(sorted(annotations), ["kubernetes.io/description", "mine"])
        self.remove("configmaps", CONFIG_MAP, "one")
        self.assertEqual(self.should_be_in_endpoints(), {"ca.crt": "our certificate"})
        before = self.memory.revision
        self.make("configmaps", "other", "one")
        self.remove("configmaps", "other", "one")
        self.settle(60)
        self.assertEqual(self.memory.revision, before + 2)

    def test_terminating(self) -> None:
        """A terminating namespace gets no config map."""
        self.remove("namespaces", "one")
        self.start(RootCAPublisher)
        self.assertIsNone(self.should_be_in_endpoints())

    def test_certificate(self) -> None:
        """A changed CA bundle is written to all config maps."""
        self.start(RootCAPublisher)
        self.config.trust(b"another")
        self.assertEqual(self.should_be_in_endpoints(), {"ca.crt": "another"})

    def test_killed(self) -> None:
        """After a kill at any write, every namespace has the config map in the end."""
        self.reset_stores()

        def namespaces() -> None:
            for name in ("one", "two", "three"):
                self.make("namespaces", name)
            self.make("configmaps", CONFIG_MAP, "two", data={"ca.crt": "old"})

        self.check_kill_at_each_write(
            namespaces, lambda: [self.should_be_in_endpoints(name) for name in ("one", "two", "three")], RootCAPublisher
        )
