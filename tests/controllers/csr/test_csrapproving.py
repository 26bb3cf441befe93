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
    Allows what it is told to.

    @ivar allowed: Subresources.
    @ivar asked: What it was asked.
    """

    name = "Test"

    def __init__(self) -> None:
        self.allowed: set[str] = set()
        self.asked: list[Any] = []

    def authorize(self, attributes: Any) -> Verdict:
        """Say so."""
        self.asked.append(attributes)
        return Verdict(Decision.ALLOW if attributes.subresource in self.allowed else Decision.NO_OPINION)


class RequestApprovingTests(SigningRequestTestCase):
    """Approving."""

    def setUp(self) -> None:
        """With an authorizer that allows nothing yet."""
        self.authorizer = Authorizer()
        super().setUp()

    def authorizer_over(self, grants: RuleResolver) -> Any:
        """That one."""
        return self.authorizer

    def node(self, name: str, **spec: Any) -> None:
        """Make a request of a node; whoever makes it is C{admin}."""
        usages = ("client auth", "digital signature")
        self.request(name, KUBELET_CLIENT, "system:node:n", "system:nodes", usages=usages, **spec)

    def test_allowed(self) -> None:
        """a CSR of a node is approved if the requester is authorized."""
        self.authorizer.allowed.add("nodeclient")
        self.start(CSRApprovingController)
        self.node("one")
        self.request("other")
        self.settle()
        (condition,) = self.status("one")["conditions"]
        self.assertEqual((condition["type"], condition["reason"]), ("Approved", "AutoApproved"))
        self.assertEqual(condition["message"], "Auto approving kubelet client certificate after SubjectAccessReview.")
        self.assertEqual(self.status("other"), {})
        (asked,) = self.authorizer.asked
        self.assertEqual((asked.user.name, asked.verb, asked.group, asked.resource), ("admin", "create", GROUP, NAME))

    def test_not_yet(self) -> None:
        """Who may not now may later."""
        self.start(CSRApprovingController)
        self.node("one")
        self.settle()
        self.assertEqual(self.status("one"), {})
        self.authorizer.allowed.add("nodeclient")
        self.settle(RETRY + 1)
        self.assertEqual(len(self.status("one")["conditions"]), 1)

    def test_faults(self) -> None:
        """With writes that fail, all is approved in the end, and after a kill nothing twice."""
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
