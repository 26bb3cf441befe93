"""Tests of L{kubetwist.registry.generic.removedversions} and of results of patches in such versions."""

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersionKind
from kubetwist.registry.generic.codec import Codec
from tests.resources.server import definitions

NETWORKING = "networking.k8s.io"
DISCOVERY = "discovery.k8s.io"


class EarlierTests(SynchronousTestCase):
    """Tests of results of patches in versions that are no longer served."""

    def read(self, group: str, kind: str, api_version: str, **fields: Any) -> tuple[dict[str, Any], list[str]]:
        """Return the converted object and the problems of its fields."""
        gvk = GroupVersionKind(group, "v1", kind)
        problems: list[str] = []
        value = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **fields}
        before = repr(value)
        obj = Codec(definitions(), gvk, gvk).decode_patched(value, problems)
        self.assertEqual(repr(value), before)
        self.assertEqual(obj["apiVersion"], gvk.api_version)
        return obj, problems

    def refused(self, group: str, kind: str, api_version: str, **fields: Any) -> str:
        """Return the message of a rejection."""
        gvk = GroupVersionKind(group, "v1", kind)
        value = {"apiVersion": api_version, "kind": kind, **fields}
        return str(self.assertRaises(ValueError, Codec(definitions(), gvk, gvk).decode_patched, value, []))

    def test_labels(self) -> None:
        """Workloads of some versions copy missing labels and selectors from their pods."""
        template = {"metadata": {"labels": {"a": "b"}}}
        for api_version, kind, labels in (
            ("extensions/v1beta1", "Deployment", {"a": "b"}),
            ("extensions/v1beta1", "DaemonSet", {"a": "b"}),
            ("apps/v1beta1", "StatefulSet", {"a": "b"}),
            ("apps/v1beta2", "StatefulSet", None),
        ):
            obj, problems = self.read("apps", kind, api_version, spec={"template": template})
            self.assertEqual(problems, [])
            self.assertEqual(obj["metadata"].get("labels"), labels)
            self.assertEqual(obj["spec"].get("selector"), labels and {"matchLabels": labels})
        metadata = {"name": "a", "labels": {"x": "y"}}
        selector = {"matchLabels": {"a": "c"}}
        spec = {"selector": selector, "template": template}
        obj, _ = self.read("apps", "Deployment", "apps/v1beta1", spec=spec, metadata=metadata)
        self.assertEqual((obj["metadata"]["labels"], obj["spec"]["selector"]), ({"x": "y"}, selector))
        obj, _ = self.read("apps", "Deployment", "apps/v1beta1", spec={"template": {}})
        self.assertNotIn("labels", obj["metadata"])

    def test_other_group(self) -> None:
        """Kinds are converted from their former groups."""
        spec = {"podSelector": {}, "policyTypes": ["Egress"]}
        obj, problems = self.read(NETWORKING, "NetworkPolicy", "extensions/v1beta1", spec=spec)
        self.assertEqual((obj["spec"], problems), (spec, []))
        text = self.refused("apps", "StatefulSet", "extensions/v1beta1")
        self.assertIn('no kind "StatefulSet" is registered for version "extensions/v1beta1"', text)

    def test_ingress(self) -> None:
        """Service fields of earlier Ingresses are renamed; the current names are unknown fields."""
        new = {"service": {"name": "n", "port": {"number": 1}}}
        paths = [{"backend": {"serviceName": "s", "servicePort": "p"}}, {"backend": new, "pathType": "Exact"}, 1]
        spec = {"defaultBackend": new, "backend": {"servicePort": 3}, "rules": [{"http": {"paths": paths[:2]}}]}
        for api_version in ("extensions/v1beta1", "networking.k8s.io/v1beta1"):
            obj, problems = self.read(NETWORKING, "Ingress", api_version, spec=spec)
            self.assertEqual(obj["spec"]["defaultBackend"], {"service": {"name": "", "port": {"number": 3}}})
            first, second = obj["spec"]["rules"][0]["http"]["paths"]
            self.assertEqual(first["backend"], {"service": {"name": "s", "port": {"name": "p"}}})
            self.assertEqual(first["pathType"], "ImplementationSpecific")
            self.assertEqual((second["backend"], second["pathType"]), ({}, "Exact"))
            self.assertEqual(
                problems,
                [
                    'unknown field "spec.defaultBackend"',
                    'unknown field "spec.rules[0].http.paths[1].backend.service"',
                ],
            )
        for spec in ({"rules": [{"http": {"paths": paths}}]}, {"rules": 1}, {"backend": 1, "rules": [1]}):
            self.assertIn("cannot unmarshal", self.refused(NETWORKING, "Ingress", "extensions/v1beta1", spec=spec))

    def test_endpoint_slice(self) -> None:
        """Earlier EndpointSlices have the zone in the topology."""
        host, zone = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
        topology = {host: "h", zone: "z", "a": "b"}
        obj, problems = self.read(
            DISCOVERY,
            "EndpointSlice",
            "discovery.k8s.io/v1beta1",
            endpoints=[
                {"addresses": ["1"], "nodeName": "h", "topology": topology},
                {"addresses": ["2"], "topology": {host: "h"}, "zone": "y"},
            ],
        )
        self.assertEqual(problems, ['unknown field "endpoints[1].zone"'])
        first, second = obj["endpoints"]
        self.assertEqual((first["zone"], first["deprecatedTopology"]), ("z", {"a": "b"}))
        self.assertEqual(second["deprecatedTopology"], {host: "h"})
        self.assertNotIn("zone", second)
        self.assertIn(
            "cannot unmarshal", self.refused(DISCOVERY, "EndpointSlice", "discovery.k8s.io/v1beta1", endpoints=[1])
        )

    def test_event(self) -> None:
        """Events have had the same fields since their first version."""
        obj, problems = self.read("", "Event", "events.k8s.io/v1beta1", note="n")
        self.assertEqual((obj["message"], problems), ("n", []))

    def test_scale(self) -> None:
        """Earlier scales have a map as their selector."""
        gvk = "autoscaling", "Scale", "apps/v1beta2"
        text = (
            "json: cannot unmarshal string into Go struct field ScaleStatus.status.selector of type map[string]string"
        )
        self.assertEqual(self.refused(*gvk, status={"selector": "a=b"}), text)
        self.assertIn("unknown conversion", self.refused(*gvk, status={"selector": {"a": "b"}}))
