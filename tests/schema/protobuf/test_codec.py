"""Tests for L{kubetwist.schema.protobuf.codec}: decoding of protobuf."""

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
from kubetwist.schema.definitions import Definitions
from kubetwist.schema.protobuf.codec import (
    WireError,
    read_envelope,
)
from kubetwist.schema.protobuf.fieldnumbers import field_numbers
from kubetwist.schema.releasefiles import available_versions
from tests.schema.protobuf.encoder import (
    Encoder,
    delimited,
    enveloped,
    number,
    varint,
)
from tests.schema.release import definitions, type_of, values

CORE = "io.k8s.api.core.v1"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"

#: Types that are only sent in responses, and types without a protobuf form.
_UNREAD = {f"{META}.APIResource", f"{META}.APIResourceList", "io.k8s.apimachinery.pkg.version.Info"}
#: A type of a release whose field numbers are not known yet.
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
    """Return an encoder of the default release."""
    return Encoder(definitions())


def decoded(definition: str, *fields: bytes) -> Any:
    """Return the decoded value of a message."""
    return definitions().protobuf.decode(definition, b"".join(fields))


def without_nulls(value: Any) -> Any:
    """Return a value without nulls, which protobuf cannot represent."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value


class EnvelopeTests(SynchronousTestCase):
    """Tests for L{read_envelope}."""

    def refused(self, data: bytes) -> str:
        """Return the error of an invalid body."""
        return self.assertRaises(BodyError, read_envelope, data).as_body_of_object()

    def test_kubectl(self) -> None:
        """The body of kubectl 1.32 for "create configmap" is decoded to a ConfigMap."""
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
        """The errors for bodies without the prefix and for empty bodies differ."""
        prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        self.assertEqual(self.refused(b""), "empty data")
        self.assertEqual(self.refused(b"k8s\0"), "empty body")
        self.assertEqual(self.refused(b"k8s"), prefix)
        self.assertEqual(self.refused(b'{"kind": "Pod"}'), prefix)

    def test_broken(self) -> None:
        """A malformed envelope is rejected."""
        self.assertEqual(self.refused(b"k8s\0rubbish"), "unexpected EOF")
        self.assertEqual(self.refused(b"k8s\0" + number(2, 1)), "proto: wrong wireType = 0 for field Raw")
        self.assertEqual(
            self.refused(b"k8s\0" + delimited(1, number(2, 1))), "proto: wrong wireType = 0 for field Kind"
        )

    def test_empty_envelope(self) -> None:
        """Missing fields of the envelope are empty."""
        self.assertEqual(read_envelope(b"k8s\0" + delimited(4, "x")), ("", "", b""))


class ValueTests(SynchronousTestCase):
    """Tests for the types of fields, each in a message with such a field."""

    def test_text(self) -> None:
        """The last of repeated strings counts, and invalid UTF-8 is replaced."""
        value = decoded(f"{META}.ObjectMeta", delimited(1, "a"), delimited(1, "é"), delimited(2, b"\xff"))
        self.assertEqual(value, {"name": "é", "generateName": "\ufffd"})

    def test_numbers(self) -> None:
        """Numbers have the sign and the width of their type."""
        value = decoded(f"{CORE}.PodSecurityContext", number(2, -1), number(5, 1 << 62))
        self.assertEqual(value, {"runAsUser": -1, "fsGroup": 1 << 62})
        value = decoded("io.k8s.api.apps.v1.DeploymentSpec", number(1, -3), number(5, (1 << 32) + 7), number(7, 2))
        self.assertEqual(value, {"replicas": -3, "minReadySeconds": 7, "paused": True})

    def test_lists_of_numbers(self) -> None:
        """Lists of numbers are packed or not, or both."""
        value = decoded(
            f"{CORE}.PodSecurityContext",
            number(4, 1),
            delimited(4, varint(300), varint(-1)),
            number(4, 2),
            delimited(4),
        )
        self.assertEqual(value, {"supplementalGroups": [1, 300, -1, 2]})

    def test_doubles(self) -> None:
        """Doubles are decoded, except those without a JSON form."""
        definition = f"{APIEXTENSIONS}.JSONSchemaProps"
        self.assertEqual(decoded(definition, varint(9 << 3 | 1), struct.pack("<d", -2.5)), {"maximum": -2.5})
        for what, shown in ((math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN")):
            error = self.assertRaises(WireError, decoded, definition, varint(9 << 3 | 1), struct.pack("<d", what))
            self.assertEqual(str(error), f"json: unsupported value: {shown}")

    def test_bytes(self) -> None:
        """Bytes are base64."""
        value = decoded(
            f"{CORE}.Secret",
            delimited(2, delimited(1, "a"), delimited(2, b"\0\xff")),
            delimited(2, delimited(1, "b")),
        )
        self.assertEqual(value, {"data": {"a": "AP8=", "b": ""}})

    def test_maps(self) -> None:
        """An entry of a map may lack key or value, and may have them in any order and repeatedly."""
        value = decoded(
            f"{META}.ObjectMeta",
            delimited(11, delimited(2, "1"), delimited(1, "a")),
            delimited(11, delimited(1, "x"), delimited(1, "b"), number(3, 1)),
            delimited(11, delimited(2, "2")),
            delimited(11, delimited(1, "a"), delimited(2, "3")),
        )
        self.assertEqual(value, {"labels": {"a": "3", "b": "", "": "2"}})

    def test_lists_in_maps(self) -> None:
        """A list in a map is encoded as a message."""
        value = decoded(
            "io.k8s.api.authentication.v1.UserInfo",
            delimited(4, delimited(1, "a"), delimited(2, delimited(1, "x"), delimited(1, "y"))),
            delimited(4, delimited(1, "b")),
        )
        self.assertEqual(value, {"extra": {"a": ["x", "y"], "b": []}})

    def test_times(self) -> None:
        """Times count from 1970 in UTC; the empty message is null."""
        value = decoded(
            f"{META}.ObjectMeta",
            delimited(8, number(1, 0), number(2, 0)),
            delimited(9, number(1, -1), number(2, 999_999_999)),
        )
        self.assertEqual(
            value, {"creationTimestamp": "1970-01-01T00:00:00Z", "deletionTimestamp": "1969-12-31T23:59:59Z"}
        )
        self.assertEqual(decoded(f"{META}.ObjectMeta", delimited(8)), {"creationTimestamp": None})
        error = self.assertRaises(WireError, decoded, f"{META}.ObjectMeta", delimited(8, number(1, 1 << 40)))
        self.assertEqual(str(error), "Time.MarshalJSON: year outside of range [0,9999]")

    def test_micro_times(self) -> None:
        """Nanoseconds are truncated, and may be negative."""
        definition = "io.k8s.api.coordination.v1.LeaseSpec"
        value = decoded(
            definition,
            delimited(3, number(1, 5), number(2, 1999)),
            delimited(4, number(1, 5), number(2, -1999)),
        )
        self.assertEqual(
            value, {"acquireTime": "1970-01-01T00:00:05.000001Z", "renewTime": "1970-01-01T00:00:04.999999Z"}
        )
        self.assertEqual(decoded(definition, delimited(3)), {"acquireTime": None})

    def test_quantities(self) -> None:
        """Quantities are strings; the empty message is 0."""
        definition = f"{CORE}.ResourceRequirements"
        value = decoded(
            definition,
            delimited(1, delimited(1, "cpu"), delimited(2, delimited(1, "1.5"))),
            delimited(1),
        )
        self.assertEqual(value, {"limits": {"cpu": "1.5", "": "0"}})

    def test_int_or_string(self) -> None:
        """The type field selects the number or the string."""
        definition = f"{CORE}.ServicePort"
        value = decoded(definition, delimited(4, number(1, 0), number(2, 80), delimited(3, "x")))
        self.assertEqual(value, {"targetPort": 80})
        self.assertEqual(decoded(definition, delimited(4, number(1, 1), number(2, 80))), {"targetPort": ""})
        error = self.assertRaises(WireError, decoded, definition, delimited(4, number(1, 2)))
        self.assertEqual(str(error), "impossible IntOrString.Type")

    def test_json(self) -> None:
        """A message may contain JSON, which may be missing, but not malformed."""
        definition = "io.k8s.api.apps.v1.ControllerRevision"
        self.assertEqual(decoded(definition, delimited(2, delimited(1, '{"a": [null]}'))), {"data": {"a": [None]}})
        self.assertEqual(decoded(definition, delimited(2)), {"data": None})
        error = self.assertRaises(WireError, decoded, definition, delimited(2, delimited(1, "{")))
        self.assertEqual(str(error), "unexpected end of JSON input")

    def test_inlined(self) -> None:
        """The fields of an inlined message become fields of the enclosing object."""
        value = decoded(
            f"{CORE}.Volume",
            delimited(1, "v"),
            delimited(2, delimited(6, delimited(1, "s"))),
        )
        self.assertEqual(value, {"name": "v", "secret": {"secretName": "s"}})
        rule = (
            delimited(1, "CREATE"),
            delimited(2, delimited(1, "apps"), delimited(4, "Namespaced")),
        )
        value = decoded(
            "io.k8s.api.admissionregistration.v1.NamedRuleWithOperations",
            delimited(1, "n"),
            delimited(2, *rule),
        )
        self.assertEqual(
            value, {"resourceNames": ["n"], "operations": ["CREATE"], "apiGroups": ["apps"], "scope": "Namespaced"}
        )

    def test_merged(self) -> None:
        """Repeated messages of one field are merged."""
        value = decoded(
            f"{CORE}.Pod",
            delimited(2, delimited(2, delimited(1, "a")), delimited(3, "Never")),
            delimited(2, delimited(2, delimited(1, "b")), delimited(3, "Always")),
        )
        self.assertEqual(value, {"spec": {"containers": [{"name": "a"}, {"name": "b"}], "restartPolicy": "Always"}})

    def test_schemas(self) -> None:
        """A JSON schema may be replaced by a list, a boolean or strings, as in JSON."""
        definition = f"{APIEXTENSIONS}.JSONSchemaProps"
        schema = delimited(5, "string")
        value = decoded(
            definition,
            delimited(2, "http://json-schema.org/schema#"),
            delimited(3, "#/x"),
            delimited(8, delimited(1, "1.5")),
            delimited(24, delimited(1, schema)),
            delimited(30, number(1, 1)),
            delimited(32, delimited(1, "a"), delimited(2, delimited(2, "b"))),
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
        self.assertEqual(decoded(definition, delimited(30)), {"additionalProperties": False})
        self.assertEqual(decoded(definition, delimited(30, delimited(2))), {"additionalProperties": {}})
        self.assertEqual(decoded(definition, delimited(24, delimited(2, schema))), {"items": [{"type": "string"}]})

    def test_names(self) -> None:
        """Fields whose JSON names are not protobuf names keep the JSON names."""
        self.assertEqual(decoded(f"{META}.ListMeta", delimited(3, "x")), {"continue": "x"})
        self.assertEqual(decoded(f"{CORE}.PodList", delimited(1), delimited(2)), {"metadata": {}, "items": [{}]})


class MalformedTests(SynchronousTestCase):
    """Tests for invalid messages."""

    def refused(self, *fields: bytes, definition: str = f"{CORE}.Pod") -> str:
        """Return the error of an invalid message."""
        return str(self.assertRaises(WireError, decoded, definition, *fields))

    def test_unknown_fields(self) -> None:
        """Unknown fields of every wire type are skipped."""
        group = varint(1000 << 3 | 3) + number(1, 1) + varint(5 << 3 | 3) + varint(5 << 3 | 4) + varint(1000 << 3 | 4)
        value = decoded(
            f"{CORE}.Pod",
            number(900, 1 << 63),
            delimited(900, "x" * 200),
            varint(900 << 3 | 1) + bytes(8),
            varint(900 << 3 | 5) + bytes(4),
            group,
            delimited(2, delimited(3, "Never")),
        )
        self.assertEqual(value, {"spec": {"restartPolicy": "Never"}})

    def test_cut_short(self) -> None:
        """Truncated data is rejected, within a message and at its end."""
        for data in (
            b"\x80",
            b"\x0a",
            b"\x0a\x05ab",
            delimited(2, b"\x1a\x05ab") + b"abc",
            delimited(1, b"\x5a\x03\x0a\x05ab"),
            varint(900 << 3 | 1) + bytes(7),
            varint(900 << 3 | 5) + bytes(3),
            varint(900 << 3 | 3) + number(1, 1),
            delimited(2, b"\x28\x80") + bytes(9),
        ):
            self.assertEqual(self.refused(data), "unexpected EOF")
        double = varint(9 << 3 | 1) + bytes(7)
        self.assertEqual(self.refused(double, definition=f"{APIEXTENSIONS}.JSONSchemaProps"), "unexpected EOF")

    def test_numbers(self) -> None:
        """Varints and lengths have limits."""
        self.assertEqual(self.refused(b"\x80" * 11), "proto: integer overflow")
        self.assertEqual(self.refused(b"\x0a", varint(-1)), "proto: negative length found during unmarshaling")

    def test_forms(self) -> None:
        """A known field with another wire type is rejected, and so is the end of a group without a start."""
        self.assertEqual(self.refused(number(2, 1)), "proto: wrong wireType = 0 for field Spec")
        self.assertEqual(
            self.refused(delimited(2, delimited(4, "x"))),
            "proto: wrong wireType = 2 for field TerminationGracePeriodSeconds",
        )
        self.assertEqual(self.refused(varint(7 << 3 | 6)), "proto: illegal wireType 6")
        self.assertEqual(self.refused(varint(2 << 3 | 4)), "proto: Pod: wiretype end group for non-group")
        self.assertEqual(self.refused(number(0, 1)), "proto: Pod: illegal tag 0 (wire type 0)")

    def test_depth(self) -> None:
        """The nesting depth of messages and of JSON in them is limited, but not of skipped groups."""
        definition = f"{APIEXTENSIONS}.JSONSchemaProps"
        schema = b""
        for _ in range(100):
            schema = delimited(28, schema)
        self.assertIn("not", decoded(definition, schema))
        self.assertEqual(self.refused(delimited(28, schema), definition=definition), "exceeded max depth")
        for _ in range(1000):
            schema = delimited(28, schema)
        self.assertEqual(self.refused(schema, definition=definition), "exceeded max depth")
        text = delimited(8, delimited(1, "[" * 200 + "]" * 200))
        self.assertIn("default", decoded(definition, text))
        for _ in range(60):
            text = delimited(28, text)
        self.assertEqual(self.refused(text, definition=definition), "exceeded max depth")
        groups = varint(900 << 3 | 3) * 100_000 + varint(900 << 3 | 4) * 100_000
        self.assertEqual(decoded(definition, groups), {})

    @given(st.binary(max_size=200))
    @settings(max_examples=100, deadline=None)
    def test_garbage(self, data: bytes) -> None:
        """Arbitrary bytes are decoded or rejected with L{WireError}."""
        for definition in (f"{CORE}.Pod", f"{APIEXTENSIONS}.JSONSchemaProps"):
            try:
                self.assertIsInstance(decoded(definition, data), dict)
            except WireError as error:
                self.assertTrue(str(error))

    @given(st.data())
    @settings(max_examples=100, deadline=None)
    def test_damage(self, data: st.DataObject) -> None:
        """A damaged body is decoded or rejected, by the envelope or the message."""
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
    """Tests for all types."""

    @given(st.sampled_from(_KINDS), st.data())
    @settings(max_examples=150, deadline=None)
    def test_round_trip(self, kind: tuple[str, str], data: st.DataObject) -> None:
        """An object that was decoded from protobuf equals the object that was decoded from JSON."""
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
        """Every field of every type of every release has a unique number."""
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
        """Collect the fields of a message that are in C{properties}."""
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
        """Fields of other releases are skipped, and types with different numbers per version are supported."""
        old = Definitions.load("1.25").protobuf
        sent = encoder().message(f"{CORE}.PodSpec", {"hostUsers": True, "schedulingGates": [{"name": "x"}]})
        self.assertEqual(old.decode(f"{CORE}.PodSpec", sent), {"hostUsers": True})
        new = definitions().protobuf
        class_name = delimited(2, "gpu")
        self.assertEqual(
            new.decode("io.k8s.api.resource.v1beta1.DeviceRequest", class_name), {"deviceClassName": "gpu"}
        )
        exactly = delimited(2, delimited(1, "gpu"))
        self.assertEqual(
            new.decode("io.k8s.api.resource.v1.DeviceRequest", exactly), {"exactly": {"deviceClassName": "gpu"}}
        )
