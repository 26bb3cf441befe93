"""Tests of L{kubetwist.registry.core.pod.defaults}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import CONTAINER, defaulted


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
