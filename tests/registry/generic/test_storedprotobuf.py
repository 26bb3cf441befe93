"""Tests of stores whose objects are stored as protobuf, by another server or by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.cbor import encode_cbor
from kubetwist.api.errors import APIStatusError
from kubetwist.api.featuregates import FeatureGates, parse_release
from kubetwist.api.options import GetOptions
from kubetwist.api.storage import Write
from kubetwist.registry.core.service.portregistry import decode_bitmap, decode_range, encode_range
from kubetwist.registry.generic.objects import ALWAYS_JSON
from kubetwist.registry.generic.storedprotobuf import decode_stored, encode_stored
from kubetwist.registry.kinds import kinds_for
from kubetwist.schema.definitions import Definitions
from kubetwist.schema.protobuf.wire import WireError
from kubetwist.schema.releasefiles import available_versions
from kubetwist.storage.errors import UnknownFormatError
from kubetwist.storage.protobuf import is_protobuf
from tests.registry.sharedstores import SharedStoresTestCase
from tests.registry.storetools import StoreTestCase
from tests.resources.server import Server, config_map, definitions
from tests.schema.protobuf.encoder import (
    Encoder,
    delimited,
    enveloped,
    number,
)

PREFIX = "/registry/"


class ReadingTests(StoreTestCase):
    """Tests of objects that kube-apiserver has written."""

    resources = ("configmaps", "pods", "horizontalpodautoscalers", "volumeattributesclasses")

    def setUp(self) -> None:
        """Create a server with type definitions."""
        self.options = {"types": definitions()}  # type: ignore[misc]
        super().setUp()
        self.maps = self.store("configmaps")

    def write(self, key: str, value: bytes) -> int:
        """Write a value as another server."""
        revision: int = self.successResultOf(self.server.backend.commit([Write(PREFIX + key, value, None)]))
        return revision

    def value(self, key: str) -> bytes:
        """Return a stored value."""
        value: bytes = self.successResultOf(Deferred.fromCoroutine(self.server.backend.read(PREFIX + key))).value
        return value

    def map(self, name: str, **data: str) -> bytes:
        """Return a ConfigMap in protobuf."""
        entries = [delimited(2, delimited(1, key), delimited(2, value)) for key, value in data.items()]
        return enveloped(
            "v1",
            "ConfigMap",
            delimited(1, delimited(1, name), delimited(3, "default"), delimited(5, "u")) + b"".join(entries),
        )

    def test_read(self) -> None:
        """Objects are read as if they were stored as JSON, also by watches."""
        events = self.events(self.maps)
        revision = self.write("configmaps/default/a", self.map("a", k="v"))
        meta = {"resourceVersion": str(revision), "name": "a", "namespace": "default", "uid": "u"}
        found = self.stored(self.maps, "a")
        self.assertLessEqual(meta.items(), found["metadata"].items())
        self.assertEqual(found["data"], {"k": "v"})
        self.assertEqual(events, [("ADDED", "a")])

    def test_change(self) -> None:
        """An update writes JSON; a further update without changes writes nothing."""
        self.write("configmaps/default/a", self.map("a", k="v"))
        changed = self.changed(self.maps, "a", lambda obj: obj["data"].update(k="w"))
        value = self.value("configmaps/default/a")
        self.assertEqual(orjson.loads(value)["data"], {"k": "w"})
        again = self.changed(self.maps, "a", lambda obj: None)
        self.assertEqual(again["metadata"]["resourceVersion"], changed["metadata"]["resourceVersion"])

    def test_no_change(self) -> None:
        """As in the reference, an update without changes writes objects in another format; a dry run does not."""
        self.write("configmaps/default/a", self.map("a", k="v"))
        self.changed(self.maps, "a", lambda obj: None, dry_run=True)
        self.assertTrue(is_protobuf(self.value("configmaps/default/a")))
        self.changed(self.maps, "a", lambda obj: None)
        self.assertEqual(orjson.loads(self.value("configmaps/default/a"))["data"], {"k": "v"})

    def test_deletion(self) -> None:
        """Objects in protobuf can be deleted."""
        self.write("configmaps/default/a", self.map("a"))
        self.delete(self.maps, "a")
        self.assertIsNone(self.stored(self.maps, "a"))

    def test_older_version(self) -> None:
        """An object in an older version is converted."""
        scaler = {
            "metadata": {"name": "h", "namespace": "default"},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
                "maxReplicas": 3,
                "targetCPUUtilizationPercentage": 50,
            },
        }
        raw = Encoder(definitions()).message("io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler", scaler)
        value = enveloped("autoscaling/v1", "HorizontalPodAutoscaler", raw)
        self.write("horizontalpodautoscalers/default/h", value)
        found = self.stored(self.store("horizontalpodautoscalers", "autoscaling"), "h")
        self.assertEqual(found["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50)

    def test_version_that_is_not_served(self) -> None:
        """As in the reference, known versions are read even if they are not served."""
        meta = {"name": "fast", "uid": "u"}
        content = {"metadata": meta, "driverName": "d.example", "parameters": {"iops": "7"}}
        raw = Encoder(definitions()).message("io.k8s.api.storage.v1beta1.VolumeAttributesClass", content)
        store = self.store("volumeattributesclasses", "storage.k8s.io")
        self.assertNotIn("v1beta1", store.info.versions)
        kind = {"kind": "VolumeAttributesClass", "apiVersion": "storage.k8s.io/v1beta1"}
        for value in (
            enveloped(kind["apiVersion"], kind["kind"], raw),
            orjson.dumps(kind | content),
        ):
            revision = self.write("volumeattributesclasses/fast", value)
            found = self.stored(store, "fast", "")
            self.assertLessEqual({**meta, "resourceVersion": str(revision)}.items(), found["metadata"].items())
            self.assertEqual(found["parameters"], {"iops": "7"})

    def test_other_kind(self) -> None:
        """A value of another kind than its key is rejected with the key, by all reads."""
        other = enveloped("v1", "Secret", delimited(1, delimited(1, "a"), delimited(3, "default")))
        for value, reason in (
            (other, "it is a Secret of v1, which is not known here"),
            (
                enveloped("v1", "Swan", delimited(1, delimited(1, "a"))),
                "it is a Swan of v1, which is not known here",
            ),
            (self.map("a", k="v")[:-9], "it is damaged protobuf"),
            # As in the reference, whose storage has no codec of CBOR for built-in kinds.
            (
                encode_cbor({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}),
                "it is damaged CBOR, or of a built-in kind",
            ),
        ):
            self.write("configmaps/default/a", value)
            self.server.clock.advance(1)
            self.assertEqual(len(self.flushLoggedErrors()), 1)
            error = self.assertRaises(APIStatusError, self.maps.existing, self.scope, "a")
            self.assertEqual(error.code, 500)
            self.assertIn(f'"/registry/configmaps/default/a": {reason}', error.message)
            self.maps.cached = False
            error = self.refused(self.maps.get(self.scope, "a", GetOptions()))
            self.assertIn(f'"/registry/configmaps/default/a": {reason}', error.message)
            self.maps.cached = True

    def test_without_types(self) -> None:
        """Without type definitions, protobuf cannot be read."""
        maps = Server("configmaps").stores.get("", "configmaps")
        self.assertRaises(UnknownFormatError, maps.decode_value, "default/a", self.map("a"), 1)


class WritingTests(SharedStoresTestCase):
    """Tests of a server that writes protobuf and one that writes JSON."""

    resources = ("configmaps", "services", "customresourcedefinitions", "apiservices")

    def setUp(self) -> None:
        """Create two servers that get the writes of the other one as bytes."""
        super().setUp()
        commit = self.backend.commit

        def plain(writes: Sequence[Write]) -> Deferred[int]:
            return commit([Write(write.key, write.value, write.expected, write.ttl) for write in writes])

        self.patch(self.backend, "commit", plain)

    def server(self) -> Any:
        """Create a server; the first one writes protobuf."""
        self.options = {"protobuf": not hasattr(self, "one") and not self.options}  # type: ignore[misc]
        self.types = definitions()
        return super().server()

    def value(self, key: str) -> bytes:
        """Return a stored value."""
        value: bytes = self.done(self.backend.read(PREFIX + key)).value
        return value

    def test_beside_each_other(self) -> None:
        """Each server reads the other's format, and rewrites objects in its format when they are updated."""
        made = self.make(self.one, "configmaps", config_map("a", k="v"))
        value = self.value("configmaps/default/a")
        self.assertTrue(is_protobuf(value))
        read = decode_stored(definitions(), value)
        self.assertEqual(read["metadata"], {k: v for k, v in made["metadata"].items() if k != "resourceVersion"})
        self.assertEqual(self.other.get_copy("", "configmaps", "default", "a"), made)
        for stores, protobuf in ((self.other, False), (self.one, True)):
            changed = self.change(stores, "configmaps", made)
            self.assertNotEqual(changed["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"])
            made = self.change(stores, "configmaps", changed)
            self.assertEqual(made, changed)
            self.assertEqual(is_protobuf(self.value("configmaps/default/a")), protobuf)
        self.delete(self.other, "configmaps", "a")
        self.assertIsNone(self.one.get_copy("", "configmaps", "default", "a"))

    def test_node_ports(self) -> None:
        """The node ports are read in both formats, and written in that of the server."""
        for name, stores in (("a", self.one), ("b", self.other), ("c", self.one)):
            self.make(
                stores, "services", {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
            )
            value = self.value("ranges/servicenodeports")
            self.assertEqual(is_protobuf(value), stores is self.one)
            self.assertEqual(
                decode_bitmap(*decode_range(value)), self.allocators(self.one).services.ports.ports_in_use()
            )
        self.assertEqual(len(self.allocators(self.other).services.ports.ports_in_use()), 3)

    def test_definitions(self) -> None:
        """CustomResourceDefinitions are stored as JSON, as in the reference."""
        always = {store.info.group for store in self.one if store.stored_as is None}
        self.assertEqual(always, set(ALWAYS_JSON))
        self.assertEqual([store for store in self.other if store.stored_as is not None], [])

    def test_not_written(self) -> None:
        """An object without a protobuf form is an error, and is not stored."""
        store = self.one.get("", "configmaps")
        deep: Any = "x"
        for _ in range(3):
            deep = [deep]
        error = self.assertRaises(
            APIStatusError, store.encode_value, store.encode({"metadata": {"name": "a"}, "data": deep})
        )
        self.assertEqual(error.code, 500)


class FormatTests(SynchronousTestCase):
    """Tests of stored bytes."""

    def test_ports(self) -> None:
        """The bytes of a RangeAllocation are those of kube-apiserver: empty metadata, the range, and the bitmap."""
        value = encode_range(30000, 32767, [30000, 30009], protobuf=True)
        expected = "0a150a027631120f52616e6765416c6c6f636174696f6e"  # v1, RangeAllocation
        meta = "0a0012001a0022002a00320038004200"
        expected += "12230a10" + meta + "120b" + b"30000-32767".hex() + "1a0202011a002200"
        self.assertEqual(value.hex(), b"k8s\0".hex() + expected)
        self.assertEqual(decode_bitmap(*decode_range(value)), {30000, 30009})

    def test_foreign_ports(self) -> None:
        """A value that is not a RangeAllocation is rejected in any format."""
        for value in (
            b"k8s\0",
            enveloped("v1", "RangeAllocation", b""),
            enveloped("v1", "RangeAllocation", delimited(2, "10.0.0.0/24")),
            enveloped("v1", "Pod", delimited(2, "30000-32767")),
            enveloped("v1", "RangeAllocation", delimited(2, "30000-32767") + delimited(3, "x" * 20_000)),
            enveloped("v1", "RangeAllocation", delimited(2, "30000-32767") + b"\x1a\x7f"),
            enveloped("v1", "RangeAllocation", number(2, 30000)),
        ):
            self.assertRaises(UnknownFormatError, decode_range, value)

    def test_all_kinds(self) -> None:
        """All stored kinds can be encoded, in the oldest release and in the newest."""
        versions = available_versions()
        for minor in (versions[0], versions[-1]):
            types = Definitions.load(minor)
            stored = [one for one in kinds_for(types.gvks(), FeatureGates(parse_release(minor))) if one.stored]
            self.assertGreater(len(stored), 40)
            for info in stored:
                with self.subTest(release=minor, kind=info.kind):
                    value = encode_stored(types, info.storage_kind, b'{"metadata":{"name":"a"}}')
                    found = decode_stored(types, value)
                    self.assertEqual((found["kind"], found["metadata"]["name"]), (info.kind, "a"))

    def test_no_object(self) -> None:
        """A value that cannot be encoded is an error."""
        kind = next(
            one.storage_kind for one in kinds_for(definitions().gvks(), FeatureGates()) if one.resource == "configmaps"
        )
        self.assertRaises(WireError, encode_stored, definitions(), kind, b'{"metadata":[]}')
