"""Tests of L{kubetwist.registry.generic.objectwait} with its user, the admission plugin ServiceAccount."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.errors import APIStatusError
from tests.controllers.harness import ControllerTestCase


class ObjectWaitTests(ControllerTestCase):
    """Tests of pods that are created before their service account."""

    resources = ("namespaces", "pods", "serviceaccounts")
    admission = True

    def setUp(self) -> None:
        """Create a namespace without service accounts."""
        super().setUp()
        self.make("namespaces", "default")

    def pod(self) -> Deferred[Any]:
        """Start creating a pod."""
        pod = {
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "c:1"}]},
        }
        made: Deferred[Any] = Deferred.fromCoroutine(self.user.create("", "pods", pod))
        return made

    def test_account_is_created(self) -> None:
        """The creation of a pod continues when its service account is created."""
        made = self.pod()
        self.settle(1)
        self.assertNoResult(made)
        self.make("serviceaccounts", "default", "default")
        self.settle()
        self.successResultOf(made)
        self.assertEqual(self.find("pods", "a", "default")["spec"]["serviceAccountName"], "default")
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_timeout(self) -> None:
        """The creation of a pod fails if its service account is missing after 1.5 seconds."""
        made = self.pod()
        self.settle(1.4)
        self.assertNoResult(made)
        self.settle(0.2)
        error = self.failureResultOf(made, APIStatusError).value
        self.assertEqual(error.code, 403)
        self.assertIn('serviceaccount "default" not found', error.message)

    def test_other_account(self) -> None:
        """The creation of another service account does not end the wait."""
        made = self.pod()
        self.make("serviceaccounts", "other", "default")
        self.settle(1)
        self.assertNoResult(made)
        self.settle(1)
        self.failureResultOf(made, APIStatusError)
