"""Test case for responses in protobuf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion, GroupVersionKind
from kubetwist.schema.protobuf.codec import read_envelope
from tests.resources.server import Server, config_map, definitions

PROTOBUF = "application/vnd.kubernetes.protobuf"


MAPS = "/api/v1/namespaces/default/configmaps"


def foreign_event() -> Any:
    """Return a C{WatchEvent} with an object in its envelope, encoded by another protobuf implementation."""
    file = descriptor_pb2.FileDescriptorProto(name="watch.proto", package="w", syntax="proto2")
    for name, fields in (
        ("Event", (("type", 9, ""), ("object", 11, ".w.Raw"))),
        ("Raw", (("raw", 12, ""),)),
        ("Unknown", (("meta", 11, ".w.Meta"), ("raw", 12, ""), ("encoding", 9, ""), ("type", 9, ""))),
        ("Meta", (("version", 9, ""), ("kind", 9, ""))),
    ):
        message = file.message_type.add(name=name)
        for number, (field, kind, of) in enumerate(fields, 1):
            message.field.add(name=field, number=number, label=1, type=kind, type_name=of or None)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"w.{name}"))()


FOREIGN: Callable[[str], Any] = foreign_event()


class Opened(NamedTuple):
    """A response without its envelope."""

    api_version: str
    kind: str
    value: Any


def opened(body: bytes, definition: str = "") -> Opened:
    """
    Decode a response, with two implementations.

    @param definition: The type of the message, if the envelope does not contain it.
    """
    unwrapped = read_envelope(body)
    unknown = FOREIGN("Unknown")
    unknown.ParseFromString(body[4:])
    assert (unknown.meta.version, unknown.meta.kind, unknown.raw) == unwrapped
    assert (unknown.HasField("encoding"), unknown.HasField("type")) == (True, True)
    group_version = GroupVersion.parse(unwrapped.api_version)
    definition = definition or definitions().definition_of(GroupVersionKind(*group_version, unwrapped.kind))
    return Opened(unwrapped.api_version, unwrapped.kind, definitions().protobuf.decode(definition, unwrapped.raw))


class AnswerTestCase(SynchronousTestCase):
    """Test case with a server and a client that accepts protobuf."""

    def setUp(self) -> None:
        """Create a server with some kinds and two ConfigMaps."""
        self.server = Server("configmaps", "pods", "deployments", "horizontalpodautoscalers", "selfsubjectreviews")
        self.client = self.server.client()
        for name in "ab":
            self.client.ask("POST", MAPS, config_map(name, x="1"))

    def ask(self, method: str, path: str, body: Any = None, accept: str = PROTOBUF, **headers: str) -> Any:
        """Send a request that accepts protobuf; return the status and the decoded response."""
        answer = self.client.answer(method, path, body, Accept=accept, **headers)
        self.assertEqual(answer.header("content-type"), PROTOBUF, answer.body)
        return answer.code, opened(answer.body)

    def same(self, path: str) -> None:
        """An object in protobuf equals the one in JSON."""
        code, found = self.ask("GET", path)
        expected = self.client.ask("GET", path)[1]
        self.assertEqual((code, found.api_version, found.kind), (200, expected["apiVersion"], expected["kind"]))
        gvk = GroupVersionKind(*GroupVersion.parse(found.api_version), found.kind)
        shown = definitions().type_for(gvk).decode(found.value, [])
        self.assertEqual({**shown, "kind": found.kind, "apiVersion": found.api_version}, expected)
