"""Tests for L{kubetwist.resources.binaryencoding}: the encoded forms that records keep."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kubetwist.api.record import Record
from kubetwist.api.resource import GroupVersionKind
from kubetwist.registry.generic.codec import Codec
from kubetwist.resources.binaryencoding import LARGE_ITEM
from kubetwist.resources.encoding import JSONEncoder
from kubetwist.resources.protobufencoding import ProtobufEncoder
from kubetwist.storage.cache._encodings import IDLE_TIMEOUT
from kubetwist.storage.cache.window import ENCODED_EVENTS
from tests.resources.protobufcase import MAPS, PROTOBUF, AnswerTestCase
from tests.resources.server import config_map, definitions

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
STREAM = f"{PROTOBUF};stream=watch"
PARTIAL = f"{PROTOBUF};g=meta.k8s.io;v=v1;as=PartialObjectMetadata"


def deployment() -> dict[str, Any]:
    """Return a Deployment."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}


class KeptEncodingTests(AnswerTestCase):
    """Encoded forms of objects, which are kept for the next response."""

    def setUp(self) -> None:
        """Record the calls that encode a message."""
        super().setUp()
        self.encoded: list[str] = []
        types = definitions().protobuf
        encode = types.encode

        def recording_encode(definition: str, value: Any) -> bytes:
            if not definition.endswith("ListMeta"):
                self.encoded.append((value.get("metadata") or value)["name"])
            return encode(definition, value)

        self.patch(types, "encode", recording_encode)

    def record(self, name: str) -> Record:
        """Return the record of a ConfigMap in the cache."""
        (store,) = [one for one in self.server.registry.stores if one.info.resource == "configmaps"]
        record = store.cache.get(f"default/{name}")
        assert record is not None
        return record

    def names(self) -> list[str]:
        """Return the names of the objects that were encoded since the last call."""
        encoded, self.encoded[:] = [*self.encoded], []
        return encoded

    def test_kept(self) -> None:
        """An object is encoded once for all gets, lists and watches of its version."""
        first = self.client.answer("GET", f"{MAPS}/a", Accept=PROTOBUF).body
        self.assertEqual(self.names(), ["a"])
        self.assertEqual(self.client.answer("GET", f"{MAPS}/a", Accept=PROTOBUF).body, first)
        self.client.answer("GET", MAPS, Accept=PROTOBUF)
        self.assertEqual(self.names(), ["b"])
        self.client.answer("GET", MAPS, Accept=PROTOBUF)
        self.server.client().begin(f"{MAPS}?watch=1", Accept=STREAM)
        self.server.clock.advance(0)
        self.assertEqual(self.names(), [])

    def test_counted(self) -> None:
        """The forms that are kept are counted, with their size; a replaced object's ones until they are dropped."""
        metrics = self.server.stores.get("", "configmaps").cache.metrics
        self.assertEqual(metrics.encodings, 0)
        self.client.answer("GET", MAPS, Accept=PROTOBUF)
        self.assertEqual(metrics.encodings, 2)
        self.assertGreater(metrics.encoded_bytes, 100)
        for number in range(ENCODED_EVENTS + 1):
            self.client.ask("PUT", f"{MAPS}/a", config_map("a", x=str(number + 2)))
        self.assertEqual(metrics.encodings, 1)
        self.server.clock.pump([IDLE_TIMEOUT] * 3 + [0.0] * 3)
        self.assertEqual((metrics.encodings, metrics.encoded_bytes), (0, 0))

    def test_only_on_demand(self) -> None:
        """Objects that are only requested in JSON have no other form."""
        self.client.ask("GET", f"{MAPS}/a")
        self.client.ask("GET", MAPS)
        self.assertEqual((self.names(), self.record("a").encodings), ([], None))

    def test_written(self) -> None:
        """The response to a write and the events of its watches share one encoding; the next version has a new one."""
        self.client.answer("GET", f"{MAPS}/a", Accept=PROTOBUF)
        self.server.client().begin(f"{MAPS}?watch=1&resourceVersion={self.server.backend.revision}", Accept=STREAM)
        self.names()
        self.client.answer("PUT", f"{MAPS}/a", config_map("a", x="2"), Accept=PROTOBUF)
        self.server.clock.advance(0)
        self.assertEqual(self.names(), ["a"])
        _, found = self.ask("GET", f"{MAPS}/a")
        self.assertEqual((self.names(), found.value["data"]), ([], {"x": "2"}))

    def test_metadata(self) -> None:
        """Metadata has a separate form."""
        for _ in range(2):
            self.client.answer("GET", f"{MAPS}/a", Accept=PROTOBUF)
            self.client.answer("GET", f"{MAPS}/a", Accept=PARTIAL)
        self.assertEqual(self.names(), ["a", "a"])
        self.assertEqual(len(self.record("a").encodings or ()), 2)

    def test_past(self) -> None:
        """A former version of an object loses its forms when the window has enough later events."""
        former = self.record("a")
        self.client.answer("GET", f"{MAPS}/a", Accept=PROTOBUF)
        for number in range(ENCODED_EVENTS):
            self.client.ask("PUT", f"{MAPS}/a", config_map("a", x=str(number + 2)))
        self.assertIsNotNone(former.encodings)
        self.client.ask("PUT", f"{MAPS}/a", config_map("a", x="0"))
        self.assertIsNone(former.encodings)

    def test_unused(self) -> None:
        """Forms that no client uses for some time are dropped, and encoded again when they are requested."""
        self.client.answer("GET", MAPS, Accept=PROTOBUF)
        self.server.clock.advance(IDLE_TIMEOUT)
        self.server.client().answer("GET", f"{MAPS}/a", Accept=PROTOBUF)
        self.server.clock.advance(IDLE_TIMEOUT)
        self.assertIsNotNone(self.record("b").encodings)
        self.server.clock.advance(IDLE_TIMEOUT)
        self.server.clock.advance(0)
        self.assertEqual([self.record(name).encodings for name in "ab"], [None, None])
        self.names()
        self.server.client().answer("GET", MAPS, Accept=PROTOBUF)
        self.assertEqual(self.names(), ["a", "b"])

    def test_subresource(self) -> None:
        """Forms that only requests for a subresource have used expire, too."""
        self.client.ask("POST", DEPLOYMENTS, deployment())
        self.client.answer("GET", f"{DEPLOYMENTS}/d/status", Accept=PROTOBUF)
        (store,) = [one for one in self.server.registry.stores if one.info.resource == "deployments"]
        record = store.cache.get("default/d")
        assert record is not None
        self.assertIsNotNone(record.encodings)
        self.server.clock.advance(IDLE_TIMEOUT)
        self.server.clock.advance(IDLE_TIMEOUT)
        self.assertIsNone(record.encodings)

    def test_without_cache(self) -> None:
        """The records of a storage object without a watch cache keep no forms."""
        record = Record.from_object({"metadata": {"name": "x"}}, 1)
        storages: list[Any] = [SimpleNamespace(), SimpleNamespace(cache={}), SimpleNamespace(store=None)]
        for storage in storages:
            codec = Codec(definitions(), CONFIG_MAP, CONFIG_MAP)
            endpoint: Any = SimpleNamespace(
                storage=storage, codec=codec, gvk=CONFIG_MAP, list_items_have_kind=False, list_kind=""
            )
            encoder = ProtobufEncoder(JSONEncoder(endpoint), endpoint, partial=False)
            self.assertEqual(encoder.encode_object(record), encoder.encode_object(record))
            self.assertEqual((self.names(), record.encodings), (["x", "x"], None))

    def test_large_items(self) -> None:
        """Large items of a list are encoded in the computation thread, small ones in slices."""
        self.client.ask("POST", MAPS, config_map("aa", x="y" * LARGE_ITEM))
        for _ in range(2):
            _, found = self.ask("GET", MAPS)
            self.assertEqual([one["metadata"]["name"] for one in found.value["items"]], ["a", "aa", "b"])
        self.assertEqual([one.__name__ for one in self.server.done_in_threads].count("item"), 1)
