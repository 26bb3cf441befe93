"""Tests for L{kubetwist.schema.objecttype}: the results of decoding valid objects."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.objecttype import DecodeError, ObjectType
from tests.schema.release import type_of, values
from tests.schema.typecase import container, decoded

_KINDS = [
    ("Pod", "v1"),
    ("Service", "v1"),
    ("Node", "v1"),
    ("Secret", "v1"),
    ("Event", "v1"),
    ("Deployment", "apps/v1"),
    ("Role", "rbac.authorization.k8s.io/v1"),
    ("HorizontalPodAutoscaler", "autoscaling/v2"),
    ("ResourceClaim", "resource.k8s.io/v1"),
]


class PresenceTests(SynchronousTestCase):
    """Tests for the presence of fields."""

    def test_empty_object(self) -> None:
        """Fields without C{omitempty} are present even in an empty object."""
        self.assertEqual(decoded({}), {"metadata": {}, "spec": {"containers": None}, "status": {}})
        self.assertEqual(decoded({}, "Service"), {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}})
        self.assertEqual(decoded({}, "Role", "rbac.authorization.k8s.io/v1"), {"metadata": {}, "rules": None})
        self.assertEqual(decoded({}, "ConfigMap"), {"metadata": {}})

    def test_zero(self) -> None:
        """The zero object of a kind equals a decoded empty object."""
        for kind, api_version in _KINDS:
            self.assertEqual(type_of(kind, api_version).zero(), decoded({}, kind, api_version))

    def test_zero_objects_are_not_shared(self) -> None:
        """Changing one decoded object changes no other."""
        decoded({})["metadata"]["name"] = "x"
        decoded({})["status"]["phase"] = "x"
        self.assertEqual(decoded({})["metadata"], {})
        self.assertEqual(decoded({})["status"], {})

    def test_omitempty(self) -> None:
        """Empty strings, zeros, false, empty lists and maps are omitted from fields with C{omitempty}."""
        spec = {
            "containers": [],
            "nodeName": "",
            "hostNetwork": False,
            "priority": 0,
            "volumes": [],
            "nodeSelector": {},
        }
        self.assertEqual(decoded({"spec": spec})["spec"], {"containers": None, "priority": 0})

    def test_pointers(self) -> None:
        """A pointer keeps a zero value, including an empty struct."""
        self.assertEqual(
            decoded({"spec": {"replicas": 0, "paused": False}}, "Deployment", "apps/v1")["spec"]["replicas"], 0
        )
        self.assertEqual(container(securityContext={}), {"name": "", "resources": {}, "securityContext": {}})

    def test_no_omitempty(self) -> None:
        """Fields without C{omitempty} have their zero value, also in structs that were missing."""
        self.assertEqual(container(ports=[{}])["ports"], [{"containerPort": 0}])
        self.assertEqual(
            decoded({}, "Deployment", "apps/v1")["spec"],
            {"selector": None, "strategy": {}, "template": {"metadata": {}, "spec": {"containers": None}}},
        )
        self.assertEqual(decoded({"status": {"conditions": [{}]}})["status"]["conditions"][0]["lastProbeTime"], None)

    def test_null(self) -> None:
        """A null field counts as absent; in a list or map, null is the zero value."""
        self.assertEqual(decoded({"metadata": None, "spec": None}), decoded({}))
        self.assertEqual(container(command=["a", None])["command"], ["a", ""])
        self.assertEqual(container(env=[None])["env"], [{"name": ""}])
        self.assertEqual(container(resources={"limits": {"cpu": None}})["resources"], {"limits": {"cpu": "0"}})
        self.assertEqual(decoded({"data": {"a": None}}, "ConfigMap")["data"], {"a": ""})
        self.assertEqual(decoded({"data": {"a": None}}, "Secret")["data"], {"a": ""})

    def test_creation_timestamp(self) -> None:
        """A creationTimestamp of null or zero is omitted."""
        for zero in (None, "0001-01-01T00:00:00Z"):
            self.assertEqual(decoded({"metadata": {"creationTimestamp": zero}})["metadata"], {})

    def test_order(self) -> None:
        """Fields keep their order, and added fields follow."""
        self.assertEqual(
            list(decoded({"status": {}, "kind": "Pod", "spec": {}})), ["status", "kind", "spec", "metadata"]
        )


class UnknownFieldTests(SynchronousTestCase):
    """Tests for unknown fields."""

    def strict_errors(self, kind: ObjectType, obj: Any) -> list[str]:
        """Return the strict decoding errors of an object."""
        problems: list[str] = []
        kind.decode(obj, problems)
        return problems

    def test_paths(self) -> None:
        """Unknown fields are reported with their paths in the order of the document, and removed."""
        spec = {"extra": 1, "containers": [{"name": "a"}, {"imagePolicy": "x", "ports": [{"port": 1}]}]}
        problems: list[str] = []
        pod = type_of("Pod").decode({"top": None, "spec": spec}, problems)
        self.assertEqual(
            problems,
            [
                'unknown field "top"',
                'unknown field "spec.extra"',
                'unknown field "spec.containers[1].imagePolicy"',
                'unknown field "spec.containers[1].ports[0].port"',
            ],
        )
        self.assertNotIn("top", pod)
        self.assertEqual(pod["spec"]["containers"][1], {"name": "", "ports": [{"containerPort": 0}], "resources": {}})

    def test_case(self) -> None:
        """Names of fields are case-sensitive."""
        self.assertEqual(self.strict_errors(type_of("ConfigMap"), {"Data": {}}), ['unknown field "Data"'])

    def test_within_maps(self) -> None:
        """Keys of maps are part of the path."""
        quota = {"spec": {"scopeSelector": {"matchExpressions": [{"a": 1}]}}}
        expected = ['unknown field "spec.scopeSelector.matchExpressions[0].a"']
        self.assertEqual(self.strict_errors(type_of("ResourceQuota"), quota), expected)
        devices = {"devices": [{"capacity": {"mem": {"x": 1}}}]}
        slices = self.strict_errors(type_of("ResourceSlice", "resource.k8s.io/v1"), {"spec": devices})
        self.assertEqual(slices, ['unknown field "spec.devices[0].capacity.mem.x"'])

    def test_limit(self) -> None:
        """At most a hundred errors are reported."""
        self.assertEqual(len(self.strict_errors(type_of("ConfigMap"), {f"x{number}": 1 for number in range(500)})), 100)

    def test_schema_unions(self) -> None:
        """Unknown fields of a JSON schema in place of a boolean or a list are not reported."""
        schema = {"additionalProperties": {"bogus": 1}, "bogus": 2}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        crd = type_of("CustomResourceDefinition", "apiextensions.k8s.io/v1")
        self.assertEqual(
            self.strict_errors(crd, {"spec": {"versions": [version]}}),
            ['unknown field "spec.versions[0].schema.openAPIV3Schema.bogus"'],
        )


class PropertyTests(SynchronousTestCase):
    """Properties of decoding arbitrary objects."""

    @settings(max_examples=150, deadline=None)
    @given(data=st.data(), named=st.sampled_from(_KINDS))
    def test_idempotent(self, data: st.DataObject, named: tuple[str, str]) -> None:
        """Decoding a decoded object changes nothing, and decoding does not modify its input."""
        kind = type_of(*named)
        obj = data.draw(values(kind.root))
        before = copy.deepcopy(obj)
        problems: list[str] = []
        once = kind.decode(obj, problems)
        self.assertEqual(obj, before)
        self.assertEqual(kind.decode(once, problems), once)
        self.assertEqual(problems, [])

    @settings(max_examples=100, deadline=None)
    @given(data=st.data(), named=st.sampled_from(_KINDS))
    def test_any_unknown_field(self, data: st.DataObject, named: tuple[str, str]) -> None:
        """An unknown field at any place is reported and removed."""
        kind = type_of(*named)
        obj = data.draw(values(kind.root))
        without: list[str] = []
        expected = kind.decode(obj, without)
        metadata = obj.setdefault("metadata", {})
        (obj if metadata is None else metadata)["bogusField"] = {"a": [1]}
        problems: list[str] = []
        self.assertEqual(kind.decode(obj, problems), expected)
        self.assertEqual(len(problems), 1)
        self.assertIn("bogusField", problems[0])


class FromUnstructuredTests(SynchronousTestCase):
    """Tests for numbers as converted by apimachinery's converter of unstructured objects."""

    def convert(self, obj: Any, kind: str, api_version: str) -> Any:
        """Return an object that is decoded as the result of a strategic merge patch."""
        return type_of(kind, api_version).decode(obj, [], from_unstructured=True)

    def test_whole_floats(self) -> None:
        """Whole floats are integers, unlike in JSON."""
        for number, replicas in ((2.0, 2), (1e1, 10), (-3.0, -3)):
            obj = {"spec": {"replicas": number, "template": {}, "selector": {}}}
            self.assertEqual(self.convert(obj, "Deployment", "apps/v1")["spec"]["replicas"], replicas)
            self.assertRaises(DecodeError, type_of("Deployment", "apps/v1").decode, obj, [])

    def test_overflow(self) -> None:
        """Integers are truncated to their width, and numbers beyond 64 bits become the minimum integer."""
        for number, replicas in (
            (1 << 31, -(1 << 31)),
            ((1 << 32) + 2, 2),
            (-(1 << 32) - 1, -1),
            ((1 << 63) - 1, -1),
            (1 << 63, 0),
            (1e30, 0),
            (3e9, 3_000_000_000 - (1 << 32)),
        ):
            obj = {"spec": {"replicas": number}}
            self.assertEqual(self.convert(obj, "Deployment", "apps/v1")["spec"]["replicas"], replicas, number)
        seconds = self.convert({"spec": {"activeDeadlineSeconds": 1 << 63}}, "Job", "batch/v1")["spec"]
        self.assertEqual(seconds["activeDeadlineSeconds"], -(1 << 63))

    def test_unmarshalers(self) -> None:
        """Types with an unmarshaler get numbers in Go's format."""
        spec = {"ports": [{"port": 80.0, "targetPort": 90.0}]}
        self.assertEqual(
            self.convert({"spec": spec}, "Service", "v1")["spec"]["ports"], [{"port": 80, "targetPort": 90}]
        )
        limits = self.convert({"status": {"capacity": {"cpu": 2.0}}}, "Node", "v1")["status"]["capacity"]
        self.assertEqual(limits, {"cpu": "2"})

    def test_bytes(self) -> None:
        """Bytes may be lists of numbers, of which the lowest eight bits are used."""
        data = self.convert({"data": {"a": [256, -1, 65.0]}}, "Secret", "v1")["data"]
        self.assertEqual(data, {"a": "AP9B"})

    def test_refused(self) -> None:
        """Fractions and values of other types are rejected with the converter's messages."""
        for value, why in (
            (2.5, "cannot convert float64 to int32"),
            (True, "unrecognized type: int32"),
            ("2", "unrecognized type: int32"),
        ):
            error = self.assertRaises(DecodeError, self.convert, {"spec": {"replicas": value}}, "Deployment", "apps/v1")
            self.assertEqual(error.converted, why)
        error = self.assertRaises(DecodeError, self.convert, {"data": {"a": "YQ"}}, "Secret", "v1")
        self.assertEqual(error.converted, "error decoding from json: illegal base64 data at input byte 0")
        self.assertEqual(str(error), "illegal base64 data at input byte 0")
