"""Tests of L{kubetwist.registry.core.pod.validation.containers}, through the strategy of pods."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.pods import (
    CONTAINER,
    in_container,
    pod,
    problems,
)


class ContainerTests(SynchronousTestCase):
    """Tests of containers."""

    def test_files_of_variables(self) -> None:
        """A file with variables must be in an emptyDir."""

        def with_file(**reference: Any) -> list[str]:
            found = in_container(env=[{"name": "A", "valueFrom": {"fileKeyRef": reference}}])
            return [one.removeprefix("env[0].valueFrom.fileKeyRef.") for one in found]

        self.assertEqual(with_file(key="K", volumeName="e", path="a/b"), [])
        self.assertEqual(
            with_file(),
            ["key: Required value", "volumeName: Required value", "path: Required value", 'volumeName: Not found: ""'],
        )
        self.assertEqual(
            with_file(key="K=", volumeName="p", path="../b"),
            [
                'key: Invalid value: "K=": a valid environment variable name must consist only of printable ASCII '
                "characters other than '='",
                "path: Invalid value: \"../b\": must not contain '..'",
                'volumeName: Invalid value: "p": referenced volume must be of type emptyDir',
            ],
        )
        self.assertEqual(
            in_container(env=[{"name": "A", "valueFrom": {}}]),
            [
                'env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
                "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            ],
        )

    def test_variables_from(self) -> None:
        """Names of sources of variables are validated as prefixes."""
        self.assertEqual(in_container(envFrom=[{"configMapRef": {"name": "a-"}}, {"secretRef": {"name": "b-"}}]), [])

    def test_divisors(self) -> None:
        """Unknown resources are not treated as huge pages."""
        reference = {"resource": "limits.odd", "divisor": "3"}
        found = in_container(env=[{"name": "A", "valueFrom": {"resourceFieldRef": reference}}])
        self.assertEqual([one.partition(": ")[2][:30] for one in found], ['Unsupported value: "limits.odd'])

    def test_restart_rules(self) -> None:
        """Restart rules are validated, except for an init container without a policy."""
        self.assertEqual(
            in_container(restartPolicy="Never", restartPolicyRules=[{"exitCodes": {"values": [1] * 256}}] * 21)[:4],
            [
                "restartPolicyRules: Too many: 21: must have at most 20 items",
                'restartPolicyRules[0].action: Unsupported value: "": '
                'supported values: "Restart", "RestartAllContainers"',
                'restartPolicyRules[0].exitCodes.operator: Unsupported value: "": supported values: "In", "NotIn"',
                "restartPolicyRules[0].exitCodes.values: Too many: 256: must have at most 255 items",
            ],
        )
        self.assertEqual(
            problems(initContainers=[{**CONTAINER, "name": "i", "restartPolicyRules": [{}]}]),
            [
                "spec.initContainers[0].restartPolicy: Required value: "
                "must specify restartPolicy when restart rules are used"
            ],
        )

    def test_resize_policies(self) -> None:
        """Init containers cannot be restarted for a resize."""
        policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
        starting = {**CONTAINER, "name": "i", "resizePolicy": policy}
        wrong = (
            'spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": '
            "must not be set to 'RestartContainer' for non-sidecar initContainers"
        )
        self.assertEqual(problems(initContainers=[starting]), [wrong])
        self.assertEqual(problems(initContainers=[{**starting, "restartPolicy": "Always"}]), [])
        before = pod(initContainers=[starting])
        self.assertEqual(strategy_for("", "Pod").validate_update(before, before), [])
        self.assertEqual(
            problems(restartPolicy="Never", containers=[{**CONTAINER, "resizePolicy": policy}]),
            [
                'spec.containers[0].resizePolicy: Invalid value: "RestartContainer": '
                "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            ],
        )

    def test_ephemeral(self) -> None:
        """An empty lifecycle of an ephemeral container is an error."""
        added = {"name": "e", "image": "i", "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}
        found = problems(ephemeralContainers=[{**added, "lifecycle": {}, "ports": []}])
        self.assertEqual([one.partition(":")[0] for one in found][:1], ["spec.ephemeralContainers[0].lifecycle"])

    def test_image_volumes(self) -> None:
        """Subpaths of image volumes are validated as those of other volumes."""
        mounts = [{"name": "i", "mountPath": "/i", "subPathExpr": "a"}]
        volumes = [{"name": "i", "image": {"reference": "x:1"}}]
        self.assertEqual(problems(containers=[{**CONTAINER, "volumeMounts": mounts}], volumes=volumes), [])
