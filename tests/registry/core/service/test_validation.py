"""Tests of L{kubetwist.registry.core.service.validation} and of Endpoints, EndpointSlices and ServiceCIDRs."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.service.validation import drop_type_dependent_fields
from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import change_problems, copy, made, problems, status_problems, warnings_for


class ServiceTests(SynchronousTestCase):
    """Tests of Services and Endpoints."""

    def service(self, **spec: Any) -> list[str]:
        """Return the validation errors of a service with a spec."""
        return problems("", "Service", spec={"ports": [{"port": 80}], **spec})

    def test_good(self) -> None:
        """A minimal service, a headless one and an ExternalName service are valid."""
        self.assertEqual(self.service(), [])
        self.assertEqual(self.service(clusterIP="None", ports=[]), [])
        self.assertEqual(self.service(type="ExternalName", externalName="a.example.com", ports=[]), [])

    def test_ports(self) -> None:
        """Several ports need names, and all need valid numbers."""
        self.assertEqual(self.service(ports=[]), ["spec.ports: Required value"])
        self.assertEqual(
            self.service(ports=[{"port": 80}, {"name": "b", "port": 70000}]),
            [
                "spec.ports[0].name: Required value",
                "spec.ports[1].port: Invalid value: 70000: must be between 1 and 65535, inclusive",
                "spec.ports[1].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            ],
        )

    def test_node_port_of_internal_service(self) -> None:
        """Services of type ClusterIP have no node ports."""
        self.assertEqual(
            self.service(ports=[{"port": 80, "nodePort": 30000}]),
            ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
        )

    def test_addresses(self) -> None:
        """clusterIP must be the first of clusterIPs."""
        self.assertEqual(
            self.service(clusterIP="10.0.0.4", clusterIPs=["10.0.0.5"]),
            ['spec.clusterIPs: Invalid value: ["10.0.0.5"]: first value must match `clusterIP`'],
        )
        self.assertIn("must be a valid IP address", self.service(clusterIP="banana")[0])

    def test_address_stays(self) -> None:
        """The address of a service is immutable."""
        old = {"spec": {"ports": [{"port": 80}], "clusterIP": "10.0.0.4"}}
        new = {"spec": {"ports": [{"port": 80}], "clusterIP": "10.0.0.5"}}
        self.assertEqual(
            change_problems("", "Service", old, new),
            ['spec.clusterIPs[0]: Invalid value: ["10.0.0.5"]: may not change once set'],
        )

    def test_put_without_addresses(self) -> None:
        """An update without the allocated values keeps them."""
        strategy = strategy_for("", "Service")
        old = made("", "Service", spec={"type": "NodePort", "ports": [{"port": 80, "nodePort": 30001}]})
        old["spec"].update(clusterIP="10.0.0.4", clusterIPs=["10.0.0.4"])
        obj = made("", "Service", spec={"type": "NodePort", "ports": [{"port": 80}]})
        strategy.prepare_for_update(obj, old)
        self.assertEqual(obj["spec"]["clusterIPs"], ["10.0.0.4"])
        self.assertEqual(obj["spec"]["ports"][0]["nodePort"], 30001)

    def test_put_with_another_address(self) -> None:
        """An update of clusterIP alone changes clusterIPs, too."""
        strategy = strategy_for("", "Service")
        old = made("", "Service", spec={"clusterIP": "10.0.0.4", "clusterIPs": ["10.0.0.4"]})
        obj = made("", "Service", spec={"clusterIP": "10.0.0.5"})
        strategy.prepare_for_update(obj, old)
        self.assertEqual(obj["spec"]["clusterIPs"], ["10.0.0.5"])

    def test_node_ports_by_name(self) -> None:
        """A port without a node port keeps that of the port with the same name, unless another port uses it."""
        strategy = strategy_for("", "Service")
        ports = [{"name": name, "port": port, "nodePort": 30000 + port} for name, port in (("a", 1), ("b", 2))]
        old = made("", "Service", spec={"type": "NodePort", "ports": ports})
        ports = [{"name": "b", "port": 7}, {"name": "c", "port": 1, "nodePort": 30001}, {"name": "a", "port": 9}]
        obj = made("", "Service", spec={"type": "NodePort", "ports": ports})
        strategy.prepare_for_update(obj, old)
        self.assertEqual([port.get("nodePort") for port in obj["spec"]["ports"]], [30002, 30001, None])

    def test_fewer_node_ports(self) -> None:
        """Node ports are removed with the type, also if ports are removed, but not if one is added."""
        strategy = strategy_for("", "Service")
        ports = [{"name": name, "port": port, "nodePort": 30000 + port} for name, port in (("a", 1), ("b", 2))]
        old = made("", "Service", spec={"type": "NodePort", "ports": ports})
        for kept, number in ((1, None), (7, 30007)):
            left = [{"name": "a", "port": 1, "nodePort": 30000 + kept}]
            obj = made("", "Service", spec={"type": "ClusterIP", "ports": left})
            strategy.prepare_for_update(obj, old)
            self.assertEqual(obj["spec"]["ports"][0].get("nodePort"), number)

    def test_type_change(self) -> None:
        """Unchanged fields that the new type does not support are removed."""
        strategy = strategy_for("", "Service")
        old = made("", "Service", spec={"type": "NodePort", "ports": [{"port": 80, "nodePort": 30001}]})
        old["spec"].update(clusterIP="10.0.0.4", clusterIPs=["10.0.0.4"])
        obj = copy(old)
        obj["spec"]["type"] = "ClusterIP"
        strategy.prepare_for_update(obj, old)
        self.assertNotIn("nodePort", obj["spec"]["ports"][0])
        self.assertNotIn("externalTrafficPolicy", obj["spec"])
        self.assertEqual(obj["spec"]["clusterIP"], "10.0.0.4")

    def test_endpoints(self) -> None:
        """Addresses of Endpoints must not be special addresses."""
        subsets = [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": 80}]}]
        self.assertEqual(
            problems("", "Endpoints", subsets=subsets),
            [
                'subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": '
                "may not be in the loopback range (127.0.0.0/8, ::1/128)"
            ],
        )

    def test_endpoints_stay_as_written(self) -> None:
        """Subsets are neither merged nor sorted; special addresses and malformed ones are rejected."""
        subsets = [
            {"addresses": [{"ip": "10.1.0.2"}], "ports": [{"port": 80, "protocol": "TCP"}]},
            {"notReadyAddresses": [{"ip": "10.1.0.1"}], "ports": [{"port": 80, "protocol": "TCP"}]},
        ]
        endpoints = made("", "Endpoints", subsets=[dict(one) for one in subsets])
        strategy_for("", "Endpoints").default_on_read(endpoints)
        self.assertEqual(endpoints["subsets"], subsets)
        found = problems("", "Endpoints", subsets=[{"addresses": [{"ip": "words"}, {"ip": "127.0.0.1"}]}])
        self.assertEqual(len(found), 3)


class RangeTests(SynchronousTestCase):
    """Tests of ServiceCIDRs."""

    def ranges(self, *cidrs: str) -> list[str]:
        """Return the validation errors of ranges."""
        return problems("networking.k8s.io", "ServiceCIDR", spec={"cidrs": list(cidrs)})

    def test_ranges(self) -> None:
        """There is one range of each IP family, in canonical form."""
        self.assertEqual(self.ranges("10.0.0.0/24"), [])
        self.assertEqual(self.ranges("10.0.0.0/24", "fd00::/64"), [])
        self.assertEqual(
            self.ranges("fd00:0::/64"),
            ['spec.cidrs[0]: Invalid value: "fd00:0::/64": must be in canonical form ("fd00::/64")'],
        )
        found = self.ranges("10.0.0.1/24")
        self.assertEqual(
            found, ['spec.cidrs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length']
        )
        for second in ("10.1.0.0/24", "::ffff:10.1.0.0/120"):
            found_text = self.ranges("10.0.0.0/24", second)[-1]
            start = f'spec.cidrs: Invalid value: ["10.0.0.0/24","{second}"]: may specify no more than one IP'
            self.assertTrue(found_text.startswith(start), found_text)
        (found_text,) = self.ranges("10.0.0.0/24", "x")
        self.assertTrue(found_text.startswith('spec.cidrs[1]: Invalid value: "x": must be a valid CIDR'), found_text)
        (found_text,) = self.ranges("a", "b", "c")
        self.assertTrue(found_text.endswith("may only hold up to 2 values"), found_text)

    def test_update(self) -> None:
        """The ranges are immutable; each changed one is reported."""
        old = {"spec": {"cidrs": ["10.0.0.0/24"]}}
        self.assertEqual(
            change_problems("networking.k8s.io", "ServiceCIDR", old, {"spec": {"cidrs": ["10.1.0.0/24"]}}),
            ['spec.cidrs[0]: Invalid value: "10.1.0.0/24": field is immutable'],
        )
        both = {"spec": {"cidrs": ["10.0.0.0/24", "fd00::/64"]}}
        self.assertEqual(change_problems("networking.k8s.io", "ServiceCIDR", old, both), [])


class EndpointTests(SynchronousTestCase):
    """Tests of Endpoints and EndpointSlices."""

    def test_no_address(self) -> None:
        """A malformed address is reported twice for Endpoints, once for a Service."""
        found = problems("", "Endpoints", subsets=[{"addresses": [{"ip": "x"}], "ports": [{"port": 80}]}])
        self.assertEqual(len(found), 2)
        self.assertEqual(found[1], 'subsets[0].addresses[0].ip: Invalid value: "x": must be a valid IP address')

    def slice(self, kind: str, *addresses: str, **parts: Any) -> list[str]:
        """Return the validation errors of a slice with one endpoint."""
        return problems(
            "discovery.k8s.io", "EndpointSlice", addressType=kind, endpoints=[{"addresses": addresses}], **parts
        )

    def test_slice_addresses(self) -> None:
        """Addresses of a slice are sorted before errors about the IP family are reported."""
        path = "endpoints[0].addresses"
        text = "must not be an IPv4-mapped IPv6 address"
        mapped = "::ffff:1.2.3.4"
        self.assertEqual(self.slice("IPv4", mapped), [f'{path}[0]: Invalid value: "{mapped}": {text}'])
        other = f'{path}: Invalid value: "2001:DB8::1": must be an IPv4 address'
        self.assertEqual(self.slice("IPv4", "2001:DB8::1"), [other])
        both = [f'{path}: Invalid value: "127.0.0.1": must be an IPv6 address']
        both.append(f'{path}[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)')
        self.assertEqual(self.slice("IPv6", "127.0.0.1"), both)

    def test_slice_domains(self) -> None:
        """Domain names have at least two labels, and may end with a dot."""
        self.assertEqual(self.slice("FQDN", "a.b.", "a.b"), [])
        path = "endpoints[0].addresses"
        self.assertEqual(
            self.slice("FQDN", "", "a.", f"{'x' * 64}.y"),
            [
                f"{path}[0]: Required value",
                f'{path}[1]: Invalid value: "a": should be a domain with at least two segments separated by dots',
                f'{path}[2]: Invalid value: "{"x" * 64}": must be no more than 63 characters',
            ],
        )

    def test_odd_slice_addresses(self) -> None:
        """Non-canonical addresses cause warnings, except for slices of controllers."""
        strategy = strategy_for("discovery.k8s.io", "EndpointSlice")
        piece: dict[str, Any] = {"metadata": {}, "endpoints": [{"addresses": ["2001:DB8::1"]}]}
        (found,) = strategy.warnings(piece, None)
        self.assertTrue(found.startswith("endpoints[0].addresses[0]: IPv6 address"), found)
        piece["metadata"]["labels"] = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
        self.assertEqual(strategy.warnings(piece, None), [])

    def test_slice_protocol(self) -> None:
        """An empty protocol is not supported."""
        self.assertEqual(
            self.slice("IPv4", "1.2.3.4", ports=[{"port": 1, "protocol": ""}]),
            ['ports[0].protocol: Unsupported value: "": supported values: "SCTP", "TCP", "UDP"'],
        )

    def test_slice_update(self) -> None:
        """An update of a slice is validated; unchanged endpoints are accepted."""
        old = {"addressType": "IPv4", "endpoints": [{"addresses": ["x"]}]}
        self.assertEqual(
            change_problems("discovery.k8s.io", "EndpointSlice", old, {**old, "addressType": "IPv5"}),
            [
                'addressType: Unsupported value: "IPv5": supported values: "FQDN", "IPv4", "IPv6"',
                'addressType: Invalid value: "IPv5": field is immutable',
            ],
        )

    def test_cve_2021_25737(self) -> None:
        """CVE-2021-25737: Endpoints and EndpointSlices cannot have loopback or link-local addresses."""
        for address, text in (
            ("127.0.0.1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
            ("::1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
            ("169.254.169.254", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
            ("fe80::1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
            ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
            ("224.0.0.1", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        ):
            kind = "IPv6" if ":" in address else "IPv4"
            piece = {"addressType": kind, "endpoints": [{"addresses": [address]}]}
            self.assertEqual(
                problems("discovery.k8s.io", "EndpointSlice", **piece),
                [f'endpoints[0].addresses[0]: Invalid value: "{address}": {text}'],
            )
            self.assertEqual(
                problems("", "Endpoints", subsets=[{"addresses": [{"ip": address}], "ports": [{"port": 80}]}]),
                [f'subsets[0].addresses[0].ip: Invalid value: "{address}": {text}'],
            )


class ServiceChangeTests(SynchronousTestCase):
    """Tests of addresses and updates of Services."""

    def service(self, **spec: Any) -> list[str]:
        """Return the validation errors of a service with a spec."""
        return problems("", "Service", spec={"ports": [{"port": 80}], **spec})

    def change(self, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        """Return the validation errors of an update of a service."""
        objects = []
        for spec in (old, new):
            parts = {"spec": {"ports": [{"port": 80}], **{k: v for k, v in spec.items() if k != "annotations"}}}
            metadata = {"name": "x", "namespace": "ns", "annotations": spec.get("annotations", {})}
            objects.append({**parts, "metadata": metadata})
        return change_problems("", "Service", objects[0], objects[1])

    def test_addresses_first(self) -> None:
        """If addresses are invalid, only their errors are reported."""
        self.assertEqual(
            self.service(ports=[], clusterIP="10.0.0.4", clusterIPs=["10.0.0.5"]),
            ['spec.clusterIPs: Invalid value: ["10.0.0.5"]: first value must match `clusterIP`'],
        )

    def test_addresses(self) -> None:
        """Families are validated if all addresses are valid."""
        many = ["10.0.0.4", "x", "10.0.0.5"]
        found = self.service(clusterIP="10.0.0.4", clusterIPs=many, ipFamilies=["IPv6"])
        self.assertEqual([one.partition(":")[0] for one in found], ["spec.clusterIPs[1]", "spec.clusterIPs"])
        self.assertIn("may only hold up to 2 values", found[1])
        found = self.service(clusterIP="10.0.0.4", clusterIPs=["10.0.0.4", "10.0.0.5"], ipFamilies=["IPv6"])
        self.assertIn("may specify no more than one IP for each IP family", found[0])
        self.assertIn("expected an IPv6 value as indicated by `ipFamilies[0]`", found[1])
        self.assertIn('Unsupported value: "": supported values', self.service(ipFamilyPolicy="")[0])

    def test_second_address(self) -> None:
        """The second address and family can be added, and removed with the policy SingleStack."""
        one = {"clusterIP": "10.0.0.4", "clusterIPs": ["10.0.0.4"], "ipFamilies": ["IPv4"]}
        two = {**one, "clusterIPs": ["10.0.0.4", "fd00::4"], "ipFamilies": ["IPv4", "IPv6"]}
        self.assertEqual(self.change(one, {**two, "ipFamilyPolicy": "PreferDualStack"}), [])
        self.assertEqual(self.change(two, {**one, "ipFamilyPolicy": "SingleStack"}), [])
        other = {"clusterIP": "fd00::4", "clusterIPs": ["fd00::4"], "ipFamilies": ["IPv6"]}
        found = self.change({**two, "ipFamilyPolicy": "SingleStack"}, {**other, "ipFamilyPolicy": "SingleStack"})
        self.assertEqual(
            found,
            [
                'spec.clusterIPs[0]: Invalid value: ["fd00::4"]: may not change once set',
                'spec.ipFamilies[0]: Invalid value: ["fd00::4"]: may not change once set',
            ],
        )
        self.assertEqual(
            self.change(one, other),
            [
                'spec.clusterIPs[0]: Invalid value: ["fd00::4"]: may not change once set',
                'spec.ipFamilies[0]: Invalid value: ["IPv6"]: may not change once set',
            ],
        )

    def test_headless_families(self) -> None:
        """Families of headless services can change; other services must keep their addresses."""
        headless = {"clusterIP": "None", "clusterIPs": ["None"], "ipFamilies": ["IPv4"]}
        self.assertEqual(self.change(headless, {**headless, "ipFamilies": ["IPv6"]}), [])
        held = {"clusterIP": "10.0.0.4", "clusterIPs": ["10.0.0.4"], "ipFamilies": ["IPv4"]}
        self.assertEqual(
            self.change(held, {}),
            [
                "spec.clusterIPs[0]: Invalid value: null: primary clusterIP can not be unset",
                "spec.ipFamilies[0]: Invalid value: null: primary ipFamily can not be unset",
            ],
        )

    def test_health_port(self) -> None:
        """The health check port is immutable."""
        local = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
        self.assertEqual(
            self.change({**local, "healthCheckNodePort": 30001}, {**local, "healthCheckNodePort": 30002}),
            ["spec.healthCheckNodePort: Forbidden: field is immutable"],
        )
        cluster = {**local, "externalTrafficPolicy": "Cluster"}
        self.assertEqual(self.change(cluster, {**local, "healthCheckNodePort": 30002}), [])

    def test_node_ports(self) -> None:
        """A node port is unique among ports of a protocol."""
        ports = [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 30001}]
        spec = {"type": "NodePort", "ports": ports}
        self.assertEqual(self.change(spec, spec), ["spec.ports[1].nodePort: Duplicate value: 30001"])
        self.assertEqual(self.service(**spec), ["spec.ports[1].nodePort: Duplicate value: 30001"])
        ports[1]["protocol"] = "UDP"
        self.assertEqual(self.service(**spec), [])

    def test_class(self) -> None:
        """The load balancer class must be a valid name; updates report errors twice."""
        balancer = {"type": "LoadBalancer", "loadBalancerClass": "a b"}
        self.assertEqual(
            self.service(loadBalancerClass="a b"),
            ["spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"],
        )
        self.assertEqual(len(self.service(**balancer)), 1)
        self.assertEqual(len(self.change(balancer, balancer)), 2)

    def test_external_addresses(self) -> None:
        """New external addresses must be in canonical form; existing ones are accepted."""
        self.assertEqual(
            self.service(externalIPs=["192.0.2.01"]),
            ['spec.externalIPs[0]: Invalid value: "192.0.2.01": must not have leading 0s'],
        )
        odd = {"externalIPs": ["192.0.2.01"]}
        self.assertEqual(self.change(odd, odd), [])
        held = {"clusterIP": "10.0.0.04", "clusterIPs": ["10.0.0.04"]}
        self.assertEqual(self.change(held, held), [])
        ranges = {"type": "LoadBalancer", "loadBalancerSourceRanges": [" 10.0.0.1/8"]}
        self.assertEqual(self.change(ranges, ranges), [])
        self.assertEqual(len(self.service(**ranges)), 1)
        annotations = {"service.beta.kubernetes.io/load-balancer-source-ranges": "junk"}
        told_by = {"type": "LoadBalancer", "annotations": annotations}
        self.assertEqual(self.change(told_by, told_by), [])
        self.assertEqual(len(self.change({"type": "LoadBalancer"}, told_by)), 1)

    def test_balancer(self) -> None:
        """Existing addresses of a load balancer are accepted; an address is not a valid hostname."""
        old = made("", "Service", spec={"type": "LoadBalancer", "ports": [{"port": 80}]})
        old["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.01", "ipMode": "VIP"}]}}
        self.assertEqual(status_problems("", "Service", old, old), [])
        new = copy(old)
        new["status"]["loadBalancer"]["ingress"].append({"ip": "192.0.2.02", "ipMode": "VIP", "hostname": "1.2.3.04"})
        path = "status.loadBalancer.ingress[1]"
        self.assertEqual(
            status_problems("", "Service", old, new),
            [
                f'{path}.ip: Invalid value: "192.0.2.02": must not have leading 0s',
                f'{path}.hostname: Invalid value: "1.2.3.04": must be a DNS name, not an IP address',
            ],
        )

    def test_traffic(self) -> None:
        """Traffic policies have supported values, also of ExternalName services."""
        self.assertEqual(
            self.service(trafficDistribution="Near"),
            [
                'spec.trafficDistribution: Unsupported value: "Near": supported values: "PreferClose", '
                '"PreferSameZone", "PreferSameNode"'
            ],
        )
        name = {"type": "ExternalName", "externalName": "a.b"}
        self.assertEqual(
            self.service(**name, internalTrafficPolicy="Far"),
            ['spec.internalTrafficPolicy: Unsupported value: "Far": supported values: "Cluster", "Local"'],
        )

    def test_external_name_kept(self) -> None:
        """The external name is kept when a service changes its type."""
        old: dict[str, Any] = {"spec": {"type": "ExternalName", "externalName": "a.b"}}
        new: dict[str, Any] = {"spec": {"type": "ClusterIP", "externalName": "a.b"}}
        drop_type_dependent_fields(new, old)
        self.assertEqual(new["spec"]["externalName"], "a.b")

    def test_topology(self) -> None:
        """The two annotations of topology must agree."""
        hints, mode = (f"service.kubernetes.io/topology-{name}" for name in ("aware-hints", "mode"))
        metadata = {"name": "x", "namespace": "ns", "annotations": {hints: "Auto", mode: "Off"}}
        spec = {"ports": [{"port": 80}]}
        self.assertEqual(
            problems("", "Service", metadata=metadata, spec=spec),
            [
                f'metadata.annotations[{mode}]: Invalid value: "Off": '
                f"must match annotations[{hints}] when both are specified"
            ],
        )
        text = f"annotation {hints} is deprecated, please use {mode} instead"
        self.assertEqual(warnings_for("", "Service", metadata=metadata, spec=spec), [text])

    def test_warnings(self) -> None:
        """Fields without effect and non-canonical addresses cause warnings."""
        ranges = ["192.012.2.8/24", "2001:db8:0:0::/64", "::ffff:192.12.2.0/120", "10.0.0.0/8", "junk"]
        spec = {
            "clusterIP": "2001:db8:0::2",
            "clusterIPs": ["2001:db8:0::2"],
            "externalIPs": ["192.0.2.01"],
            "loadBalancerIP": "192.0.2.02",
            "loadBalancerSourceRanges": ranges,
            "externalName": "a.b",
            "trafficDistribution": "PreferClose",
        }
        path, later = "spec.loadBalancerSourceRanges", "is invalid: use"
        self.assertEqual(
            warnings_for("", "Service", spec=spec),
            [
                'spec.clusterIPs[0]: IPv6 address "2001:db8:0::2" should be in RFC 5952 canonical format '
                '("2001:db8::2")',
                f'spec.externalIPs[0]: non-standard IP address "192.0.2.01" {later} "192.0.2.1"',
                "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
                f'spec.loadBalancerIP: non-standard IP address "192.0.2.02" {later} "192.0.2.2"',
                f'{path}[0]: CIDR value "192.012.2.8/24" is ambiguous in this context '
                '(should be "192.12.2.0/24" or "192.12.2.8/32"?)',
                f'{path}[0]: non-standard CIDR value "192.012.2.8/24" {later} "192.12.2.0/24"',
                f'{path}[1]: IPv6 CIDR value "2001:db8:0:0::/64" should be in RFC 5952 canonical format '
                '("2001:db8::/64")',
                f'{path}[2]: non-standard CIDR value "::ffff:192.12.2.0/120" {later} "192.12.2.0/24"',
                'spec.externalName is ignored when spec.type is not "ExternalName"',
                'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
            ],
        )
        old = "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
        self.assertEqual(warnings_for("", "Service", spec={"externalIPs": ["192.0.2.1"]}), [old])
        name = {"type": "ExternalName", "externalName": "a.b", "externalIPs": ["192.0.2.1"]}
        text = 'spec.externalIPs is ignored when spec.type is "ExternalName"'
        self.assertEqual(warnings_for("", "Service", spec=name), [text])
