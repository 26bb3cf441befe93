"""Tests for L{kubetwist.schema.protobuf.codec}: what protobuf says, said in JSON."""

from __future__ import annotations

import math
import struct
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.decoding import BodyError
from kubetwist.api.resource import GroupVersion, GroupVersionKind
from kubetwist.schema.definitions import Definitions, available_versions
from kubetwist.schema.protobuf.codec import (
    WireError,
    read_envelope,
)
from kubetwist.schema.protobuf.fieldnumbers import field_numbers
from tests.schema.protobuf.encoder import (
    Encoder,
    counted,
    enveloped,
    number,
    varint,
)
from tests.schema.release import definitions, type_of, values

CORE = "io.k8s.api.core.v1"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"

#: Answers, which nobody sends, and what has no form in protobuf.
_UNREAD = {f"{META}.APIResource", f"{META}.APIResourceList", "io.k8s.apimachinery.pkg.version.Info"}
#: Came when the numbers of its release were not yet known.
_LATER = {"runningInUserNamespace", "compatibilityGroups", "derivedAttributes"}

_KINDS = [
    ("Pod", "v1"),
    ("Service", "v1"),
    ("Node", "v1"),
    ("PersistentVolume", "v1"),
    ("ConfigMap", "v1"),
    ("Event", "events.k8s.io/v1"),
    ("Deployment", "apps/v1"),
    ("Lease", "coordination.k8s.io/v1"),
    ("CertificateSigningRequest", "certificates.k8s.io/v1"),
    ("MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1"),
    ("HorizontalPodAutoscaler", "autoscaling/v1"),
    ("ResourceClaim", "resource.k8s.io/v1"),
    ("CustomResourceDefinition", "apiextensions.k8s.io/v1"),
    ("APIService", "apiregistration.k8s.io/v1"),
]


@cache
def encoder() -> Encoder:
    """An encoder of the default release."""
    return Encoder(definitions())


def decoded(definition: str, *fields: bytes) -> Any:
    """The value of a message."""
    return definitions().protobuf.decode(definition, b"".join(fields))


def without_nulls(value: Any) -> Any:
    """A value without what protobuf can not say."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value


class EnvelopeTests(SynchronousTestCase):
    """Tests for L{read_envelope}."""

    def refused(self, data: bytes) -> str:
        """What is said of a body that is none."""
        return self.assertRaises(BodyError, read_envelope, data).as_body_of_object()

    def test_kubectl(self) -> None:
        """What kubectl 1.32 sends for "create configmap" is a ConfigMap."""
        data = bytes.fromhex(
            "6b3873000a0f0a0276311209436f6e6669674d6170121b0a110a016112001a0022002a00320038004200"
            "12060a01781201311a002200"
        )
        envelope = read_envelope(data)
        self.assertEqual(envelope[:2], ("v1", "ConfigMap"))
        value = decoded(f"{CORE}.ConfigMap", envelope.raw)
        self.assertEqual((value["metadata"]["name"], value["data"]), ("a", {"x": "1"}))
        obj = type_of("ConfigMap").decode(value, problems := [])
        self.assertEqual((obj, problems), ({"metadata": {"name": "a"}, "data": {"x": "1"}}, []))

    def test_no_protobuf(self) -> None:
        """Bodies that are no protobuf are told from those that are empty."""
        prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        self.assertEqual(self.refused(b""), "empty data")
        self.assertEqual(self.refused(b"k8s\0"), "empty body")
        self.assertEqual(self.refused(b"k8s"), prefix)
        self.assertEqual(self.refused(b'{"kind": "Pod"}'), prefix)

    def test_broken(self) -> None:
        """An envelope that does not hold together is refused."""
        self.assertEqual(self.refused(b"k8s\0rubbish"), "unexpected EOF")
        self.assertEqual(self.refused(b"k8s\0" + number(2, 1)), "proto: wrong wireType = 0 for field Raw")
        self.assertEqual(self.refused(b"k8s\0" + counted(1, number(2, 1))), "proto: wrong wireType = 0 for field Kind")

    def test_said_nothing(self) -> None:
        """What is not said is empty."""
        self.assertEqual(read_envelope(b"k8s\0" + counted(4, "x")), ("", "", b""))


class ValueTests(SynchronousTestCase):
    """Tests for the types of fields, each in some message that has it."""

    def test_text(self) -> None:
        """Of a string that comes twice the last counts; what is no UTF-8 in it shows as the replacement character."""
        value = decoded(f"{META}.ObjectMeta", counted(1, "a"), counted(1, "é"), counted(2, b"\xff"))
        self.assertEqual(value, {"name": "é", "generateName": "\ufffd"})

    def test_numbers(self) -> None:
        """Numbers have the sign and the width of their type."""
        value = decoded(f"{CORE}.PodSecurityContext", number(2, -1), number(5, 1 << 62))
        self.assertEqual(value, {"runAsUser": -1, "fsGroup": 1 << 62})
        value = decoded("io.k8s.api.apps.v1.DeploymentSpec", number(1, -3), number(5, (1 << 32) + 7), number(7, 2))
        self.assertEqual(value, {"replicas": -3, "minReadySeconds": 7, "paused": True})

    def test_lists_of_numbers(self) -> None:
        """Lists of numbers come one by one, packed, or both."""
        value = decoded(
            f"{CORE}.PodSecurityContext", number(4, 1), counted(4, varint(300), varint(-1)), number(4, 2), counted(4)
        )
        self.assertEqual(value, {"supplementalGroups": [1, 300, -1, 2]})

    def test_doubles(self) -> None:
        """Doubles are read, but for those that JSON has not."""
        definition = f"{APIEXTENSIONS}.JSONSchemaProps"
        self.assertEqual(decoded(definition, varint(9 << 3 | 1), struct.pack("<d", -2.5)), {"maximum": -2.5})
        for what, shown in ((math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN")):
            error = self.assertRaises(WireError, decoded, definition, varint(9 << 3 | 1), struct.pack("<d", what))
            self.assertEqual(str(error), f"json: unsupported value: {shown}")

    def test_bytes(self) -> None:
        """Bytes are base64."""
        value = decoded(
            f"{CORE}.Secret", counted(2, counted(1, "a"), counted(2, b"\0\xff")), counted(2, counted(1, "b"))
        )
        self.assertEqual(value, {"data": {"a": "AP8=", "b": ""}})

    def test_maps(self) -> None:
        """An entry of a map may lack its key or its value, and may say them in any order, or twice."""
        value = decoded(
            f"{META}.ObjectMeta",
            counted(11, counted(2, "1"), counted(1, "a")),
            counted(11, counted(1, "x"), counted(1, "b"), number(3, 1)),
            counted(11, counted(2, "2")),
            counted(11, counted(1, "a"), counted(2, "3")),
        )
        self.assertEqual(value, {"labels": {"a": "3", "b": "", "": "2"}})

    def test_lists_in_maps(self) -> None:
        """A list in a map is a message around it."""
        value = decoded(
            "io.k8s.api.authentication.v1.UserInfo",
            counted(4, counted(1, "a"), counted(2, counted(1, "x"), counted(1, "y"))),
            counted(4, counted(1, "b")),
        )
        self.assertEqual(value, {"extra": {"a": ["x", "y"], "b": []}})

    def test_times(self) -> None:
        """Times count from 1970 and are in UTC; one without content is none at all."""
        value = decoded(
            f"{META}.ObjectMeta",
            counted(8, number(1, 0), number(2, 0)),
            counted(9, number(1, -1), number(2, 999_999_999)),
        )
        self.assertEqual(
            value, {"creationTimestamp": "1970-01-01T00:00:00Z", "deletionTimestamp": "1969-12-31T23:59:59Z"}
        )
        self.assertEqual(decoded(f"{META}.ObjectMeta", counted(8)), {"creationTimestamp": None})
        error = self.assertRaises(WireError, decoded, f"{META}.ObjectMeta", counted(8, number(1, 1 << 40)))
        self.assertEqual(str(error), "Time.MarshalJSON: year outside of range [0,9999]")

    def test_micro_times(self) -> None:
        """Nanoseconds are cut off, and may be negative."""
        definition = "io.k8s.api.coordination.v1.LeaseSpec"
        value = decoded(
            definition, counted(3, number(1, 5), number(2, 1999)), counted(4, number(1, 5), number(2, -1999))
        )
        self.assertEqual(
            value, {"acquireTime": "1970-01-01T00:00:05.000001Z", "renewTime": "1970-01-01T00:00:04.999999Z"}
        )
        self.assertEqual(decoded(definition, counted(3)), {"acquireTime": None})

    def test_quantities(self) -> None:
        """Quantities are strings; one without content is 0."""
        definition = f"{CORE}.ResourceRequirements"
        value = decoded(definition, counted(1, counted(1, "cpu"), counted(2, counted(1, "1.5"))), counted(1))
        self.assertEqual(value, {"limits": {"cpu": "1.5", "": "0"}})

    def test_int_or_string(self) -> None:
        """A number or a string is what its type says, whatever else is there."""
        definition = f"{CORE}.ServicePort"
        value = decoded(definition, counted(4, number(1, 0), number(2, 80), counted(3, "x")))
        self.assertEqual(value, {"targetPort": 80})
        self.assertEqual(decoded(definition, counted(4, number(1, 1), number(2, 80))), {"targetPort": ""})
        error = self.assertRaises(WireError, decoded, definition, counted(4, number(1, 2)))
        self.assertEqual(str(error), "impossible IntOrString.Type")

    def test_json(self) -> None:
        """JSON stands within protobuf; it may be missing, but not be broken."""
        definition = "io.k8s.api.apps.v1.ControllerRevision"
        self.assertEqual(decoded(definition, counted(2, counted(1, '{"a": [null]}'))), {"data": {"a": [None]}})
        self.assertEqual(decoded(definition, counted(2)), {"data": None})
        error = self.assertRaises(WireError, decoded, definition, counted(2, counted(1, "{")))
        self.assertEqual(str(error), "unexpected end of JSON input")

    def test_inlined(self) -> None:
        """A message whose fields JSON shows in the one around it is taken apart."""
        value = decoded(f"{CORE}.Volume", counted(1, "v"), counted(2, counted(6, counted(1, "s"))))
        self.assertEqual(value, {"name": "v", "secret": {"secretName": "s"}})
        rule = counted(1, "CREATE"), counted(2, counted(1, "apps"), counted(4, "Namespaced"))
        value = decoded(
            "io.k8s.api.admissionregistration.v1.NamedRuleWithOperations", counted(1, "n"), counted(2, *rule)
        )
        self.assertEqual(
            value, {"resourceNames": ["n"], "operations": ["CREATE"], "apiGroups": ["apps"], "scope": "Namespaced"}
        )

    def test_merged(self) -> None:
        """A message that comes twice is one."""
        value = decoded(
            f"{CORE}.Pod",
            counted(2, counted(2, counted(1, "a")), counted(3, "Never")),
            counted(2, counted(2, counted(1, "b")), counted(3, "Always")),
        )
        self.assertEqual(value, {"spec": {"containers": [{"name": "a"}, {"name": "b"}], "restartPolicy": "Always"}})

    def test_schemas(self) -> None:
        """Where JSON has a schema or something else, so has protobuf."""
        definition = f"{APIEXTENSIONS}.JSONSchemaProps"
        schema = counted(5, "string")
        value = decoded(
            definition,
            counted(2, "http://json-schema.org/schema#"),
            counted(3, "#/x"),
            counted(8, counted(1, "1.5")),
            counted(24, counted(1, schema)),
            counted(30, number(1, 1)),
            counted(32, counted(1, "a"), counted(2, counted(2, "b"))),
            number(38, 1),
        )
        self.assertEqual(
            value,
            {
                "$schema": "http://json-schema.org/schema#",
                "$ref": "#/x",
                "default": 1.5,
                "items": {"type": "string"},
                "additionalProperties": True,
                "dependencies": {"a": ["b"]},
                "x-kubernetes-preserve-unknown-fields": True,
            },
        )
        self.assertEqual(decoded(definition, counted(30)), {"additionalProperties": False})
        self.assertEqual(decoded(definition, counted(30, counted(2))), {"additionalProperties": {}})
        self.assertEqual(decoded(definition, counted(24, counted(2, schema))), {"items": [{"type": "string"}]})

    def test_names(self) -> None:
        """JSON names that are no names in protobuf are JSON's."""
        self.assertEqual(decoded(f"{META}.ListMeta", counted(3, "x")), {"continue": "x"})
        self.assertEqual(decoded(f"{CORE}.PodList", counted(1), counted(2)), {"metadata": {}, "items": [{}]})


class MalformedTests(SynchronousTestCase):
    """Tests for messages that are none."""

    def refused(self, *fields: bytes, definition: str = f"{CORE}.Pod") -> str:
        """What is said of a message."""
        return str(self.assertRaises(WireError, decoded, definition, *fields))

    def test_unknown_fields(self) -> None:
        """Fields that nobody knows are skipped, in whatever form they come."""
        group = varint(1000 << 3 | 3) + number(1, 1) + varint(5 << 3 | 3) + varint(5 << 3 | 4) + varint(1000 << 3 | 4)
        value = decoded(
            f"{CORE}.Pod",
            number(900, 1 << 63),
            counted(900, "x" * 200),
            varint(900 << 3 | 1) + bytes(8),
            varint(900 << 3 | 5) + bytes(4),
            group,
            counted(2, counted(3, "Never")),
        )
        self.assertEqual(value, {"spec": {"restartPolicy": "Never"}})

    def test_cut_short(self) -> None:
        """Whatever ends too early is refused, within a message as at its end."""
        for data in (
            b"\x80",
            b"\x0a",
            b"\x0a\x05ab",
            counted(2, b"\x1a\x05ab") + b"abc",
            counted(1, b"\x5a\x03\x0a\x05ab"),
            varint(900 << 3 | 1) + bytes(7),
            varint(900 << 3 | 5) + bytes(3),
            varint(900 << 3 | 3) + number(1, 1),
            counted(2, b"\x28\x80") + bytes(9),
        ):
            self.assertEqual(self.refused(data), "unexpected EOF")
        double = varint(9 << 3 | 1) + bytes(7)
        self.assertEqual(self.refused(double, definition=f"{APIEXTENSIONS}.JSONSchemaProps"), "unexpected EOF")

    def test_numbers(self) -> None:
        """Numbers and lengths have limits."""
        self.assertEqual(self.refused(b"\x80" * 11), "proto: integer overflow")
        self.assertEqual(self.refused(b"\x0a", varint(-1)), "proto: negative length found during unmarshaling")

    def test_forms(self) -> None:
        """A field has one form, and a message no end of its own."""
        self.assertEqual(self.refused(number(2, 1)), "proto: wrong wireType = 0 for field Spec")
        self.assertEqual(
            self.refused(counted(2, counted(4, "x"))),
            "proto: wrong wireType = 2 for field TerminationGracePeriodSeconds",
        )
        self.assertEqual(self.refused(varint(7 << 3 | 6)), "proto: illegal wireType 6")
        self.assertEqual(self.refused(varint(2 << 3 | 4)), "proto: Pod: wiretype end group for non-group")
        self.assertEqual(self.refused(number(0, 1)), "proto: Pod: illegal tag 0 (wire type 0)")

    def test_depth(self) -> None:
        """Messages, and JSON in them, nest only so deep; skipped groups any."""
        definition = f"{APIEXTENSIONS}.JSONSchemaProps"
        schema = b""
        for _ in range(100):
            schema = counted(28, schema)
        self.assertIn("not", decoded(definition, schema))
        self.assertEqual(self.refused(counted(28, schema), definition=definition), "exceeded max depth")
        for _ in range(1000):
            schema = counted(28, schema)
        self.assertEqual(self.refused(schema, definition=definition), "exceeded max depth")
        text = counted(8, counted(1, "[" * 200 + "]" * 200))
        self.assertIn("default", decoded(definition, text))
        for _ in range(60):
            text = counted(28, text)
        self.assertEqual(self.refused(text, definition=definition), "exceeded max depth")
        groups = varint(900 << 3 | 3) * 100_000 + varint(900 << 3 | 4) * 100_000
        self.assertEqual(decoded(definition, groups), {})

    @given(st.binary(max_size=200))
    @settings(max_examples=100, deadline=None)
    def test_garbage(self, data: bytes) -> None:
        """Any bytes are a message or none, and the reader says which."""
        for definition in (f"{CORE}.Pod", f"{APIEXTENSIONS}.JSONSchemaProps"):
            try:
                self.assertIsInstance(decoded(definition, data), dict)
            except WireError as error:
                self.assertTrue(str(error))

    @given(st.data())
    @settings(max_examples=100, deadline=None)
    def test_damage(self, data: st.DataObject) -> None:
        """A good body with a bit of damage is read or refused, by the envelope or within."""
        pod = {
            "metadata": {"name": "a", "labels": {"a": "b"}, "creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": {
                "containers": [{"name": "c", "ports": [{"containerPort": 1}], "resources": {"limits": {"cpu": "1"}}}]
            },
        }
        body = bytearray(enveloped("v1", "Pod", encoder().message(f"{CORE}.Pod", pod)))
        for _ in range(data.draw(st.integers(1, 3))):
            body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
        cut = data.draw(st.integers(4, len(body)))
        try:
            envelope = read_envelope(bytes(body[:cut]))
            self.assertIsInstance(decoded(f"{CORE}.Pod", envelope.raw), dict)
        except (BodyError, WireError) as error:
            self.assertTrue(str(error))


class TypesTests(SynchronousTestCase):
    """Tests for all the types."""

    @given(st.sampled_from(_KINDS), st.data())
    @settings(max_examples=150, deadline=None)
    def test_round_trip(self, kind: tuple[str, str], data: st.DataObject) -> None:
        """What goes through protobuf is the object that went through JSON."""
        name, api_version = kind
        known = type_of(name, api_version)
        obj = without_nulls(known.decode(data.draw(values(known.root)), []))
        for part in ("kind", "apiVersion"):
            obj.pop(part, None)
        definition = definitions().definition_of(GroupVersionKind(*GroupVersion.parse(api_version), name))
        again = decoded(definition, encoder().message(definition, obj))
        problems: list[str] = []
        self.assertEqual(known.decode(again, problems), known.decode(obj, []))
        self.assertEqual(problems, [])

    def test_all_fields(self) -> None:
        """Every field of every type of every release has a number of its own."""
        for minor in available_versions():
            release = Definitions.load(minor)
            schemas = release.openapi_schemas("#/definitions/")
            for definition, schema in schemas.items():
                package, _, type_name = definition.rpartition(".")
                later = minor == available_versions()[-1] and type_name == "DeviceDerivedAttribute"
                if "properties" not in schema or definition in _UNREAD or later:
                    continue
                found: list[str] = []
                self.collect(package, type_name, schema["properties"], found)
                missing = set(schema["properties"]) - set(found) - {"kind", "apiVersion"}
                if minor == available_versions()[-1]:
                    missing -= _LATER
                self.assertEqual((minor, definition, sorted(missing)), (minor, definition, []))
                self.assertEqual(len(found), len(set(found)))

    def collect(self, package: str, type_name: str, properties: dict[str, Any], found: list[str]) -> None:
        """Find the fields of a message that are among C{properties}."""
        group, version = package.split(".")[-2:]
        numbers = []
        for name, field in field_numbers(group, version, type_name).items():
            if name.startswith("*"):
                numbers.append(field)
                self.collect(package, name[1:], properties, found)
            elif name in properties:
                numbers.append(field)
                found.append(name)
        self.assertEqual(len(numbers), len(set(numbers)), type_name)

    def test_other_releases(self) -> None:
        """A field that only another release has is skipped, a type that has different numbers in each version known."""
        old = Definitions.load("1.25").protobuf
        sent = encoder().message(f"{CORE}.PodSpec", {"hostUsers": True, "schedulingGates": [{"name": "x"}]})
        self.assertEqual(old.decode(f"{CORE}.PodSpec", sent), {"hostUsers": True})
        new = definitions().protobuf
        class_name = counted(2, "gpu")
        self.assertEqual(
            new.decode("io.k8s.api.resource.v1beta1.DeviceRequest", class_name), {"deviceClassName": "gpu"}
        )
        exactly = counted(2, counted(1, "gpu"))
        self.assertEqual(
            new.decode("io.k8s.api.resource.v1.DeviceRequest", exactly), {"exactly": {"deviceClassName": "gpu"}}
        )
