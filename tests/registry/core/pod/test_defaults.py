"""Tests of L{kubetwist.registry.core.pod.defaults}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import Release
from tests.registry.gatetools import created, gated, update_errors, updated
from tests.registry.strategytools import CONTAINER, copy, defaulted


class DefaultingTests(SynchronousTestCase):
    """Tests of the defaults of pods."""

    def test_pod(self) -> None:
        """A pod with one container gets all fields that kubelets and schedulers require."""
        spec = defaulted("", "Pod", spec={"containers": [{**CONTAINER, "ports": [{"containerPort": 80}]}]})["spec"]
        self.assertEqual(
            spec,
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "app:1",
                        "ports": [{"containerPort": 80, "protocol": "TCP"}],
                        "imagePullPolicy": "IfNotPresent",
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                        "resources": {},
                    }
                ],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30,
                "enableServiceLinks": True,
            },
        )

    def test_pull_policy(self) -> None:
        """The pull policy is Always for an explicit or implicit tag latest, and else IfNotPresent."""
        for image, policy in (
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("host:5000/nginx", "Always"),
            ("nginx:1.2", "IfNotPresent"),
            ("nginx@sha256:0", "IfNotPresent"),
            ("", "IfNotPresent"),
        ):
            spec = defaulted("", "Pod", spec={"containers": [{"name": "c", "image": image}]})["spec"]
            self.assertEqual(spec["containers"][0]["imagePullPolicy"], policy, image)

    def test_requests_follow_limits(self) -> None:
        """Missing requests of a pod are its limits; those of a template stay missing."""
        container = {**CONTAINER, "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}}
        pod = defaulted("", "Pod", spec={"containers": [container]})
        self.assertEqual(pod["spec"]["containers"][0]["resources"]["requests"], {"cpu": "500m", "memory": "1Gi"})
        template = {"spec": {"containers": [{**CONTAINER, "resources": {"limits": {"cpu": "1"}}}]}}
        deployment = defaulted("apps", "Deployment", spec={"template": template})
        self.assertEqual(deployment["spec"]["template"]["spec"]["containers"][0]["resources"], {"limits": {"cpu": "1"}})

    def test_host_network(self) -> None:
        """With the host network, host ports default to container ports."""
        container = {**CONTAINER, "ports": [{"containerPort": 80}]}
        spec = defaulted("", "Pod", spec={"hostNetwork": True, "containers": [container]})["spec"]
        self.assertEqual(spec["containers"][0]["ports"][0]["hostPort"], 80)

    def test_probes_and_variables(self) -> None:
        """Probes get times and thresholds, field references a version."""
        container = {
            **CONTAINER,
            "livenessProbe": {"httpGet": {"port": 80}},
            "readinessProbe": {"grpc": {"port": 1}},
            "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        }
        found = defaulted("", "Pod", spec={"containers": [container]})["spec"]["containers"][0]
        self.assertEqual(
            found["livenessProbe"],
            {
                "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
        )
        self.assertEqual(found["readinessProbe"]["grpc"], {"port": 1, "service": ""})
        self.assertEqual(found["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1")

    def test_volumes(self) -> None:
        """Volume sources get file modes; a volume without a source is an emptyDir."""
        volumes = [
            {"name": "a"},
            {"name": "b", "secret": {"secretName": "s"}},
            {"name": "h", "hostPath": {"path": "/"}},
        ]
        spec = defaulted("", "Pod", spec={"volumes": volumes, "containers": [CONTAINER]})["spec"]
        self.assertEqual(
            spec["volumes"],
            [
                {"name": "a", "emptyDir": {}},
                {"name": "b", "secret": {"secretName": "s", "defaultMode": 420}},
                {"name": "h", "hostPath": {"path": "/", "type": ""}},
            ],
        )


class GateTests(SynchronousTestCase):
    """Tests of defaults that depend on feature gates and releases."""

    def defaults(self, release: Release, spec: dict[str, Any], **gates: bool) -> dict[str, Any]:
        """Return a spec with defaults."""
        obj: dict[str, Any] = copy({"metadata": {"name": "x"}, "spec": {"containers": [CONTAINER], **spec}})
        gated("", "Pod", release, **gates).default(obj)
        result: dict[str, Any] = obj["spec"]
        return result

    def test_pod_resources(self) -> None:
        """The resources of a pod have defaults if their gate is enabled."""
        pages = {"cpu": "1", "hugepages-2Mi": "2Mi"}
        spec = {"containers": [{**CONTAINER, "resources": {"limits": pages}}], "resources": {"limits": {"cpu": "2"}}}
        for release, enabled, resources in (
            ((1, 36), True, {"limits": {"cpu": "2", "hugepages-2Mi": "2Mi"}, "requests": {"cpu": "1", **pages}}),
            ((1, 36), False, {"limits": {"cpu": "2"}}),
            ((1, 32), True, {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}),
        ):
            self.assertEqual(self.defaults(release, spec, PodLevelResources=enabled)["resources"], resources)
        spec["resources"] = {"requests": {"hugepages-2Mi": "4Mi"}}
        self.assertNotIn("limits", self.defaults((1, 34), spec)["resources"])
        self.assertIn("limits", self.defaults((1, 33), spec, PodLevelResources=True)["resources"])

    def test_quality(self) -> None:
        """The resources of a pod determine its quality of service if their gate is enabled."""
        spec = {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
        for enabled, quality in ((True, "Guaranteed"), (False, "BestEffort")):
            obj = created(gated("", "Pod", PodLevelResources=enabled), spec={"containers": [CONTAINER], **spec})
            self.assertEqual(obj["status"]["qosClass"], quality)

    def test_image_volumes(self) -> None:
        """Image volumes have a default pull policy if their gate is enabled."""
        spec = {"volumes": [{"name": "v", "image": {"reference": "r:1"}}]}
        for enabled, image in (
            (True, {"reference": "r:1", "pullPolicy": "IfNotPresent"}),
            (False, {"reference": "r:1"}),
        ):
            volumes = self.defaults((1, 35), spec, ImageVolume=enabled)["volumes"]
            self.assertEqual(volumes, [{"name": "v", "image": image}])

    def test_resize_policies(self) -> None:
        """Until 1.32, containers that request resources have resize policies if the gate is enabled."""
        resources = {"limits": {"cpu": "1", "memory": "1Gi"}}
        container = {**CONTAINER, "resources": resources, "resizePolicy": [{"resourceName": "memory"}]}
        spec = {"containers": [container]}
        cpu = {"resourceName": "cpu", "restartPolicy": "NotRequired"}
        for release, enabled, policies in (
            ((1, 32), True, [{"resourceName": "memory"}, cpu]),
            ((1, 32), False, [{"resourceName": "memory"}]),
            ((1, 33), True, [{"resourceName": "memory"}]),
        ):
            containers = self.defaults(release, spec, InPlacePodVerticalScaling=enabled)["containers"]
            self.assertEqual(containers[0]["resizePolicy"], policies)

    def test_completed_resources(self) -> None:
        """Since 1.37, the resources of new pods are completed, and limits too if all containers have them."""
        containers = [{**CONTAINER, "name": name, "resources": {"limits": {"cpu": "1"}}} for name in ("a", "b")]
        spec = {"containers": containers, "resources": {"requests": {"memory": "1Gi"}}}
        on, off = (gated("", "Pod", (1, 37), PodLevelResourcesFixDefaulting=value) for value in (True, False))
        obj = created(on, spec=spec)
        full = {"limits": {"cpu": "2"}, "requests": {"memory": "1Gi", "cpu": "2"}}
        self.assertEqual(obj["spec"]["resources"], full)
        self.assertEqual(created(off, spec=spec)["spec"]["resources"], spec["resources"])
        self.assertEqual(updated(on, obj, spec=spec)["spec"]["resources"], full)
        self.assertEqual(update_errors(on, obj, spec=spec), [])
        del containers[0]["resources"]
        self.assertEqual(created(on, spec=spec)["spec"]["resources"], spec["resources"])
        self.assertNotIn("resources", created(on, spec={"containers": containers})["spec"])
