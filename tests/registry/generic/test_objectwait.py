"""Tests for L{kubetwist.registry.generic.objectwait} and who uses it: the admission plugin ServiceAccount."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.errors import APIStatusError
from tests.controllers.harness import ControllerTestCase


class AppearanceTests(ControllerTestCase):
    """Pods that are made before the account that they run as."""

    resources = ("namespaces", "pods", "serviceaccounts")
    admission = True

    def setUp(self) -> None:
        """A namespace that has no account yet."""
        super().setUp()
        self.make("namespaces", "default")

    def pod(self) -> Deferred[Any]:
        """Begin to make a pod."""
        pod = {
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "c:1"}]},
        }
        made: Deferred[Any] = Deferred.fromCoroutine(self.user.create("", "pods", pod))
        return made

    def test_account_comes(self) -> None:
        """A pod waits for its account, and goes on when it is made."""
        made = self.pod()
        self.settle(1)
        self.assertNoResult(made)
        self.make("serviceaccounts", "default", "default")
        self.settle()
        self.successResultOf(made)
        self.assertEqual(self.find("pods", "a", "default")["spec"]["serviceAccountName"], "default")
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_account_does_not_come(self) -> None:
        """When no account comes in a second and a half, the pod is refused."""
        made = self.pod()
        self.settle(1.4)
        self.assertNoResult(made)
        self.settle(0.2)
        error = self.failureResultOf(made, APIStatusError).value
        self.assertEqual(error.code, 403)
        self.assertIn('serviceaccount "default" not found', error.message)

    def test_other_account(self) -> None:
        """What else is made in the namespace makes no difference."""
        made = self.pod()
        self.make("serviceaccounts", "other", "default")
        self.settle(1)
        self.assertNoResult(made)
        self.settle(1)
        self.failureResultOf(made, APIStatusError)
