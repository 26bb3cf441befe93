"""Tests for L{kubetwist.controllers.csr.csrapproving}."""

from __future__ import annotations

from typing import Any

from kubetwist.api.authorization import Decision, Verdict
from kubetwist.controllers.csr.csrapproving import RETRY, CSRApprovingController
from kubetwist.controllers.csr.requests import GROUP, KUBELET_CLIENT
from kubetwist.registry.rbac.ruleresolver import RuleResolver
from tests.controllers.csr.requestcase import NAME, SigningRequestTestCase


class Authorizer:
    """
    An authorizer that allows configured subresources.

    @ivar allowed: The allowed subresources.
    @ivar calls: The attributes of all calls.
    """

    name = "Test"

    def __init__(self) -> None:
        self.allowed: set[str] = set()
        self.calls: list[Any] = []

    def authorize(self, attributes: Any) -> Verdict:
        """Return the decision."""
        self.calls.append(attributes)
        return Verdict(Decision.ALLOW if attributes.subresource in self.allowed else Decision.NO_OPINION)


class CSRApprovingTests(SigningRequestTestCase):
    """Approval of CSRs."""

    def setUp(self) -> None:
        """Create an authorizer that allows nothing."""
        self.authorizer = Authorizer()
        super().setUp()

    def create_authorizer(self, grants: RuleResolver) -> Any:
        """Return the authorizer."""
        return self.authorizer

    def node(self, name: str, **spec: Any) -> None:
        """Create a CSR of a node. The requester is C{admin}."""
        usages = ("client auth", "digital signature")
        self.request(name, KUBELET_CLIENT, "system:node:n", "system:nodes", usages=usages, **spec)

    def test_allowed(self) -> None:
        """A CSR of a node is approved if the requester is authorized."""
        self.authorizer.allowed.add("nodeclient")
        self.start(CSRApprovingController)
        self.node("one")
        self.request("other")
        self.settle()
        (condition,) = self.status("one")["conditions"]
        self.assertEqual((condition["type"], condition["reason"]), ("Approved", "AutoApproved"))
        self.assertEqual(condition["message"], "Auto approving kubelet client certificate after SubjectAccessReview.")
        self.assertEqual(self.status("other"), {})
        (calls,) = self.authorizer.calls
        self.assertEqual((calls.user.name, calls.verb, calls.group, calls.resource), ("admin", "create", GROUP, NAME))

    def test_authorized_later(self) -> None:
        """A CSR is approved later if its requester becomes authorized."""
        self.start(CSRApprovingController)
        self.node("one")
        self.settle()
        self.assertEqual(self.status("one"), {})
        self.authorizer.allowed.add("nodeclient")
        self.settle(RETRY + 1)
        self.assertEqual(len(self.status("one")["conditions"]), 1)

    def test_faults(self) -> None:
        """With failing writes and after a kill, all CSRs are approved once."""
        for number in range(20):
            self.node(f"r{number}")
        self.authorizer.allowed.add("nodeclient")
        self.backend.fails = lambda number: number % 10 == 0
        self.start(CSRApprovingController)
        self.settle(60)
        self.backend.fails = lambda number: False
        self.restart(CSRApprovingController)
        for number in range(20):
            self.assertEqual(len(self.status(f"r{number}")["conditions"]), 1)
