"""Tests for protobuf bodies: Go clients send them for built-in kinds, and accept JSON responses."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.handlers.bodies import PROTOBUF_IN_REACTOR
from tests.resources.server import Server
from tests.schema.protobuf.encoder import Encoder, delimited, enveloped, number
from tests.schema.release import definitions

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


def config_map(name: str, **data: str) -> bytes:
    """Return the protobuf body of a ConfigMap."""
    obj = {"metadata": {"name": name}, "data": data}
    return enveloped("v1", "ConfigMap", Encoder(definitions()).message("io.k8s.api.core.v1.ConfigMap", obj))


class ProtobufBodyTests(SynchronousTestCase):
    """Bodies of POST, PUT and DELETE, over HTTP in memory."""

    def setUp(self) -> None:
        """Create a server with some kinds."""
        self.server = Server("configmaps", "deployments")
        self.client = self.server.client()

    def ask(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        """Send a protobuf body."""
        return self.client.ask(method, path, body, Content_Type="application/vnd.kubernetes.protobuf")

    def refused(self, body: bytes, method: str = "POST", path: str = CONFIG_MAPS) -> str:
        """Return the message of the 400 for a body."""
        code, status = self.ask(method, path, body)
        self.assertEqual((code, status["reason"]), (400, "BadRequest"))
        message: str = status["message"]
        return message

    def test_create_and_update(self) -> None:
        """Objects that are created and updated by protobuf are read as JSON."""
        code, created = self.ask("POST", CONFIG_MAPS, config_map("a", x="1"))
        self.assertEqual((code, created["kind"], created["data"]), (201, "ConfigMap", {"x": "1"}))
        code, updated = self.ask("PUT", f"{CONFIG_MAPS}/a", config_map("a", x="2"))
        self.assertEqual((code, updated["data"]), (200, {"x": "2"}))
        self.assertEqual(self.client.ask("GET", f"{CONFIG_MAPS}/a")[1], updated)

    def test_defaults(self) -> None:
        """An envelope may omit the kind; an empty object lacks a name."""
        code, created = self.ask("POST", CONFIG_MAPS, b"k8s\0" + delimited(2, delimited(1, delimited(1, "a"))))
        self.assertEqual((code, created["metadata"]["name"]), (201, "a"))
        for api_version in ("v1", "a/b/c", "apps/"):
            code, status = self.ask("POST", CONFIG_MAPS, enveloped(api_version, "", b""))
            self.assertEqual(
                (code, status["message"]),
                (422, 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'),
            )

    def test_unrecognized(self) -> None:
        """Bodies without a recognizable kind are quoted in the error."""
        self.assertEqual(self.refused(b""), f"{UNRECOGNIZED}empty data (<empty>)")
        self.assertEqual(
            self.refused(b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}'),
            f"{UNRECOGNIZED}provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] "
            '({"apiVersion":"v1","kind":"Con ...)',
        )
        self.assertEqual(self.refused(b"k8s\0rubbish"), f"{UNRECOGNIZED}unexpected EOF (6b38730072756262697368)")

    def test_unreadable(self) -> None:
        """The error about a malformed message names its kind."""
        cannot = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
        self.assertEqual(self.refused(enveloped("v1", "ConfigMap", b"\x0a\x05")), f"{cannot}unexpected EOF")
        self.assertEqual(
            self.refused(enveloped("v1", "ConfigMap", number(1, 1))),
            f"{cannot}proto: wrong wireType = 0 for field Metadata",
        )

    def test_other_kind(self) -> None:
        """Another kind is rejected as in JSON."""
        self.assertEqual(
            self.refused(enveloped("v1", "Secret", b"\x0a")),
            'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): '
            "unknown conversion",
        )

    def test_large(self) -> None:
        """A large body is read in a thread."""
        self.ask("POST", CONFIG_MAPS, config_map("a", x="1"))
        self.assertEqual(self.server.done_in_threads, [])
        code, _ = self.ask("POST", CONFIG_MAPS, config_map("b", x="1" * PROTOBUF_IN_REACTOR))
        self.assertEqual(code, 201)
        self.assertIn("read_protobuf", [function.__name__ for function in self.server.done_in_threads])

    def test_delete_options(self) -> None:
        """DeleteOptions in protobuf are honoured."""
        self.ask("POST", CONFIG_MAPS, config_map("a"))
        path = f"{CONFIG_MAPS}/a"
        encoder = Encoder(definitions())
        wrong = encoder.message(OPTIONS, {"preconditions": {"uid": "other"}})
        self.assertEqual(self.ask("DELETE", path, enveloped("v1", "DeleteOptions", wrong))[0], 409)
        dry = encoder.message(OPTIONS, {"dryRun": ["All"], "gracePeriodSeconds": 0})
        self.assertEqual(self.ask("DELETE", path, enveloped("v1", "DeleteOptions", dry))[0], 200)
        self.assertEqual(self.client.ask("GET", path)[0], 200)
        self.assertEqual(self.ask("DELETE", path, enveloped("v1", "DeleteOptions", b""))[0], 200)
        self.assertEqual(self.client.ask("GET", path)[0], 404)

    def test_bad_delete_options(self) -> None:
        """Invalid DeleteOptions are rejected, and nothing is deleted."""
        self.ask("POST", CONFIG_MAPS, config_map("a"))
        path = f"{CONFIG_MAPS}/a"
        self.assertEqual(self.refused(b"k8s\0rubbish", "DELETE", path), "unexpected EOF")
        self.assertEqual(
            self.refused(enveloped("v1", "DeleteOptions", delimited(1)), "DELETE", path),
            "proto: wrong wireType = 2 for field GracePeriodSeconds",
        )
        self.assertIn('no kind "Pod" is registered', self.refused(enveloped("v1", "Pod", b""), "DELETE", path))
        self.assertEqual(self.client.ask("GET", path)[0], 200)
