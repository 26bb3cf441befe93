"""Answers in protobuf."""

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
    """A C{WatchEvent} with an object in its envelope, as another implementation of protobuf reads it."""
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
    """An answer, taken out of its envelope."""

    api_version: str
    kind: str
    value: Any


def opened(body: bytes, definition: str = "") -> Opened:
    """
    What an answer is, read twice.

    @param definition: What it is a message of, if it does not say so.
    """
    said = read_envelope(body)
    unknown = FOREIGN("Unknown")
    unknown.ParseFromString(body[4:])
    assert (unknown.meta.version, unknown.meta.kind, unknown.raw) == said
    assert (unknown.HasField("encoding"), unknown.HasField("type")) == (True, True)
    group_version = GroupVersion.parse(said.api_version)
    definition = definition or definitions().definition_of(GroupVersionKind(*group_version, said.kind))
    return Opened(said.api_version, said.kind, definitions().protobuf.decode(definition, said.raw))


class AnswerTestCase(SynchronousTestCase):
    """A test with a server and one who takes protobuf."""

    def setUp(self) -> None:
        """Serve some kinds; two ConfigMaps are there."""
        self.server = Server("configmaps", "pods", "deployments", "horizontalpodautoscalers", "selfsubjectreviews")
        self.client = self.server.client()
        for name in "ab":
            self.client.ask("POST", MAPS, config_map(name, x="1"))

    def ask(self, method: str, path: str, body: Any = None, accept: str = PROTOBUF, **headers: str) -> Any:
        """Ask for protobuf; give the status and what is in the answer."""
        answer = self.client.answer(method, path, body, Accept=accept, **headers)
        self.assertEqual(answer.header("content-type"), PROTOBUF, answer.body)
        return answer.code, opened(answer.body)

    def same(self, path: str) -> None:
        """In protobuf an object is what it is in JSON."""
        code, found = self.ask("GET", path)
        expected = self.client.ask("GET", path)[1]
        self.assertEqual((code, found.api_version, found.kind), (200, expected["apiVersion"], expected["kind"]))
        gvk = GroupVersionKind(*GroupVersion.parse(found.api_version), found.kind)
        shown = definitions().type_for(gvk).decode(found.value, [])
        self.assertEqual({**shown, "kind": found.kind, "apiVersion": found.api_version}, expected)
