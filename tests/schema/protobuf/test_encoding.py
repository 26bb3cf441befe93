"""Tests for L{kubetwist.schema.protobuf.encoding}: the same bytes as from Go's generated marshalers."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.nodes import ListNode, MapNode, StructNode
from kubetwist.schema.protobuf.codec import read_envelope
from kubetwist.schema.protobuf.encoding import envelope
from kubetwist.schema.protobuf.fieldnumbers import field_numbers
from kubetwist.schema.protobuf.wire import WireError
from tests.schema.protobuf.encoder import (
    delimited,
    number,
    varint,
)
from tests.schema.release import definitions, kinds_in_protobuf, type_of, values

CORE = "io.k8s.api.core.v1"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


def encoded(definition: str, value: dict[str, Any]) -> bytes:
    """Return the message of a value."""
    return definitions().protobuf.encode(definition, value)


def without_nulls(value: Any) -> Any:
    """Return a value without nulls, which protobuf cannot represent."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value


def without_type(value: Any, node: Any) -> Any:
    """Return a value without the kinds of nested objects, which protobuf does not encode."""
    if isinstance(node, StructNode) and isinstance(value, dict):
        package, _, name = node.name.rpartition(".")
        numbers = field_numbers(*package.split(".")[-2:], name)
        return {
            name: without_type(item, node.fields[name].node)
            for name, item in value.items()
            if name in numbers or name not in ("kind", "apiVersion")
        }
    if isinstance(node, ListNode):
        return [without_type(item, node.item) for item in value]
    if isinstance(node, MapNode):
        return {name: without_type(item, node.item) for name, item in value.items()}
    return value


def message(name: str, *fields: tuple[str, int, str]) -> descriptor_pb2.DescriptorProto:
    """
    Return the descriptor of a message, as a protobuf compiler generates it.

    @param fields: Names, numbers and types; a star after a type marks a list, a dot before a type a message, and a type
        in braces after it a map.
    """
    described = descriptor_pb2.DescriptorProto(name=name)
    kinds = {"string": 9, "int32": 5, "int64": 3, "bool": 8, "bytes": 12, "double": 1}
    for field, at, kind in fields:
        added = described.field.add(name=field, number=at, label=3 if kind.endswith("*") else 1)
        kind = kind.rstrip("*")
        if kind.startswith("."):
            added.type, added.type_name = 11, kind
        else:
            added.type = kinds[kind]
    return described


def foreign(name: str, *messages: descriptor_pb2.DescriptorProto) -> Any:
    """Return a message class of that name, from another implementation of protobuf."""
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto2", message_type=messages)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # type: ignore[no-untyped-call,unused-ignore]
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"t.{name}"))()


class VectorTests(SynchronousTestCase):
    """Tests with known bytes."""

    def test_kubectl(self) -> None:
        """A ConfigMap has the same bytes as the body of kubectl 1.32 for "create configmap"."""
        data = bytes.fromhex(
            "6b3873000a0f0a0276311209436f6e6669674d6170121b0a110a016112001a0022002a00320038004200"
            "12060a01781201311a002200"
        )
        body = encoded(f"{CORE}.ConfigMap", {"data": {"x": "1"}, "metadata": {"name": "a"}})
        self.assertEqual(envelope("v1", "ConfigMap", body), data)

    def test_always(self) -> None:
        """Fields that are not pointers are encoded even if they are zero; absent pointers, lists and maps are not."""
        self.assertEqual(
            encoded(f"{CORE}.ServicePort", {}),
            delimited(1)
            + delimited(2)
            + number(3, 0)
            + delimited(4, number(1, 0), number(2, 0), delimited(3))
            + number(5, 0),
        )
        self.assertEqual(
            encoded(f"{CORE}.ConfigMapKeySelector", {"key": "k"}),
            delimited(1, delimited(1)) + delimited(2, "k"),
        )
        self.assertEqual(encoded(f"{CORE}.PodSecurityContext", {}), b"")
        self.assertEqual(encoded(f"{CORE}.Volume", {}), delimited(1) + delimited(2))
        self.assertEqual(encoded(f"{CORE}.ResourceFieldSelector", {})[-5:], delimited(3, delimited(1, "0")))

    def test_removed_message(self) -> None:
        """A ResourceSlice does not have the fields of its first version."""
        body = encoded("io.k8s.api.resource.v1.ResourceSlice", {"spec": {"driver": "d", "pool": {}}})
        pool = delimited(1) + number(2, 0) + number(3, 0)
        metadata = encoded(f"{META}.ObjectMeta", {})
        self.assertEqual(
            body,
            delimited(1, metadata) + delimited(2, delimited(1, "d") + delimited(2, pool)),
        )

    def test_pointers(self) -> None:
        """A pointer to an empty value is encoded."""
        value = {"replicas": 0, "paused": False, "template": {}, "selector": {}}
        body = encoded("io.k8s.api.apps.v1.DeploymentSpec", value)
        self.assertTrue(body.startswith(number(1, 0) + delimited(2) + b"\x1a"))
        self.assertFalse(encoded("io.k8s.api.apps.v1.DeploymentSpec", {}).startswith(number(1, 0)))

    def test_numbers(self) -> None:
        """Negative numbers have ten bytes, and lists of numbers are not packed."""
        body = encoded(f"{CORE}.PodSecurityContext", {"runAsUser": -1, "supplementalGroups": [1, 300], "fsGroup": 5})
        self.assertEqual(body, number(2, -1) + number(4, 1) + number(4, 300) + number(5, 5))

    def test_maps(self) -> None:
        """Entries are sorted by key, and an entry with null bytes has no value."""
        body = encoded(f"{META}.LabelSelector", {"matchLabels": {"b": "1", "a": ""}})
        self.assertEqual(
            body,
            delimited(1, delimited(1, "a"), delimited(2)) + delimited(1, delimited(1, "b"), delimited(2, "1")),
        )
        body = encoded(f"{CORE}.Secret", {"data": {"a": None, "b": "", "c": "AP8="}})
        entries = [
            delimited(1, "a"),
            delimited(1, "b") + delimited(2),
            delimited(1, "c") + delimited(2, b"\0\xff"),
        ]
        self.assertIn(b"".join(delimited(2, entry) for entry in entries), body)

    def test_times(self) -> None:
        """A Time has seconds since 1970, a MicroTime also nanoseconds."""
        definition = "io.k8s.api.coordination.v1.LeaseSpec"
        body = encoded(definition, {"renewTime": "1970-01-01T00:00:05.000007Z"})
        self.assertEqual(body, delimited(4, number(1, 5), number(2, 7000)))
        body = encoded(definition, {"renewTime": "1969-12-31T23:59:59.500000Z"})
        self.assertEqual(body, delimited(4, number(1, -1), number(2, 500_000_000)))
        body = encoded(f"{META}.ManagedFieldsEntry", {"time": "2026-01-02T03:04:05Z"})
        self.assertIn(delimited(4, number(1, 1767323045), number(2, 0)), body)

    def test_custom_types(self) -> None:
        """IntOrStrings, quantities and JSON are encoded as messages."""
        body = encoded(f"{CORE}.HTTPGetAction", {"port": "http"})
        self.assertIn(delimited(2, number(1, 1), number(2, 0), delimited(3, "http")), body)
        body = encoded(f"{CORE}.ResourceRequirements", {"limits": {"cpu": "100m"}})
        self.assertEqual(body, delimited(1, delimited(1, "cpu"), delimited(2, delimited(1, "100m"))))
        body = encoded("io.k8s.api.apps.v1.ControllerRevision", {"data": {"a": [1, None]}})
        self.assertTrue(body.endswith(delimited(2, delimited(1, '{"a":[1,null]}')) + number(3, 0)))

    def test_schemas(self) -> None:
        """A JSON schema may be replaced by a list, a boolean or strings, as in JSON."""
        nothing = encoded(SCHEMA, {})
        for value, what in (
            ({"items": {}}, delimited(24, delimited(1, nothing))),
            ({"items": [{}, {}]}, delimited(24, delimited(2, nothing), delimited(2, nothing))),
            ({"additionalProperties": False}, delimited(30, number(1, 0))),
            ({"additionalProperties": {}}, delimited(30, number(1, 1), delimited(2, nothing))),
            (
                {"dependencies": {"a": ["b"]}},
                delimited(32, delimited(1, "a"), delimited(2, delimited(2, "b"))),
            ),
            ({"maximum": 1.5}, varint(9 << 3 | 1) + bytes.fromhex("000000000000f83f")),
            ({"default": "x"}, delimited(8, delimited(1, '"x"'))),
        ):
            self.assertIn(what, encoded(SCHEMA, value))


class ForeignTests(SynchronousTestCase):
    """Tests with another implementation of protobuf."""

    def test_pod(self) -> None:
        """The other implementation decodes an encoded pod."""
        read = foreign(
            "Pod",
            message("Pod", ("metadata", 1, ".t.Meta"), ("spec", 2, ".t.Spec")),
            message("Meta", ("name", 1, "string"), ("created", 8, ".t.Time"), ("labels", 11, ".t.Label*")),
            message("Time", ("seconds", 1, "int64"), ("nanos", 2, "int32")),
            message("Label", ("key", 1, "string"), ("value", 2, "string")),
            message("Spec", ("containers", 2, ".t.Container*"), ("grace", 4, "int64"), ("network", 11, "bool")),
            message("Container", ("name", 1, "string"), ("args", 4, "string*"), ("ports", 6, ".t.Port*")),
            message("Port", ("name", 1, "string"), ("host", 2, "int32"), ("container", 3, "int32")),
        )
        containers = [{"name": "c", "args": ["", "x"], "ports": [{"containerPort": 80}]}, {"name": "d"}]
        meta = {"name": "a", "labels": {"y": "2", "x": "1"}, "creationTimestamp": "1970-01-02T00:00:00Z"}
        spec = {"containers": containers, "terminationGracePeriodSeconds": -5, "hostNetwork": True}
        read.ParseFromString(encoded(f"{CORE}.Pod", {"metadata": meta, "spec": spec}))
        self.assertEqual((read.metadata.name, read.metadata.created.seconds), ("a", 86400))
        self.assertEqual([(one.key, one.value) for one in read.metadata.labels], [("x", "1"), ("y", "2")])
        self.assertEqual((read.spec.grace, read.spec.network), (-5, True))
        first, second = read.spec.containers
        self.assertEqual((first.name, list(first.args), second.name), ("c", ["", "x"], "d"))
        self.assertEqual([(one.host, one.container, one.HasField("name")) for one in first.ports], [(0, 80, True)])


class TypesTests(SynchronousTestCase):
    """Tests for all types."""

    @given(st.sampled_from(kinds_in_protobuf()), st.data())
    @settings(max_examples=300, deadline=None)
    def test_round_trip(self, gvk: Any, data: st.DataObject) -> None:
        """An encoded value is decoded to the same value."""
        known = definitions().type_for(gvk)
        obj = without_type(without_nulls(known.decode(data.draw(values(known.root)), [])), known.root)
        raw = encoded(known.definition, obj)
        opened = read_envelope(envelope(gvk.api_version, gvk.kind, raw))
        self.assertEqual(opened, (gvk.api_version, gvk.kind, raw))
        problems: list[str] = []
        again = known.decode(definitions().protobuf.decode(known.definition, raw), problems)
        self.assertEqual((again, problems), (known.decode(obj, []), []))

    def test_again(self) -> None:
        """A decoded message is encoded to the same bytes."""
        known = type_of("Deployment", "apps/v1")
        obj = {"metadata": {"name": "a"}, "spec": {"replicas": 2, "template": {"spec": {"volumes": [{"name": "v"}]}}}}
        raw = encoded(known.definition, obj)
        self.assertEqual(encoded(known.definition, definitions().protobuf.decode(known.definition, raw)), raw)

    def test_depth(self) -> None:
        """Encoded messages can be decoded, and the nesting depth is limited."""
        schema: dict[str, Any] = {}
        for _ in range(95):
            schema = {"not": schema}
        self.assertIn("not", definitions().protobuf.decode(SCHEMA, encoded(SCHEMA, schema)))
        for _ in range(5):
            schema = {"not": schema}
        error = self.assertRaises(WireError, encoded, SCHEMA, schema)
        self.assertEqual(str(error), "exceeded max depth")

    def test_none(self) -> None:
        """Values of the wrong type are rejected, and unknown fields are left out."""
        for value in ({"spec": []}, {"metadata": {"name": 1}}, {"metadata": {"creationTimestamp": "soon"}}):
            error = self.assertRaises(WireError, encoded, f"{CORE}.Pod", value)
            self.assertIn("Pod cannot be written as protobuf: ", str(error))
        self.assertEqual(encoded(f"{CORE}.Pod", {"colour": "red"}), encoded(f"{CORE}.Pod", {}))
