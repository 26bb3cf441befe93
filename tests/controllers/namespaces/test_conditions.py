"""Tests for L{kubetwist.controllers.namespaces.conditions}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupResource
from kubetwist.controllers.namespaces.conditions import (
    ContentDeletionResult,
    update_conditions,
)

OK_CONDITIONS = {
    "NamespaceDeletionDiscoveryFailure": "ResourcesDiscovered",
    "NamespaceDeletionGroupVersionParsingFailure": "ParsedGroupVersions",
    "NamespaceDeletionContentFailure": "ContentDeleted",
    "NamespaceContentRemaining": "ContentRemoved",
    "NamespaceFinalizersRemaining": "ContentHasNoFinalizers",
}


class ConditionTests(SynchronousTestCase):
    """Conditions of namespaces."""

    def test_no_errors(self) -> None:
        """Without errors all conditions are False, in the order of kube-controller-manager."""
        namespace: dict[str, Any] = {}
        update_conditions(namespace, ContentDeletionResult(), "now")
        conditions = namespace["status"]["conditions"]
        self.assertEqual({one["type"]: one["reason"] for one in conditions}, OK_CONDITIONS)
        self.assertEqual([one["type"] for one in conditions], list(OK_CONDITIONS))
        self.assertEqual({one["status"] for one in conditions}, {"False"})

    def test_problems(self) -> None:
        """Each problem has its condition, in a stable order."""
        outcome = ContentDeletionResult(discovery="no answer", failures=["z", "a"])
        outcome.remaining.update({GroupResource("apps", "deployments"): 2, GroupResource("", "pods"): 1})
        outcome.finalizers.update({"example.com/b": 2, "example.com/a": 1})
        namespace: dict[str, Any] = {}
        update_conditions(namespace, outcome, "now")
        conditions = {
            one["type"]: (one["reason"], one["message"])
            for one in namespace["status"]["conditions"]
            if one["status"] == "True"
        }
        self.assertEqual(
            conditions,
            {
                "NamespaceDeletionDiscoveryFailure": ("DiscoveryFailed", "no answer"),
                "NamespaceDeletionContentFailure": (
                    "ContentDeletionFailed",
                    "Failed to delete all resource types, 2 remaining: a, z",
                ),
                "NamespaceContentRemaining": (
                    "SomeResourcesRemain",
                    "Some resources are remaining: deployments.apps has 2 resource instances, "
                    "pods. has 1 resource instances",
                ),
                "NamespaceFinalizersRemaining": (
                    "SomeFinalizersRemain",
                    "Some content in the namespace has finalizers remaining: example.com/a in 1 resource instances, "
                    "example.com/b in 2 resource instances",
                ),
            },
        )

    def test_transitions(self) -> None:
        """lastTransitionTime changes only with the status, and other conditions are kept."""
        namespace: dict[str, Any] = {"status": {"conditions": [{"type": "Other", "status": "Unknown"}]}}
        update_conditions(namespace, ContentDeletionResult(failures=["a"]), "first")
        update_conditions(namespace, ContentDeletionResult(failures=["b"]), "second")
        by_type = {one["type"]: one for one in namespace["status"]["conditions"]}
        failure = by_type["NamespaceDeletionContentFailure"]
        self.assertEqual(failure["lastTransitionTime"], "first")
        self.assertIn("remaining: b", failure["message"])
        update_conditions(namespace, ContentDeletionResult(), "third")
        self.assertEqual((failure["status"], failure["lastTransitionTime"]), ("False", "third"))
        self.assertEqual(by_type["Other"], {"type": "Other", "status": "Unknown"})
