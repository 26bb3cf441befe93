"""Tests for L{kubetwist.controllers.endpoints.servicepods}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.endpoints.servicepods import (
    TriggerTimeTracker,
    addresses,
    host_name,
    port_number,
    selector_of,
    should_be_in_endpoints,
)


def pod(name: str = "p", ready: str = "", spec: Any = None, **status: Any) -> dict[str, Any]:
    """Return a pod."""
    status["conditions"] = [{"type": "Ready", "lastTransitionTime": ready}] if ready else []
    return {"metadata": {"name": name}, "spec": spec or {}, "status": status}


class PodTests(SynchronousTestCase):
    """Pods in endpoints."""

    def test_published(self) -> None:
        """A pod is in endpoints from the time that it has an address until it has terminated."""
        for status, wanted in (
            ({"podIP": "10.0.0.1"}, True),
            ({"podIPs": [{"ip": "10.0.0.1"}], "phase": "Running"}, True),
            ({"podIP": "10.0.0.1", "phase": "Succeeded"}, False),
            ({"podIP": "10.0.0.1", "phase": "Failed"}, False),
            ({"phase": "Running"}, False),
        ):
            self.assertEqual(should_be_in_endpoints(pod(**status), terminating=False), wanted, status)
        leaving = pod(podIP="10.0.0.1")
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.assertEqual([should_be_in_endpoints(leaving, terminating=one) for one in (False, True)], [False, True])

    def test_addresses(self) -> None:
        """Addresses are read from podIPs, or podIP if it is missing. Invalid addresses are ignored."""
        both = pod(podIP="10.0.0.9", podIPs=[{"ip": "10.0.0.1"}, {"ip": "fd00::1"}, {"ip": "odd"}, {}])
        self.assertEqual([str(one) for one in addresses(both, "IPv4")], ["10.0.0.1"])
        self.assertEqual([str(one) for one in addresses(both, "IPv6")], ["fd00::1"])
        self.assertEqual([str(one) for one in addresses(pod(podIP="10.0.0.9"), "IPv4")], ["10.0.0.9"])

    def test_ports(self) -> None:
        """A named port is searched in containers and sidecars, with its protocol."""
        ports = [{"name": "web", "protocol": "UDP", "containerPort": 1}, {"name": "web", "containerPort": 2}]
        other = [{"name": "side", "containerPort": 3}]
        first = [{"ports": other}, {"restartPolicy": "Always", "ports": [{"name": "side", "containerPort": 4}]}]
        one = pod(spec={"containers": [{"ports": ports}], "initContainers": first})
        for port, wanted in (
            ({"port": 80}, 80),
            ({"port": 80, "targetPort": 0}, 80),
            ({"port": 80, "targetPort": 8080}, 8080),
            ({"port": 80, "targetPort": "web"}, 2),
            ({"port": 80, "targetPort": "web", "protocol": "UDP"}, 1),
            ({"port": 80, "targetPort": "side"}, 4),
            ({"port": 80, "targetPort": "lost"}, None),
        ):
            self.assertEqual(port_number(one, port), wanted, port)

    def test_names(self) -> None:
        """A pod has a host name only in the subdomain of the service."""
        service = {"metadata": {"name": "s"}}
        for spec, wanted in (({"hostname": "h", "subdomain": "s"}, "h"), ({"hostname": "h", "subdomain": "t"}, "")):
            self.assertEqual(host_name(pod(spec=spec), service), wanted)

    def test_selectors(self) -> None:
        """An empty selector selects no pods, and an ExternalName service has none."""
        for spec, wanted in (
            ({"selector": {"a": "b"}}, {"a": "b"}),
            ({"selector": {}}, None),
            ({"selector": {"a": "b"}, "type": "ExternalName"}, None),
        ):
            self.assertEqual(selector_of({"spec": spec}), wanted)


class TriggerTimeTests(SynchronousTestCase):
    """Tests for L{TriggerTimeTracker}."""

    def test_changes(self) -> None:
        """The trigger time is the time of the first change since the last sync."""
        times = TriggerTimeTracker()

        def changed(made: str, *pods: Any) -> str:
            return times.changed("ns/s", {"metadata": {"creationTimestamp": made}}, pods)

        self.assertEqual(changed("1", pod("a", "0")), "1")
        self.assertEqual(changed("1", pod("a", "0")), "")
        self.assertEqual(changed("1", pod("a", "4"), pod("b", "3")), "3")
        self.assertEqual(changed("1", pod("b", "3")), "")
        self.assertEqual(changed("5", pod("b", "3")), "5")
        times.forget("ns/s")
        self.assertEqual(changed("5", pod("b", "6")), "5")
