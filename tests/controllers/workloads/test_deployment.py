"""Tests for L{kubetwist.controllers.workloads.deployment} and L{kubetwist.controllers.workloads.rollout}."""

from __future__ import annotations

from typing import Any

from kubetwist.controllers.workloads import rollout
from kubetwist.controllers.workloads.deployment import DeploymentController
from kubetwist.controllers.workloads.replicaset import ReplicaSetController
from tests.controllers.kubelet import KubeletTestCase
from tests.controllers.workloads.deploymentvalues import LABELS


def template(image: str) -> Any:
    """Return a pod template."""
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}]}}


class DeploymentTests(KubeletTestCase):
    """ReplicaSets of Deployments."""

    resources = ("namespaces", "pods", "replicasets", "deployments", "events")

    def setUp(self) -> None:
        """Create a namespace and start the controllers."""
        super().setUp()
        self.make("namespaces", "default")
        self.start(DeploymentController, ReplicaSetController)

    def deploy(self, replicas: int = 3, image: str = "a", **spec: Any) -> Any:
        """Create a Deployment."""
        spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(image), **spec}
        return self.make("deployments", "web", "default", "apps", spec=spec)

    def edit(self, **spec: Any) -> None:
        """Change the spec."""
        self.change("deployments", "web", lambda obj: obj["spec"].update(spec), "default", "apps")

    @property
    def deployment(self) -> Any:
        """Return the current Deployment."""
        return self.find("deployments", "web", "default", "apps")

    def condition(self, kind: str) -> Any:
        """Return a condition of the Deployment."""
        return rollout.find_condition(self.deployment["status"], kind)

    def sets(self) -> dict[str, Any]:
        """Return the ReplicaSets, by image."""
        found = [
            self.find("replicasets", name, "default", "apps") for name in self.names("replicasets", "default", "apps")
        ]
        return {one["spec"]["template"]["spec"]["containers"][0]["image"]: one for one in found}

    def sizes(self) -> dict[str, int]:
        """Return the replicas of the ReplicaSets, by image."""
        return {image: one["spec"]["replicas"] for image, one in self.sets().items()}

    def test_first(self) -> None:
        """A ReplicaSet is created, with the hash of its template in its name and labels."""
        self.deploy()
        self.run_pods()
        (new,) = self.sets().values()
        name_hash = new["metadata"]["labels"]["pod-template-hash"]
        self.assertEqual(new["metadata"]["name"], f"web-{name_hash}")
        self.assertEqual(new["spec"]["selector"]["matchLabels"], {**LABELS, "pod-template-hash": name_hash})
        self.assertEqual(
            new["metadata"]["annotations"],
            {rollout.REVISION: "1", rollout.DESIRED: "3", rollout.MAXIMUM: "4"},
        )
        self.assertEqual({pod["metadata"]["labels"]["pod-template-hash"] for pod in self.pods()}, {name_hash})
        found = self.deployment
        self.assertEqual(found["metadata"]["annotations"][rollout.REVISION], "1")
        status = found["status"]
        self.assertEqual(
            {name: status[name] for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")},
            {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3},
        )
        self.assertNotIn("unavailableReplicas", status)
        progress, available = self.condition("Progressing"), self.condition("Available")
        self.assertEqual((progress["status"], progress["reason"]), ("True", "NewReplicaSetAvailable"))
        self.assertEqual(progress["message"], f'ReplicaSet "web-{name_hash}" has successfully progressed.')
        self.assertEqual((available["status"], available["reason"]), ("True", "MinimumReplicasAvailable"))

    def test_rolling_update(self) -> None:
        """An update respects maxSurge and maxUnavailable at any time."""
        self.deploy(4, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}})
        self.run_pods()
        self.max_pods, self.min_ready_pods = 0, 10**6
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(self.sizes(), {"a": 0, "b": 4})
        self.assertLessEqual(self.max_pods, 5)
        self.assertGreaterEqual(self.min_ready_pods, 3)
        self.assertEqual(self.deployment["metadata"]["annotations"][rollout.REVISION], "2")

    def test_rollback(self) -> None:
        """A rollback uses the old ReplicaSet with a new revision, and its history lists the old ones."""
        self.deploy()
        self.run_pods()
        first = self.sets()["a"]["metadata"]["uid"]
        self.edit(template=template("b"))
        self.run_pods()
        self.edit(template=template("a"))
        self.run_pods()
        self.assertEqual(self.sizes(), {"a": 3, "b": 0})
        back = self.sets()["a"]["metadata"]
        self.assertEqual(back["uid"], first)
        self.assertEqual(back["annotations"][rollout.REVISION], "3")
        self.assertEqual(back["annotations"][rollout.HISTORY], "1")

    def test_broken_update(self) -> None:
        """A failing update keeps enough old pods, and times out after its progress deadline."""
        self.deploy(4, progressDeadlineSeconds=60)
        self.run_pods()
        self.broken.add("b")
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(self.sizes(), {"a": 3, "b": 2})
        self.assertEqual(self.condition("Progressing")["reason"], "ReplicaSetUpdated")
        self.settle(62)
        progress = self.condition("Progressing")
        self.assertEqual((progress["status"], progress["reason"]), ("False", "ProgressDeadlineExceeded"))
        self.assertTrue(progress["message"].endswith("has timed out progressing."))
        self.edit(template=template("c"))
        self.run_pods()
        self.assertEqual(self.sizes(), {"a": 0, "b": 0, "c": 4})
        self.assertEqual(self.condition("Progressing")["reason"], "NewReplicaSetAvailable")

    def test_recreate(self) -> None:
        """With the strategy Recreate new pods are created after all old ones have terminated."""
        self.deploy(strategy={"type": "Recreate"})
        self.run_pods()
        keep = self.pods()[0]["metadata"]["name"]
        self.change("pods", keep, lambda pod: pod["metadata"].update(finalizers=["a.io/b"]), "default")
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual([pod["metadata"]["name"] for pod in self.pods()], [keep])
        self.assertEqual(self.sizes(), {"a": 0})
        self.change("pods", keep, lambda pod: pod["metadata"].pop("finalizers"), "default")
        self.run_pods()
        self.assertEqual(self.sizes(), {"a": 0, "b": 3})
        self.assertEqual(len(self.pods()), 3)

    def test_pause(self) -> None:
        """A paused Deployment is scaled, but not updated."""
        self.deploy()
        self.run_pods()
        self.edit(paused=True, template=template("b"), replicas=5)
        self.run_pods()
        self.assertEqual(self.sizes(), {"a": 5})
        self.edit(paused=False)
        self.run_pods()
        self.assertEqual(self.sizes(), {"a": 0, "b": 5})

    def test_paused_conditions(self) -> None:
        """A paused deployment has a condition and no progress deadline."""
        self.broken.add("a")
        self.deploy(progressDeadlineSeconds=60)
        self.settle()
        self.edit(paused=True)
        self.settle(100)
        self.assertEqual(self.condition("Progressing")["reason"], "DeploymentPaused")
        self.edit(paused=False)
        self.settle()
        self.assertEqual(self.condition("Progressing")["reason"], "DeploymentResumed")

    def test_proportional_scaling(self) -> None:
        """Scaling during an update changes old and new ReplicaSets proportionally."""
        self.deploy(10, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}})
        self.run_pods()
        self.broken.add("b")
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(self.sizes(), {"a": 8, "b": 5})
        self.edit(replicas=15)
        self.settle()
        # Documented in kubernetes' concepts page on Deployments: the larger set gets 3 of the 5 additional replicas.
        self.assertEqual(self.sizes(), {"a": 11, "b": 7})

    def test_history_limit(self) -> None:
        """Old ReplicaSets are kept up to the history limit."""
        self.deploy(1, revisionHistoryLimit=1)
        for image in "abcd":
            self.edit(template=template(image))
            self.run_pods()
        self.assertEqual(self.sizes(), {"c": 0, "d": 1})

    def test_collision(self) -> None:
        """A hash collision is resolved by another name."""
        name_hash = rollout.template_hash(self.defaulted(), 0)
        spec = {"replicas": 0, "selector": {"matchLabels": {"x": "y"}}, "template": template("z")}
        spec["template"]["metadata"]["labels"] = {"x": "y"}
        self.make("replicasets", f"web-{name_hash}", "default", "apps", spec=spec)
        self.deploy()
        self.run_pods()
        self.assertEqual(self.deployment["status"]["collisionCount"], 1)
        self.assertEqual(self.sizes(), {"z": 0, "a": 3})

    def defaulted(self) -> Any:
        """Return the template with defaults."""
        self.make(
            "deployments",
            "other",
            "default",
            "apps",
            spec={"replicas": 0, "paused": True, "selector": {"matchLabels": LABELS}, "template": template("a")},
        )
        found = self.find("deployments", "other", "default", "apps")["spec"]["template"]
        self.remove("deployments", "other", "default", "apps")
        self.settle()
        return found

    def test_annotations(self) -> None:
        """Annotations are copied to the ReplicaSet, except those about the Deployment itself."""
        self.deploy()

        def annotate(obj: Any) -> None:
            obj["metadata"].setdefault("annotations", {}).update(
                {"kubernetes.io/change-cause": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
            )

        self.change("deployments", "web", annotate, "default", "apps")
        self.run_pods()
        (new,) = self.sets().values()
        self.assertEqual(new["metadata"]["annotations"]["kubernetes.io/change-cause"], "x")
        self.assertNotIn("kubectl.kubernetes.io/last-applied-configuration", new["metadata"]["annotations"])

    def test_adoption(self) -> None:
        """A ReplicaSet without a controller is adopted."""
        made = self.deploy()
        self.run_pods()
        (name,) = self.names("replicasets", "default", "apps")
        self.change("replicasets", name, lambda obj: obj["metadata"].pop("ownerReferences"), "default", "apps")
        self.settle()
        (owner,) = self.find("replicasets", name, "default", "apps")["metadata"]["ownerReferences"]
        self.assertEqual(owner["uid"], made["metadata"]["uid"])

    def test_events(self) -> None:
        """Each scaling records an event."""
        self.deploy()
        self.run_pods()
        events = [self.find("events", name, "default") for name in self.names("events", "default")]
        (messages,) = [one for one in events if one["reason"] == "ScalingReplicaSet"]
        (name,) = self.names("replicasets", "default", "apps")
        self.assertEqual(messages["message"], f"Scaled up replica set {name} from 0 to 3")
        self.assertEqual(messages["involvedObject"]["kind"], "Deployment")

    def test_faults(self) -> None:
        """With every tenth write failing, an update completes."""
        self.deploy()
        self.run_pods()
        self.backend.fails = lambda number: number % 10 == 0
        self.edit_with_faults(template("b"))
        for _ in range(60):
            self.settle(30)
            for pod in self.pods():
                if not pod.get("status", {}).get("conditions"):
                    self.backend.fails = lambda number: False
                    self.run_pods()
                    self.backend.fails = lambda number: number % 10 == 0
        self.assertEqual(self.sizes(), {"a": 0, "b": 3})

    def edit_with_faults(self, new: Any) -> None:
        """Change the template without a fault."""
        failing, self.backend.fails = self.backend.fails, lambda number: False
        self.edit(template=new)
        self.backend.fails = failing

    def test_restart(self) -> None:
        """An update continues after a kill."""
        self.deploy(6)
        self.run_pods()
        self.edit(template=template("b"))
        for _ in range(8):
            self.restart(DeploymentController, ReplicaSetController)
        self.run_pods()
        self.assertEqual(self.sizes(), {"a": 0, "b": 6})
