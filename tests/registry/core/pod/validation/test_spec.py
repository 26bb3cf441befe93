"""Tests of L{kubetwist.registry.core.pod.validation.spec}, through the strategy of pods."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.pods import (
    CONTAINER,
    METADATA,
    MIRROR,
    pod,
    problems,
)


class SpecTests(SynchronousTestCase):
    """Tests of the spec of pods."""

    def test_hostnames(self) -> None:
        """hostnameOverride excludes hostNetwork and setHostnameAsFQDN."""
        self.assertEqual(problems(hostnameOverride="a.b"), [])
        found = problems(hostnameOverride="A" * 65, hostNetwork=True, setHostnameAsFQDN=True)
        self.assertEqual(
            found[:3],
            [
                "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
                "spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is true",
                "spec.hostnameOverride: Too long: may not be more than 64 bytes",
            ],
        )
        self.assertIn("RFC 1123 subdomain", found[3])

    def test_overhead(self) -> None:
        """The overhead is validated as limits."""
        self.assertEqual(
            problems(overhead={"hugepages-2Mi": "2Mi", "cpu": "-1"}),
            ['spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
        )

    def test_tolerations(self) -> None:
        """The operators Lt and Gt are supported but their feature gate is disabled."""
        self.assertEqual(
            problems(tolerations=[{"key": "k", "operator": "Gt", "value": "1"}]),
            ['spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"'],
        )

    def test_search_domains(self) -> None:
        """Search domains may have underscores."""
        self.assertEqual(problems(dnsConfig={"searches": ["_a_b.c", ".", "a."]}), [])
        (found,) = problems(dnsConfig={"searches": ["A"]})
        self.assertTrue(
            found.startswith(
                'spec.dnsConfig.searches[0]: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower '
                "case alphanumeric characters, '_', '-' or '.', and must start and end"
            ),
            found,
        )
        self.assertIn("'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?", found)

    def test_qos_class(self) -> None:
        """The QoS class in the status of a new pod is kept."""
        obj = {"metadata": METADATA, "spec": {"containers": [CONTAINER]}, "status": {"qosClass": "Odd"}}
        strategy_for("", "Pod").default(obj)
        strategy_for("", "Pod").prepare_for_create(obj)
        self.assertEqual(obj["status"], {"phase": "Pending", "qosClass": "Odd"})

    def test_grace(self) -> None:
        """A negative grace period is one second."""
        self.assertEqual(pod(terminationGracePeriodSeconds=-5)["spec"]["terminationGracePeriodSeconds"], 1)

    def test_pull_policies(self) -> None:
        """The pull policy is Always for the tag latest; malformed images get IfNotPresent."""
        for image, expected in (
            ("app", "Always"),
            ("host:5000/a/b__c", "Always"),
            ("app:latest", "Always"),
            ("app:1", "IfNotPresent"),
            (f"app@sha256:{'a' * 64}", "IfNotPresent"),
            (f"app:latest@sha256:{'a' * 64}", "Always"),
            ("App", "IfNotPresent"),
            ("Host/app", "Always"),
            ("10%", "IfNotPresent"),
            ("x" * 247, "Always"),
            ("x" * 248, "IfNotPresent"),
            (f"a.example/{'x' * 255}", "Always"),
            (f"a.example/{'x' * 256}", "IfNotPresent"),
            ("a" * 64, "IfNotPresent"),
            ("a//b", "IfNotPresent"),
            ("a:b:c", "IfNotPresent"),
        ):
            made = pod(containers=[{"name": "c", "image": image}])["spec"]["containers"][0]
            self.assertEqual(made["imagePullPolicy"], expected, image)

    def test_static_pods(self) -> None:
        """Mirror pods cannot have resource claims."""
        claims = [{"name": "a", "resourceClaimName": "r"}, {"name": "A"}]
        found = problems({MIRROR: "1"}, nodeName="n", resourceClaims=claims)
        self.assertEqual(found, ["[]: Forbidden: static pods do not support resource claims"] * 2)
