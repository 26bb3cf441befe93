"""Tests for L{kubetwist.controllers.workloads.statefulpods}."""

from __future__ import annotations

from kubetwist.controllers.workloads.statefulpods import ordinal_of
from tests.controllers.workloads.statefulsetcase import StatefulSetTestCase


class StatefulPodTests(StatefulSetTestCase):
    """Tests for L{kubetwist.controllers.workloads.statefulpods}."""

    def test_retention_policy(self) -> None:
        """The retention policy decides whether claims are deleted with the StatefulSet, or when it is scaled down."""
        policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
        made = self.set_of(2, persistentVolumeClaimRetentionPolicy=policy)
        self.run_pods()

        def owners(name: str) -> list[str]:
            found = self.find("persistentvolumeclaims", name, "default")
            return [one["uid"] for one in found["metadata"].get("ownerReferences", ())]

        self.assertEqual(owners("data-db-1"), [made["metadata"]["uid"]])
        pod = self.find("pods", "db-1", "default")["metadata"]["uid"]
        self.edit(replicas=1)
        self.settle()
        self.assertEqual(owners("data-db-1"), [pod])
        self.edit(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Retain"})
        self.run_pods()
        self.assertEqual(owners("data-db-0"), [])

    def test_terminating_claim(self) -> None:
        """A pod is not created while its claim is being deleted."""
        self.set_of(1)
        self.run_pods()
        self.change(
            "persistentvolumeclaims", "data-db-0", lambda one: one["metadata"].update(finalizers=["a.io/b"]), "default"
        )
        self.remove("persistentvolumeclaims", "data-db-0", "default")
        self.remove("pods", "db-0", "default")
        self.settle(1)
        self.assertEqual(self.pod_names(), [])
        self.change("persistentvolumeclaims", "data-db-0", lambda one: one["metadata"].pop("finalizers"), "default")
        self.settle(60)
        self.assertEqual(self.pod_names(), ["db-0"])
        self.assertEqual(self.claims(), ["data-db-0"])

    def test_ordinal(self) -> None:
        """Only names of the form set-number have an ordinal."""
        for name, number in (("db-7", 7), ("db-x", -1), ("dc-1", -1), ("db", -1), ("db--1", -1), ("a-db-1", -1)):
            self.assertEqual(ordinal_of("db", name), number, name)
