"""Tests of L{kubetwist.registry.core.pod.validation.pod}."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import CONTAINER, change_problems, problems


class PodTests(SynchronousTestCase):
    """Tests of pods."""

    def pod(self, **spec: Any) -> list[str]:
        """Return the validation errors of a pod with a spec."""
        return problems("", "Pod", spec={"containers": [CONTAINER], **spec})

    def test_good(self) -> None:
        """A minimal pod is valid."""
        self.assertEqual(self.pod(), [])

    def test_no_containers(self) -> None:
        """A pod needs a container."""
        self.assertEqual(self.pod(containers=[]), ["spec.containers: Required value"])

    def test_all_at_once(self) -> None:
        """All errors are reported, those of containers before those of other fields."""
        found = self.pod(
            restartPolicy="Sometimes",
            dnsPolicy="Magic",
            containers=[
                {"name": "c", "image": "", "imagePullPolicy": "Perhaps"},
                {"name": "c", "image": "b", "ports": [{"containerPort": 70000, "protocol": "HTTP"}]},
                {"name": "d", "image": "c", "volumeMounts": [{"name": "gone", "mountPath": "/x"}]},
            ],
        )
        self.assertEqual(
            found,
            [
                "spec.containers[0].image: Required value",
                'spec.containers[0].imagePullPolicy: Unsupported value: "Perhaps": supported values: "Always", '
                '"IfNotPresent", "Never"',
                "spec.containers[1].ports[0].containerPort: Invalid value: 70000: "
                "must be between 1 and 65535, inclusive",
                'spec.containers[1].ports[0].protocol: Unsupported value: "HTTP": '
                'supported values: "SCTP", "TCP", "UDP"',
                'spec.containers[1].name: Duplicate value: "c"',
                'spec.containers[2].volumeMounts[0].name: Not found: "gone"',
                'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
                'spec.dnsPolicy: Unsupported value: "Magic": supported values: "ClusterFirstWithHostNet", '
                '"ClusterFirst", "Default", "None"',
            ],
        )

    def test_limits(self) -> None:
        """Requests must not exceed limits."""
        resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
        found = self.pod(containers=[{**CONTAINER, "resources": resources}])
        self.assertEqual(
            found,
            ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
        )

    def test_volume_with_two_sources(self) -> None:
        """A volume has one source; mounts of an invalid volume are errors."""
        volume = {"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}
        mount = {"name": "v", "mountPath": "/v"}
        self.assertEqual(
            self.pod(volumes=[volume], containers=[{**CONTAINER, "volumeMounts": [mount]}]),
            [
                "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
                'spec.containers[0].volumeMounts[0].name: Not found: "v"',
            ],
        )

    def test_variable_with_two_values(self) -> None:
        """A variable has either a value or a source."""
        source = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}
        env = [{"name": "A", "value": "1", "valueFrom": source}]
        self.assertEqual(
            self.pod(containers=[{**CONTAINER, "env": env}]),
            ['spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
        )

    def test_probe_of_init_container(self) -> None:
        """Init containers have no probes, except for sidecars."""
        probe = {"tcpSocket": {"port": 1}}
        init = {**CONTAINER, "name": "i", "livenessProbe": probe}
        self.assertEqual(
            self.pod(initContainers=[init]),
            [
                "spec.initContainers[0].livenessProbe: Forbidden: "
                "may not be set for init containers without restartPolicy=Always"
            ],
        )
        self.assertEqual(self.pod(initContainers=[{**init, "restartPolicy": "Always"}]), [])

    def test_tolerations(self) -> None:
        """Invalid operators and effects of tolerations are errors."""
        self.assertEqual(
            self.pod(tolerations=[{"operator": "Equal"}, {"key": "b", "effect": "Never"}]),
            [
                'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, '
                'which means "match all values and all keys"',
                'spec.tolerations[1].effect: Unsupported value: "Never": supported values: "NoSchedule", '
                '"PreferNoSchedule", "NoExecute"',
            ],
        )

    def test_ephemeral_containers(self) -> None:
        """A new pod has no ephemeral containers."""
        self.assertEqual(
            self.pod(ephemeralContainers=[{"name": "e", "image": "x"}]),
            ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
        )

    def test_image_may_change(self) -> None:
        """The image of a pod can be changed."""
        new = {"spec": {"containers": [{**CONTAINER, "image": "app:1.1"}]}}
        self.assertEqual(change_problems("", "Pod", {"spec": {"containers": [CONTAINER]}}, new), [])

    def test_little_else_may_change(self) -> None:
        """Most fields of a pod are immutable; the message contains the mutable ones."""
        old = {"spec": {"containers": [CONTAINER]}}
        found = change_problems("", "Pod", old, {"spec": {"containers": [CONTAINER], "hostname": "h"}})
        self.assertEqual(len(found), 1)
        self.assertIn("spec: Forbidden: pod updates may not change fields other than", found[0])
        self.assertIn('\n- "Hostname": "",\n+ "Hostname": "h",\n', found[0])

    def test_containers_stay(self) -> None:
        """Containers of a pod cannot be added or removed."""
        new = {"spec": {"containers": [CONTAINER, {"name": "d", "image": "x"}]}}
        self.assertEqual(
            change_problems("", "Pod", {"spec": {"containers": [CONTAINER]}}, new),
            ["spec.containers: Forbidden: pod updates may not add or remove containers"],
        )

    def test_shorter_deadline(self) -> None:
        """A deadline can be set and shortened, but not extended or removed."""
        soon, late = ({"spec": {"containers": [CONTAINER], "activeDeadlineSeconds": n}} for n in (50, 90))
        none = {"spec": {"containers": [CONTAINER]}}
        self.assertEqual(change_problems("", "Pod", late, soon), [])
        self.assertEqual(change_problems("", "Pod", none, soon), [])
        self.assertEqual(
            change_problems("", "Pod", soon, late),
            ["spec.activeDeadlineSeconds: Invalid value: 90: must be less than or equal to previous value"],
        )
        self.assertIn("must not update from a positive integer to nil value", change_problems("", "Pod", soon, none)[0])

    @settings(max_examples=50, deadline=None)
    @given(
        spec=st.recursive(
            st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=2),
            max_leaves=3,
        )
    )
    def test_odd_node_selectors(self, spec: object) -> None:
        """Any node selector results in errors instead of an exception."""
        selector = {str(spec): str(spec)}
        for text in self.pod(nodeSelector=selector):
            self.assertTrue(text.startswith("spec.nodeSelector: "), text)
