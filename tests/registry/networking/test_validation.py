"""Tests for the validation of networking."""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import SUBDOMAIN_RULE, change_problems, problems

from ..apps.test_validation import LABEL_RULE


class NetworkingTests(SynchronousTestCase):
    """Tests for Ingresses and their classes."""

    SERVICE: ClassVar = {"service": {"name": "s", "port": {"number": 80}}}

    def ingress_errors(self, **spec: Any) -> list[str]:
        """Return the errors of an Ingress."""
        return problems("networking.k8s.io", "Ingress", spec=spec)

    def test_path_without_type(self) -> None:
        """A path without a type has no further errors."""
        self.assertEqual(
            self.ingress_errors(rules=[{"http": {"paths": [{"backend": {}}]}}]),
            ["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"],
        )

    def test_resource(self) -> None:
        """The errors of a resource backend start with the group."""
        path = "spec.defaultBackend.resource"
        self.assertEqual(
            self.ingress_errors(defaultBackend={"resource": {"apiGroup": "", "kind": "a/b", "name": ""}}),
            [
                f'{path}.apiGroup: Invalid value: "": {SUBDOMAIN_RULE}',
                f"{path}.kind: Invalid value: \"a/b\": may not contain '/'",
                f"{path}.name: Required value",
            ],
        )

    def test_stored(self) -> None:
        """Invalid secret names, and backends of wildcard hosts, are accepted if they are stored."""
        odd = {
            "defaultBackend": self.SERVICE,
            "rules": [{"host": "*.x.y", "http": {"paths": []}}],
            "tls": [{"secretName": "Bad"}],
        }
        good = {"defaultBackend": self.SERVICE}
        wrong = [
            "spec.rules[0].http.paths: Required value",
            f'spec.tls[0].secretName: Invalid value: "Bad": {SUBDOMAIN_RULE}',
        ]
        self.assertEqual(self.ingress_errors(**odd), wrong)
        for old, result in ((good, wrong), (odd, [])):
            self.assertEqual(change_problems("networking.k8s.io", "Ingress", {"spec": old}, {"spec": odd}), result)

    def test_class(self) -> None:
        """A controller is a valid path; a namespace is a valid name."""
        parameters = {"kind": "K", "name": "n", "scope": "Namespace", "namespace": ""}
        spec = {"controller": "x.y/a b", "parameters": parameters}
        wrong = [
            'spec.controller: Invalid value: "a b": Invalid path (regex used for validation is '
            "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
            f'spec.parameters.namespace: Invalid value: "": {LABEL_RULE}',
        ]
        self.assertEqual(problems("networking.k8s.io", "IngressClass", spec=spec), wrong)
        self.assertEqual(
            change_problems("networking.k8s.io", "IngressClass", {"spec": {"controller": "x.y/a"}}, {"spec": spec}),
            ['spec.controller: Invalid value: "x.y/a b": field is immutable', *wrong],
        )

    def test_address(self) -> None:
        """An address has a parent, which is immutable."""
        old = {"spec": {"parentRef": {"resource": "services", "name": "s"}}}
        self.assertEqual(
            change_problems("networking.k8s.io", "IPAddress", old, {"spec": {}}),
            ["spec.parentRef: Required value", "spec.parentRef: Invalid value: null: field is immutable"],
        )


class PolicyTests(SynchronousTestCase):
    """Tests for NetworkPolicies and addresses."""

    GROUP = "networking.k8s.io"

    def test_non_canonical_cidrs(self) -> None:
        """CIDRs that are not canonical give warnings."""
        strategy = strategy_for(self.GROUP, "NetworkPolicy")
        block = {"cidr": "2001:DB8::/32", "except": ["2001:db8:1::/48"]}
        (result,) = strategy.warnings({"spec": {"egress": [{"to": [{}, {"ipBlock": block}]}]}}, None)
        self.assertTrue(result.startswith("spec.egress[0].to[1].ipBlock.cidr: IPv6 CIDR value"), result)

    def test_class_annotation(self) -> None:
        """The deprecated annotation gives a warning if the field is absent."""
        strategy = strategy_for(self.GROUP, "Ingress")
        ingress = {"metadata": {"annotations": {"kubernetes.io/ingress.class": "a"}}, "spec": {}}
        self.assertEqual(len(strategy.warnings(ingress, None)), 1)
        ingress["spec"]["ingressClassName"] = "a"
        self.assertEqual(strategy.warnings(ingress, None), ())

    def test_ports(self) -> None:
        """The error of a named port with an end precedes the errors of the name; policy types keep their order."""
        ports = [{"port": "a_b", "endPort": 2}]
        errors = problems(self.GROUP, "NetworkPolicy", spec={"ingress": [{"ports": ports}], "policyTypes": ["x"]})
        self.assertEqual(
            [one.partition(":")[0] for one in errors],
            ["spec.ingress[0].ports[0].endPort", "spec.ingress[0].ports[0].port", "spec.policyTypes[0]"],
        )
        self.assertTrue(errors[-1].endswith('supported values: "Ingress", "Egress"'), errors[-1])

    def test_address_update(self) -> None:
        """An update of an address is validated as a whole, and then rejected."""
        old = {"spec": {"parentRef": {"resource": "services", "name": "a"}}}
        new = {"spec": {"parentRef": {"resource": "services"}}}
        self.assertEqual(
            change_problems(self.GROUP, "IPAddress", old, new),
            [
                "spec.parentRef.name: Required value",
                'spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"","Name":""}: field is '
                "immutable",
            ],
        )

    def test_cidrs_update(self) -> None:
        """If the number of CIDRs is unchanged, each changed CIDR is reported; otherwise the whole list."""
        old = {"spec": {"cidrs": ["10.0.0.0/24", "fd00::/64"]}}
        new = {"spec": {"cidrs": ["10.0.0.0/24", "x"]}}
        self.assertEqual(
            change_problems(self.GROUP, "ServiceCIDR", old, new),
            ['spec.cidrs[1]: Invalid value: "x": field is immutable'],
        )
        self.assertEqual(
            change_problems(self.GROUP, "ServiceCIDR", old, {"spec": {}}),
            ["spec.cidrs: Invalid value: null: field is immutable"],
        )

    def test_controller(self) -> None:
        """A missing controller is shown as an empty string."""
        errors = change_problems(self.GROUP, "IngressClass", {"spec": {"controller": "a.x/b"}}, {"spec": {}})
        self.assertEqual(errors[0], 'spec.controller: Invalid value: "": field is immutable')


class IngressTests(SynchronousTestCase):
    """Tests for Ingresses."""

    def test_ingress(self) -> None:
        """An Ingress has one backend of one type."""
        group = "networking.k8s.io"
        self.assertEqual(
            problems(group, "Ingress", spec={}),
            ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
        )
        self.assertEqual(
            problems(group, "Ingress", spec={"rules": []}),
            ["spec: Invalid value: []: either `defaultBackend` or `rules` must be specified"],
        )
        backend = {"service": {"name": "s", "port": {"number": 80}}, "resource": {"kind": "B", "name": "b"}}
        self.assertEqual(
            problems(group, "Ingress", spec={"defaultBackend": backend}),
            ['spec.defaultBackend: Invalid value: "": cannot set both resource and service backends'],
        )
