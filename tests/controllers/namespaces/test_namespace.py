"""Tests for L{kubetwist.controllers.namespaces.namespace} and L{kubetwist.controllers.namespaces.conditions}."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import format_time
from kubetwist.controllers.namespaces.namespace import NamespaceController
from tests.controllers.harness import START, ControllerTestCase


class NamespaceControllerTests(ControllerTestCase):
    """Deletion of namespaces."""

    resources = ("namespaces", "configmaps", "secrets", "pods", "services", "events", "leases")

    def setUp(self) -> None:
        """Create two namespaces with objects."""
        super().setUp()
        for name in ("one", "two"):
            self.make("namespaces", name, spec={"finalizers": ["kubernetes"]})
            self.make("configmaps", "a", name)
            self.make("secrets", "a", name)
            self.make("leases", "a", name, "coordination.k8s.io")

    def pod(self, name: str, grace: int = 30, **metadata: Any) -> Any:
        """Create a pod on a node."""
        spec = {
            "containers": [{"name": "c", "image": "i"}],
            "nodeName": "n",
            "terminationGracePeriodSeconds": grace,
        }
        return self.make("pods", name, "one", spec=spec, metadata=metadata)

    def condition(self, type: str) -> Any:
        """Return a condition of the namespace."""
        conditions = self.find("namespaces", "one")["status"]["conditions"]
        return next(one for one in conditions if one["type"] == type)

    def test_content_is_deleted(self) -> None:
        """Deleting a namespace removes its content, and no objects of other namespaces."""
        self.start(NamespaceController)
        self.remove("namespaces", "one")
        self.settle()
        self.assertEqual(self.names("namespaces"), ["two"])
        for resource, group in (("configmaps", ""), ("secrets", ""), ("leases", "coordination.k8s.io")):
            self.assertEqual(self.names(resource, "one", group), [])
            self.assertEqual(self.names(resource, "two", group), ["a"])

    def test_deleted_before(self) -> None:
        """A namespace that was deleted while no controller ran is removed after a start."""
        self.remove("namespaces", "one")
        self.start(NamespaceController)
        self.assertEqual(self.names("namespaces"), ["two"])

    def test_other_finalizers(self) -> None:
        """Finalizers of other clients in the spec are kept, and the namespace remains until they are removed."""
        self.change(
            "namespaces", "one", lambda obj: obj["spec"]["finalizers"].append("example.com/x"), subresource="finalize"
        )
        self.start(NamespaceController)
        self.remove("namespaces", "one")
        self.settle(60)
        self.assertEqual(self.find("namespaces", "one")["spec"]["finalizers"], ["example.com/x"])
        self.assertEqual(self.names("configmaps", "one"), [])

    def test_pods_first(self) -> None:
        """Pods are deleted gracefully first. Other objects are deleted as soon as no pods remain."""
        self.pod("p")
        self.start(NamespaceController)
        self.remove("namespaces", "one")
        self.settle(1)
        self.assertEqual(self.find("pods", "p", "one")["metadata"]["deletionGracePeriodSeconds"], 30)
        self.assertEqual(self.names("secrets", "one"), ["a"])
        self.assertEqual(
            self.condition("NamespaceContentRemaining")["message"],
            "Some resources are remaining: pods. has 1 resource instances",
        )
        self.remove("pods", "p", "one", grace=0)
        self.settle(1)
        self.assertEqual(self.names("namespaces"), ["two"])

    def test_finalizers(self) -> None:
        """Objects with finalizers block deletion of the namespace and are in its conditions."""
        self.make("configmaps", "held", "one", metadata={"finalizers": ["example.com/wait"]})
        self.make("secrets", "held", "one", metadata={"finalizers": ["example.com/wait"]})
        self.start(NamespaceController)
        self.remove("namespaces", "one")
        self.settle(100)
        self.assertEqual(
            self.condition("NamespaceFinalizersRemaining")["message"],
            "Some content in the namespace has finalizers remaining: example.com/wait in 2 resource instances",
        )
        self.assertEqual(self.condition("NamespaceFinalizersRemaining")["lastTransitionTime"], format_time(START))
        self.assertEqual(self.condition("NamespaceDeletionContentFailure")["status"], "False")
        for resource in ("configmaps", "secrets"):
            self.change(resource, "held", lambda obj: obj["metadata"].pop("finalizers"), "one")
        self.settle(1)
        self.assertEqual(self.names("namespaces"), ["two"])

    def test_resync_interval(self) -> None:
        """A waiting namespace is synced every few seconds."""
        self.make("configmaps", "held", "one", metadata={"finalizers": ["example.com/wait"]})
        controller = self.start(NamespaceController)
        self.remove("namespaces", "one")
        self.settle(80)
        self.assertLess(controller.queue.metrics.done, 15)

    def test_stuck(self) -> None:
        """Pods that remain after their grace period are a failure."""
        self.pod("p", grace=5)
        self.start(NamespaceController)
        self.remove("namespaces", "one")
        self.settle(60)
        failure = self.condition("NamespaceDeletionContentFailure")
        self.assertEqual((failure["status"], failure["reason"]), ("True", "ContentDeletionFailed"))
        self.assertEqual(
            failure["message"],
            "Failed to delete all resource types, 1 remaining: "
            "unexpected items still remain in namespace: one for gvr: /v1, Resource=pods",
        )
        self.remove("pods", "p", "one", grace=0)
        self.settle(1)
        self.assertEqual(self.names("namespaces"), ["two"])

    def test_failure(self) -> None:
        """A failed deletion is in a condition and is retried."""
        self.start(NamespaceController)
        self.remove("namespaces", "one")
        before = self.backend.commits
        self.backend.fails = lambda number: number == before + 1
        self.settle()
        self.backend.fails = lambda number: False
        self.settle(5)
        self.assertEqual(self.names("namespaces"), ["two"])
        self.flushLoggedErrors()

    def test_faults(self) -> None:
        """A namespace is deleted although every tenth write fails."""
        self.faults()

    def test_conflicts(self) -> None:
        """A namespace is deleted although every tenth write conflicts."""
        self.backend.conflicts = True
        self.faults()

    def faults(self) -> None:
        """Delete the namespace with injected failures."""
        for number in range(100):
            self.make("configmaps", f"m{number}", "one")
        self.start(NamespaceController)
        self.remove("namespaces", "one")
        self.backend.fails = lambda number: number % 10 == 0
        self.settle(120)
        self.assertEqual(self.names("namespaces"), ["two"])
        self.assertEqual(self.names("configmaps", "one"), [])
        self.flushLoggedErrors()

    def test_killed(self) -> None:
        """A deletion that is interrupted by a kill at any write is completed after the restart."""
        for commits in range(7):
            if self.find("namespaces", "one") is None:
                self.make("namespaces", "one", spec={"finalizers": ["kubernetes"]})
            for number in range(4):
                self.make("secrets", f"s{number}", "one")
            self.start(NamespaceController)
            self.remove("namespaces", "one")
            last = self.backend.commits + commits
            self.backend.fails = lambda number, last=last: number > last
            self.settle(0.001)
            self.backend.fails = lambda number: False
            self.restart(NamespaceController)
            self.settle(5)
            self.assertEqual(self.names("namespaces"), ["two"])
            self.restart()
        self.flushLoggedErrors()
