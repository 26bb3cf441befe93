"""Tests for L{kubetwist.controllers.serviceaccounts.serviceaccount}."""

from __future__ import annotations

from kubetwist.controllers.serviceaccounts.serviceaccount import ServiceAccountController
from tests.controllers.harness import ControllerTestCase


class ServiceAccountControllerTests(ControllerTestCase):
    """The service account C{default}."""

    resources = ("namespaces", "serviceaccounts")

    def test_created(self) -> None:
        """Existing and new namespaces get a default account."""
        self.make("namespaces", "old")
        self.start(ServiceAccountController)
        self.make("namespaces", "new")
        self.settle()
        self.assertEqual(self.names("serviceaccounts", "old"), ["default"])
        self.assertEqual(self.names("serviceaccounts", "new"), ["default"])

    def test_recreated(self) -> None:
        """A deleted default account is created again. Other accounts are not."""
        self.make("namespaces", "one")
        self.start(ServiceAccountController)
        self.make("serviceaccounts", "other", "one")
        before = self.find("serviceaccounts", "default", "one")["metadata"]["uid"]
        self.remove("serviceaccounts", "default", "one")
        self.remove("serviceaccounts", "other", "one")
        self.settle()
        self.assertEqual(self.names("serviceaccounts", "one"), ["default"])
        self.assertNotEqual(self.find("serviceaccounts", "default", "one")["metadata"]["uid"], before)

    def test_terminating(self) -> None:
        """A terminating namespace gets no account."""
        self.make("namespaces", "one")
        self.remove("namespaces", "one")
        self.start(ServiceAccountController)
        self.assertEqual(self.names("serviceaccounts"), [])

    def test_killed(self) -> None:
        """After a kill at any write every namespace has its account in the end."""

        def namespaces() -> None:
            for name in "abc":
                self.make("namespaces", name)

        self.check_kill_at_each_write(
            namespaces, lambda: [self.names("serviceaccounts", name) for name in "abc"], ServiceAccountController
        )

    def test_faults(self) -> None:
        """With every tenth write failing, all accounts are created in the end."""
        for number in range(50):
            self.make("namespaces", f"n{number}")
        self.backend.fails = lambda number: number % 10 == 0
        self.start(ServiceAccountController)
        self.settle(10)
        self.assertEqual(len(self.names("serviceaccounts")), 50)
