"""Tests for L{kubetwist.controllers.workloads.statefulset}, C{statefulpods} and C{history}."""

from __future__ import annotations

from kubetwist.controllers.workloads.history import REVISION_LABEL
from kubetwist.controllers.workloads.statefulset import StatefulSetController
from tests.controllers.workloads.statefulsetcase import LABELS, StatefulSetTestCase, template


class StatefulSetTests(StatefulSetTestCase):
    """Pods of StatefulSets."""

    def test_ordered(self) -> None:
        """A pod is created when its predecessors are running. Each has its name, labels and claim."""
        self.set_of()
        self.settle()
        self.assertEqual(self.pod_names(), ["db-0"])
        self.run_pod("db-0")
        self.settle()
        self.assertEqual(self.pod_names(), ["db-0", "db-1"])
        self.run_pods()
        self.assertEqual(self.pod_names(), ["db-0", "db-1", "db-2"])
        self.assertEqual(self.claims(), ["data-db-0", "data-db-1", "data-db-2"])
        pod = self.pods()[1]
        (revision,) = self.names("controllerrevisions", "default", "apps")
        self.assertEqual(
            pod["metadata"]["labels"],
            {
                **LABELS,
                "statefulset.kubernetes.io/pod-name": "db-1",
                "apps.kubernetes.io/pod-index": "1",
                REVISION_LABEL: revision,
            },
        )
        self.assertEqual((pod["spec"]["hostname"], pod["spec"]["subdomain"]), ("db-1", "db"))
        self.assertIn({"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}, pod["spec"]["volumes"])
        self.assertEqual(
            self.status(),
            {
                "observedGeneration": 1,
                "replicas": 3,
                "readyReplicas": 3,
                "availableReplicas": 3,
                "currentReplicas": 3,
                "updatedReplicas": 3,
                "currentRevision": revision,
                "updateRevision": revision,
                "collisionCount": 0,
            },
        )

    def test_parallel(self) -> None:
        """With the policy Parallel all pods are created at once."""
        self.set_of(podManagementPolicy="Parallel")
        self.settle()
        self.assertEqual(self.pod_names(), ["db-0", "db-1", "db-2"])
        self.edit(replicas=0)
        self.settle()
        self.assertEqual(self.pod_names(), [])

    def test_scale_down(self) -> None:
        """Scaling down deletes the highest ordinal first, and keeps its claim."""
        self.set_of()
        self.run_pods()
        self.change("pods", "db-2", lambda pod: pod["metadata"].update(finalizers=["a.io/b"]), "default")
        self.edit(replicas=1)
        self.settle()
        self.assertEqual(self.pod_names(), ["db-0", "db-1", "db-2"])
        self.change("pods", "db-2", lambda pod: pod["metadata"].pop("finalizers"), "default")
        self.settle()
        self.assertEqual(self.pod_names(), ["db-0"])
        self.assertEqual(len(self.claims()), 3)
        self.assertEqual(self.status()["replicas"], 1)

    def test_rolling_update(self) -> None:
        """An update replaces pods from the highest to the lowest ordinal, and waits for each."""
        self.set_of()
        self.run_pods()
        before = self.status()["currentRevision"]
        self.edit(template=template("b"))
        self.settle()
        self.assertEqual(self.images(), ["a", "a", "b"])
        self.assertEqual(self.status()["currentRevision"], before)
        self.assertNotEqual(self.status()["updateRevision"], before)
        self.min_ready_pods = 3
        self.run_pods()
        self.assertEqual(self.images(), ["b", "b", "b"])
        self.assertEqual(self.min_ready_pods, 2)
        status = self.status()
        self.assertEqual(status["currentRevision"], status["updateRevision"])
        self.assertEqual(status["currentReplicas"], 3)

    def test_partition(self) -> None:
        """Pods below the partition keep the old template, also when they are recreated."""
        self.set_of(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
        self.run_pods()
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(self.images(), ["a", "a", "b"])
        self.remove("pods", "db-0", "default")
        self.run_pods()
        self.assertEqual(self.images(), ["a", "a", "b"])
        self.edit(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
        self.run_pods()
        self.assertEqual(self.images(), ["b", "b", "b"])

    def test_on_delete(self) -> None:
        """With OnDelete a pod is updated when it is deleted."""
        self.set_of(updateStrategy={"type": "OnDelete"})
        self.run_pods()
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(self.images(), ["a", "a", "a"])
        self.remove("pods", "db-1", "default")
        self.run_pods()
        self.assertEqual(self.images(), ["a", "b", "a"])

    def test_rollback(self) -> None:
        """A rollback uses the old revision, with the highest number."""
        self.set_of(1)
        self.run_pods()
        first = self.status()["updateRevision"]
        self.edit(template=template("b"))
        self.run_pods()
        self.edit(template=template("a"))
        self.run_pods()
        self.assertEqual(self.status()["updateRevision"], first)
        self.assertEqual(self.find("controllerrevisions", first, "default", "apps")["revision"], 3)
        self.assertEqual(len(self.names("controllerrevisions", "default", "apps")), 2)

    def test_history_limit(self) -> None:
        """Unused revisions are kept up to the history limit."""
        self.set_of(1, revisionHistoryLimit=1)
        for image in "abcd":
            self.edit(template=template(image))
            self.run_pods()
        self.assertEqual(len(self.names("controllerrevisions", "default", "apps")), 2)

    def test_failed_pod(self) -> None:
        """A failed pod is recreated."""
        self.set_of(1)
        self.run_pods()
        uid = self.pods()[0]["metadata"]["uid"]
        self.change("pods", "db-0", lambda pod: pod["status"].update(phase="Failed"), "default", subresource="status")
        self.run_pods()
        self.assertNotEqual(self.pods()[0]["metadata"]["uid"], uid)
        reasons = {self.find("events", name, "default")["reason"] for name in self.names("events", "default")}
        self.assertIn("RecreatingFailedPod", reasons)

    def test_ordinals(self) -> None:
        """Ordinals start at the start ordinal."""
        self.set_of(2, ordinals={"start": 5})
        self.run_pods()
        self.assertEqual(self.pod_names(), ["db-5", "db-6"])

    def test_min_ready_seconds(self) -> None:
        """The next pod is created when the previous one has been ready for minReadySeconds."""
        self.set_of(2, minReadySeconds=30)
        self.settle()
        self.run_pod("db-0")
        self.settle(29)
        self.assertEqual(self.pod_names(), ["db-0"])
        self.settle(2)
        self.assertEqual(self.pod_names(), ["db-0", "db-1"])

    def test_faults(self) -> None:
        """With every tenth write failing, an update completes."""
        self.set_of()
        self.run_pods()
        self.edit(template=template("b"))
        for _ in range(12):
            self.backend.fails = lambda number: number % 10 == 0
            self.settle(30)
            self.backend.fails = lambda number: False
            for pod in self.pods():
                if not pod["status"].get("conditions"):
                    self.run_pod(pod["metadata"]["name"])
        self.assertEqual(self.images(), ["b", "b", "b"])
        self.assertEqual(self.status()["currentReplicas"], 3)

    def test_restart(self) -> None:
        """An update continues after a kill."""
        self.set_of()
        self.run_pods()
        self.edit(template=template("b"))
        for _ in range(4):
            self.restart(StatefulSetController)
        self.run_pods()
        self.assertEqual(self.images(), ["b", "b", "b"])
