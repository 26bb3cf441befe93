"""Tests for L{kubetwist.controllers.autoscaling.horizontal}."""

from __future__ import annotations

from typing import Any

from kubetwist.api.errors import APIStatusError
from kubetwist.api.times import format_time
from kubetwist.controllers.autoscaling.horizontal import HorizontalController
from tests.controllers.autoscaling.fakemetrics import FakeMetrics
from tests.controllers.harness import ControllerTestCase

CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


class HorizontalControllerTests(ControllerTestCase):
    """An autoscaler of a Deployment, whose pods the tests create. Each pod requests one CPU."""

    resources = ("namespaces", "deployments", "pods", "horizontalpodautoscalers", "events")

    def setUp(self) -> None:
        """Create a namespace, and start the controller."""
        super().setUp()
        self.make("namespaces", "default")
        self.metrics = FakeMetrics(self.clock.seconds())
        self.controller = self.start(lambda context: HorizontalController(context, self.metrics))

    def deployment(self, replicas: int, name: str = "web") -> None:
        """Create a Deployment with pods that have been ready for an hour."""
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        self.make("deployments", name, "default", "apps", spec=spec, status={"replicas": replicas})
        for number in range(replicas):
            self.pod(f"{name}-{number}", name)

    def pod(self, name: str, app: str = "web") -> None:
        """Create a pod that has been ready for an hour."""
        begun = format_time(self.clock.seconds() - 3600)
        container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "1"}}}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": begun}
        status = {"phase": "Running", "startTime": begun, "conditions": [ready]}
        self.make(
            "pods", name, "default", metadata={"labels": {"app": app}}, spec={"containers": [container]}, status=status
        )

    def autoscaler(self, *metrics: Any, name: str = "web", **spec: Any) -> None:
        """Create an autoscaler for 1 to 10 replicas."""
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        whole = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10, "metrics": list(metrics or (CPU,))}
        self.make("horizontalpodautoscalers", name, "default", "autoscaling", spec={**whole, **spec})

    def use(self, *thousandths: int) -> None:
        """Set the usage of the pods, and let one period pass."""
        self.metrics.now = self.clock.seconds()
        self.metrics.usage = {f"web-{index}": value for index, value in enumerate(thousandths)}
        self.settle(15)

    @property
    def replicas(self) -> int:
        """Return the desired replicas of the Deployment."""
        return int(self.find("deployments", "web", "default", "apps")["spec"]["replicas"])

    def status(self, name: str = "web") -> Any:
        """Return the status of an autoscaler."""
        return self.find("horizontalpodautoscalers", name, "default", "autoscaling")["status"]

    def conditions(self, name: str = "web") -> dict[str, tuple[str, str]]:
        """Return status and reason of the conditions."""
        return {one["type"]: (one["status"], one["reason"]) for one in self.status(name)["conditions"]}

    def events(self) -> list[tuple[str, str, str]]:
        """Return the events in the order of their creation."""
        self.settle()
        found = [self.find("events", one, "default") for one in self.names("events", "default")]
        return [(one["type"], one["reason"], one["message"]) for one in found]

    def test_scale_up(self) -> None:
        """A usage above the target adds replicas, with status, conditions and an event."""
        self.deployment(2)
        self.autoscaler()
        self.use(900, 700)
        self.assertEqual(self.replicas, 4)
        status = self.status()
        self.assertEqual((status["currentReplicas"], status["desiredReplicas"]), (2, 4))
        self.assertEqual(status["lastScaleTime"], format_time(self.clock.seconds()))
        value = {"averageUtilization": 80, "averageValue": "800m"}
        self.assertEqual(
            status["currentMetrics"], [{"type": "Resource", "resource": {"name": "cpu", "current": value}}]
        )
        self.assertEqual(
            self.conditions(),
            {
                "AbleToScale": ("True", "SucceededRescale"),
                "ScalingActive": ("True", "ValidMetricFound"),
                "ScalingLimited": ("False", "DesiredWithinRange"),
            },
        )
        reason = "New size: 4; reason: cpu resource utilization (percentage of request) above target"
        self.assertEqual(self.events(), [("Normal", "SuccessfulRescale", reason)])
        (entry,) = [
            one
            for one in self.find("deployments", "web", "default", "apps")["metadata"]["managedFields"]
            if one.get("subresource") == "scale"
        ]
        self.assertEqual(entry["manager"], "kube-controller-manager")

    def test_period(self) -> None:
        """An autoscaler is synced 15 seconds after its creation, and every 15 seconds from then on."""
        self.deployment(1)
        self.autoscaler()
        self.metrics.usage = {"web-0": 900}
        self.settle(14)
        self.assertEqual(self.replicas, 1)
        self.settle(1)
        self.assertEqual(self.replicas, 2)

    def test_scale_down(self) -> None:
        """Replicas are removed after five minutes of lower usage."""
        self.deployment(4)
        self.autoscaler()
        self.use(500, 500, 500, 500)
        self.use(100, 100, 100, 100)
        self.assertEqual(self.replicas, 4)
        self.assertEqual(self.conditions()["AbleToScale"], ("True", "ScaleDownStabilized"))
        self.settle(300)
        self.assertEqual(self.replicas, 1)
        self.assertEqual(
            self.events(), [("Normal", "SuccessfulRescale", "New size: 1; reason: All metrics below target")]
        )

    def test_behavior(self) -> None:
        """The policies of the behavior hold over several syncs."""
        up = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
        self.deployment(2)
        self.autoscaler(behavior={"scaleUp": up})
        self.use(2000, 2000)
        self.assertEqual(self.replicas, 3)
        self.assertEqual(self.conditions()["ScalingLimited"], ("True", "ScaleUpLimit"))
        self.pod("web-2")
        self.use(2000, 2000, 2000)
        self.assertEqual(self.replicas, 3)
        self.settle(60)
        self.assertEqual(self.replicas, 4)

    def test_bounds(self) -> None:
        """Replicas outside of the bounds are corrected without metrics."""
        self.metrics.usage = None
        self.deployment(12)
        self.autoscaler()
        self.settle(15)
        self.assertEqual(self.replicas, 10)
        self.change(
            "horizontalpodautoscalers",
            "web",
            lambda one: one["spec"].update(minReplicas=20, maxReplicas=30),
            "default",
            "autoscaling",
        )
        self.settle(15)
        self.assertEqual(self.replicas, 20)
        self.assertEqual(
            [message for _, reason, message in self.events() if reason == "SuccessfulRescale"],
            [
                "New size: 10; reason: Current number of replicas above Spec.MaxReplicas",
                "New size: 20; reason: Current number of replicas below Spec.MinReplicas",
            ],
        )

    def test_disabled(self) -> None:
        """A target with zero replicas is not scaled."""
        self.deployment(0)
        self.autoscaler()
        self.settle(30)
        self.assertEqual(self.replicas, 0)
        self.assertEqual(self.conditions()["ScalingActive"], ("False", "ScalingDisabled"))

    def test_no_metrics(self) -> None:
        """Without metrics nothing is scaled; the condition and the events have the reason."""
        self.deployment(2)
        self.autoscaler()
        self.metrics.usage = None
        self.settle(15)
        text = "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics"
        condition = next(one for one in self.status()["conditions"] if one["type"] == "ScalingActive")
        self.assertEqual((condition["status"], condition["reason"]), ("False", "FailedGetResourceMetric"))
        self.assertEqual(condition["message"], f"the HPA was unable to compute the replica count: {text}")
        first = f"first error is: failed to get cpu resource metric value: {text}"
        self.assertEqual(
            self.events(),
            [
                ("Warning", "FailedGetResourceMetric", text),
                ("Warning", "FailedComputeMetricsReplicas", f"invalid metrics (1 invalid out of 1), {first}"),
            ],
        )
        self.assertEqual(self.replicas, 2)
        self.use(900, 900)
        self.assertEqual(self.replicas, 4)

    def test_some_metrics(self) -> None:
        """If some metrics are missing, further ones may add replicas, but not remove them."""
        queue = {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "1"}}}
        self.deployment(2)
        self.autoscaler(CPU, queue)
        self.use(900, 900)
        self.assertEqual(self.replicas, 4)
        self.assertEqual(self.conditions()["ScalingActive"], ("True", "ValidMetricFound"))
        self.pod("web-2")
        self.pod("web-3")
        self.use(100, 100, 100, 100)
        self.settle(400)
        self.assertEqual(self.replicas, 4)
        self.assertEqual(self.conditions()["ScalingActive"], ("False", "FailedGetExternalMetric"))
        self.assertEqual([one["type"] for one in self.status()["currentMetrics"]], ["Resource", ""])

    def test_highest_metric(self) -> None:
        """Of several metrics the one that demands the most replicas decides."""
        queue = {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "AverageValue"}}}
        queue["external"]["target"]["averageValue"] = "10"  # type: ignore[index] # it is a dictionary
        self.deployment(2)
        self.autoscaler(CPU, queue)
        self.metrics.custom["q"] = 30_000
        self.use(500, 500)
        self.assertEqual(self.replicas, 3)
        self.assertEqual(
            [message for _, _, message in self.events()], ["New size: 3; reason: external metric q(nil) above target"]
        )

    def test_tolerance(self) -> None:
        """The behavior may state a tolerance."""
        self.deployment(2)
        self.autoscaler(behavior={"scaleUp": {"tolerance": "300m"}, "scaleDown": {}})
        self.use(640, 640)
        self.assertEqual(self.replicas, 2)
        self.use(660, 660)
        self.assertEqual(self.replicas, 3)

    def test_no_target(self) -> None:
        """Without its target an autoscaler waits."""
        self.autoscaler()
        self.settle(15)
        text = 'deployments.apps "web" not found'
        condition = self.status()["conditions"][0]
        message = f"the HPA controller was unable to get the target's current scale: {text}"
        self.assertEqual(condition["message"], message)
        self.assertEqual(self.conditions(), {"AbleToScale": ("False", "FailedGetScale")})
        self.assertEqual(self.events(), [("Warning", "FailedGetScale", text)])
        self.deployment(1)
        self.use(900)
        self.assertEqual(self.replicas, 2)

    def test_ambiguous(self) -> None:
        """Two autoscalers of the same pods scale nothing."""
        self.deployment(2)
        self.autoscaler()
        self.autoscaler(name="other")
        self.use(900, 900)
        self.settle(15)
        self.assertEqual(self.conditions()["ScalingActive"], ("False", "AmbiguousSelector"))
        self.assertIn(
            "pods by selector app=web are controlled by multiple HPAs: [{other default} {web default}]",
            [message for _, _, message in self.events()],
        )
        self.remove("horizontalpodautoscalers", "other", "default", "autoscaling")
        self.settle(30)
        self.assertEqual(self.conditions()["ScalingActive"], ("True", "ValidMetricFound"))

    def test_refused(self) -> None:
        """A refused write of the scale is an event and a condition."""
        self.deployment(2)
        self.autoscaler()

        async def refuse(target: Any, replicas: int) -> None:
            raise APIStatusError.bad_request("no")

        self.patch(self.controller.targets, "update", refuse)
        self.use(900, 900)
        self.assertEqual(self.replicas, 2)
        self.assertEqual(self.conditions()["AbleToScale"], ("False", "FailedUpdateScale"))
        reason = "cpu resource utilization (percentage of request) above target"
        self.assertEqual(self.events(), [("Warning", "FailedRescale", f"New size: 4; reason: {reason}; error: no")])

    def test_deleted(self) -> None:
        """Nothing is remembered of a deleted autoscaler."""
        self.deployment(2)
        self.autoscaler()
        self.use(500, 500)
        self.remove("horizontalpodautoscalers", "web", "default", "autoscaling")
        self.settle(30)
        self.assertEqual((self.controller._histories, self.controller._selectors), ({}, {}))
