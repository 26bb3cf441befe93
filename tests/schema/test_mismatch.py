"""Tests for L{kubetwist.schema.mismatch}: errors of objects that do not fit their type."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.objecttype import DecodeError

from .release import type_of


def failure(obj: Any, kind: str = "Pod", api_version: str = "v1") -> DecodeError:
    """Return the error of decoding an object."""
    try:
        type_of(kind, api_version).decode(obj, [])
    except DecodeError as error:
        return error
    raise AssertionError("it fits")


def in_container(**fields: Any) -> Any:
    """Return a pod with one container."""
    return {"spec": {"containers": [fields]}}


class MessageTests(SynchronousTestCase):
    """Tests for messages of C{encoding/json}."""

    def check(self, obj: Any, expected: str, kind: str = "Pod", api_version: str = "v1") -> None:
        """Assert that the error of C{obj} ends with this text."""
        self.assertEqual(str(failure(obj, kind, api_version)), f"json: cannot unmarshal {expected}")

    def test_scalars(self) -> None:
        """Messages contain the innermost struct, the path of fields without indices, and the Go type."""
        self.check({"metadata": {"name": 7}}, "number into Go struct field ObjectMeta.metadata.name of type string")
        self.check(
            {"spec": {"paused": "true"}},
            "string into Go struct field DeploymentSpec.spec.paused of type bool",
            "Deployment",
            "apps/v1",
        )
        self.check(
            in_container(env=[{"value": True}]),
            "bool into Go struct field EnvVar.spec.containers.env.value of type string",
        )

    def test_named_types(self) -> None:
        """Messages contain the name of named Go types."""
        self.check(
            in_container(imagePullPolicy=1),
            "number into Go struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy",
        )
        self.check({"metadata": {"uid": 1}}, "number into Go struct field ObjectMeta.metadata.uid of type types.UID")
        self.check(
            in_container(resources={"limits": []}),
            "array into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
        )

    def test_structs_lists_and_maps(self) -> None:
        """A value that is not a list has the list type in its message, an invalid item the item type."""
        self.check({"spec": []}, "array into Go struct field Pod.spec of type v1.PodSpec")
        self.check(
            {"spec": {"containers": {}}},
            "object into Go struct field PodSpec.spec.containers of type []v1.Container",
        )
        self.check(
            {"spec": {"containers": ["c"]}}, "string into Go struct field PodSpec.spec.containers of type v1.Container"
        )
        self.check({"data": ["a"]}, "array into Go struct field ConfigMap.data of type map[string]string", "ConfigMap")
        self.check({"data": {"a": {}}}, "object into Go struct field ConfigMap.data of type string", "ConfigMap")
        self.check([], "array into Go value of type v1.Pod")

    def test_embedded_structs(self) -> None:
        """Paths contain embedded structs."""
        self.check(
            in_container(livenessProbe={"httpGet": {"port": True}}),
            "bool into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port"
            " of type int32",
        )
        self.check(
            {"spec": {"volumes": [{"hostPath": 1}]}},
            "number into Go struct field Volume.spec.volumes.VolumeSource.hostPath of type v1.HostPathVolumeSource",
        )

    def test_numbers(self) -> None:
        """A number that the type cannot represent is part of the message."""
        for number, shown in [(2.5, "2.5"), (2.0, "2.0"), (2147483648, "2147483648"), (-2147483649, "-2147483649")]:
            self.check(
                {"spec": {"priority": number}},
                f"number {shown} into Go struct field PodSpec.spec.priority of type int32",
            )
        self.check({"data": {"a": [256]}}, "number 256 into Go struct field Secret.data of type uint8", "Secret")

    def test_first(self) -> None:
        """Of several errors the first in the document is reported."""
        self.check(
            {"spec": {"nodeName": 1, "priority": "x"}},
            "number into Go struct field PodSpec.spec.nodeName of type string",
        )

    def test_unmarshaler_messages(self) -> None:
        """Quantities, times, bytes and schemas have specific messages without a path."""
        self.assertEqual(
            str(failure(in_container(resources={"limits": {"cpu": "lots"}}))),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        )
        self.assertIn(
            'cannot parse "yesterday" as "2006"', str(failure({"metadata": {"creationTimestamp": "yesterday"}}))
        )
        version = {"name": "v1", "schema": {"openAPIV3Schema": {"additionalProperties": 1}}}
        crd = failure({"spec": {"versions": [version]}}, "CustomResourceDefinition", "apiextensions.k8s.io/v1")
        self.assertEqual(str(crd), "boolean or JSON schema expected")

    def test_base64(self) -> None:
        """The message contains the offset of the first error, as Go counts it."""
        for text, position in [
            ("YWI", 0),
            ("*", 0),
            ("YWJj*WJj", 4),
            ("YW=j", 2),
            ("Y===", 1),
            ("YQ==YQ==", 4),
            ("YQ=", 3),
        ]:
            self.assertEqual(
                str(failure({"data": {"a": text}}, "Secret")), f"illegal base64 data at input byte {position}"
            )


class AsWrittenTests(SynchronousTestCase):
    """Tests for L{DecodeError.as_written}."""

    def check(self, document: bytes, shown: str) -> None:
        """Assert that the message for a document contains C{shown}."""
        message = failure(orjson.loads(document)).as_written(document)
        self.assertEqual(
            message, f"json: cannot unmarshal number {shown} into Go struct field PodSpec.spec.priority of type int32"
        )

    def test_numbers(self) -> None:
        """Exponents and all digits are quoted as the client wrote them."""
        for number in ("1e1", "2.50", "99999999999999999999", "1E+400"[:4]):
            self.check(b'{"spec": {"priority": %s}}' % number.encode(), number)

    def test_other_documents(self) -> None:
        """For another document, the message contains the number as decoded."""
        error = failure({"spec": {"priority": 10.0}})
        for document in (b"spec: {priority: 1e1}", b"{}", b'{"spec": {"priority": null}}'):
            self.assertEqual(error.as_written(document), str(error))
        error = failure({"spec": {"priority": "x"}})
        self.assertEqual(error.as_written(b'{"spec": {"priority": "x"}}'), str(error))


class ConverterTests(SynchronousTestCase):
    """Tests for messages of apimachinery's converter about results of strategic merge patches."""

    def test_messages(self) -> None:
        """Messages of the converter contain kinds of Go values, and no path."""
        for spec, message in [
            ({"priority": "three"}, "unrecognized type: int32"),
            ({"priority": 2.5}, "cannot convert float64 to int32"),
            ({"priority": True}, "unrecognized type: int32"),
            ({"nodeName": 5}, "cannot convert int64 to string"),
            ({"nodeName": 5.5}, "unrecognized type: string"),
            ({"dnsPolicy": 5}, "cannot convert int64 to v1.DNSPolicy"),
            ({"hostNetwork": 1}, "unrecognized type: bool"),
            ({"containers": "x"}, "cannot restore slice from string"),
            ({"containers": ["x"]}, "cannot restore struct from: string"),
            ({"nodeSelector": []}, "cannot restore map from slice"),
            (5, "cannot restore struct from: int64"),
            ({"overhead": {"cpu": "lots"}}, str(failure({"spec": {"overhead": {"cpu": "lots"}}}))),
        ]:
            self.assertEqual(failure({"spec": spec}).converted, message)

    def test_unmarshalers(self) -> None:
        """Types with an unmarshaler have the message of C{encoding/json} for the value alone."""
        port = failure(in_container(livenessProbe={"httpGet": {"port": True}}))
        self.assertEqual(port.converted, "json: cannot unmarshal bool into Go value of type int32")
        created = failure({"metadata": {"creationTimestamp": 5}})
        self.assertEqual(created.converted, "json: cannot unmarshal number into Go value of type string")
