"""Tests for L{kubetwist.schema.metaprotobuf}, and for discovery in protobuf."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.metaprotobuf import encode_protobuf

from ..resources.discovery.test_endpoints import DiscoveryCase
from ..resources.openapi.test_protobufv2 import (
    every,
    fields,
    one,
)
from ..resources.server import Server

PROTOBUF = "application/vnd.kubernetes.protobuf"


def decode_envelope(body: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the apiVersion, the kind and the message of a response body."""
    assert body.startswith(b"k8s\0"), body
    unknown = body[4:]
    return b"".join(every(unknown, 1, 1)), one(unknown, 1, 2), one(unknown, 2)


class ProtobufDiscoveryTests(DiscoveryCase):
    """Tests for discovery documents in protobuf."""

    def protobuf(self, path: str, kind: str, accept: str = PROTOBUF) -> bytes:
        """Return the message of a document."""
        code, headers, body = self.ask("GET", path, accept=accept)
        self.assertEqual((code, headers.getRawHeaders("content-type")), (200, [accept]), body)
        _, found, inside = decode_envelope(body)
        self.assertEqual(found.decode(), kind)
        return inside

    def test_group(self) -> None:
        """A group has its name, its versions and the preferred one, with the same bytes as from kube-apiserver."""
        body = self.ask("GET", "/apis/apps", accept=PROTOBUF)[2]
        version = b"\n\x07apps/v1\x12\x02v1"
        inside = b"\n\x04apps" + b"\x12\x0d" + version + b"\x1a\x0d" + version
        head = b"\n\x02v1\x12\x08APIGroup"
        self.assertEqual(body, b"k8s\0\n\x0e" + head + b"\x12" + bytes([len(inside)]) + inside + b'\x1a\0"\0')

    def test_groups(self) -> None:
        """The list of groups contains all groups."""
        self.assertEqual(every(self.protobuf("/apis", "APIGroupList"), 1, 1), [b"apps", b"autoscaling"])

    def test_versions(self) -> None:
        """The versions of the core group come with the server address."""
        inside = self.protobuf("/api", "APIVersions")
        self.assertEqual((one(inside, 1), one(inside, 2, 2)), (b"v1", b"192.0.2.1:6443"))

    def test_resources(self) -> None:
        """A resource has its names, kind and verbs; missing values are encoded as empty."""
        inside = self.protobuf("/apis/apps/v1", "APIResourceList")
        self.assertEqual(one(inside, 1), b"apps/v1")
        deployments, scale = every(inside, 2)
        found: dict[int, Any] = dict(fields(deployments))
        self.assertEqual(
            [found[number] for number in (1, 2, 3, 5, 6, 7, 8, 9, 10)],
            [b"deployments", 1, b"Deployment", b"deploy", b"deployment", b"all", b"", b"", b"hash"],
        )
        self.assertEqual(every(scale, 4, 1), [b"get", b"patch", b"update"])
        self.assertEqual([number for number, _ in fields(scale)], [1, 2, 3, 4, 6, 8, 9, 10])

    def test_aggregated(self) -> None:
        """The aggregated discovery document is available in protobuf."""
        accept = f"{PROTOBUF};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        inside = self.protobuf("/apis", "APIGroupDiscoveryList", accept)
        self.assertEqual(every(inside, 2, 1, 1), [b"apps", b"autoscaling"])
        resources = every(inside, 2, 2, 2)
        self.assertEqual(one(resources[0], 1), b"deployments")
        self.assertEqual((one(resources[0], 2, 3), one(resources[0], 3)), (b"Deployment", b"Namespaced"))
        self.assertEqual(one(resources[0], 8, 1), b"scale")
        self.assertEqual(set(every(inside, 2, 2, 3)), {b"Current"})

    def test_error(self) -> None:
        """A 404 error is sent in protobuf if that is the first acceptable type."""
        code, headers, body = self.ask("GET", "/apis/autoscaling/v9", accept=f"{PROTOBUF},application/json")
        self.assertEqual((code, headers.getRawHeaders("content-type")), (404, [PROTOBUF]))
        version, kind, inside = decode_envelope(body)
        self.assertEqual((version, kind), (b"v1", b"Status"))
        self.assertEqual((one(inside, 2), one(inside, 4), one(inside, 6)), (b"Failure", b"NotFound", 404))

    def test_order(self) -> None:
        """JSON is sent to clients that accept it first."""
        headers = self.ask("GET", "/apis", accept=f"application/json,{PROTOBUF}")[1]
        self.assertEqual(headers.getRawHeaders("content-type"), ["application/json"])

    def test_status(self) -> None:
        """Details of a Status are encoded as by kube-apiserver."""
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'configmaps "absent" not found',
            "reason": "NotFound",
            "details": {"name": "absent", "kind": "configmaps"},
            "code": 404,
        }
        # Recorded from kube-apiserver 1.36.
        details = b"*\x1a\n\x06absent\x12\0\x1a\nconfigmaps(\x002\0"
        message = b'\x1a\x1dconfigmaps "absent" not found"\x08NotFound'
        inside = b"\n\x06\n\0\x12\0\x1a\0\x12\x07Failure" + message + details + b"0\x94\x03"
        head = b"k8s\0\n\x0c\n\x02v1\x12\x06Status"
        self.assertEqual(encode_protobuf(status), head + b"\x12\x59" + inside + b'\x1a\0"\0')


class ProtobufErrorTests(SynchronousTestCase):
    """Tests for responses to clients that accept protobuf first."""

    def test_error(self) -> None:
        """A client that accepts protobuf first gets errors and objects in protobuf."""
        client = Server("namespaces", "configmaps").client()
        accept = f"{PROTOBUF},application/json"
        found = client.answer("GET", "/api/v1/namespaces/ns/configmaps/absent", Accept=accept)
        self.assertEqual((found.code, found.header("content-type")), (404, PROTOBUF))
        self.assertEqual(one(decode_envelope(found.body)[2], 4), b"NotFound")
        found = client.answer("GET", "/api/v1/namespaces/ns/configmaps", Accept=accept)
        self.assertEqual((found.code, found.header("content-type")), (200, PROTOBUF))
