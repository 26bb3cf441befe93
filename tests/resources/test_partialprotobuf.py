"""Tests for metadata in protobuf, as metadata informers request it, of built-in and of custom resources."""

from __future__ import annotations

import struct
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.protobuf.codec import read_envelope
from tests.resources.customserver import KITES, CustomServer, definition
from tests.resources.server import Server, chunks, config_map, definitions

PROTOBUF = "application/vnd.kubernetes.protobuf"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
MAPS = "/api/v1/namespaces/default/configmaps"
WATCH_LIST = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


def accepting(kind: str, version: str = "v1", fallback: str = "") -> str:
    """Return the C{Accept} header of client-go's metadata client, or only its first part."""
    view = f";as={kind};g=meta.k8s.io;v={version}"
    return f"{PROTOBUF}{view}" + (f",application/json{view},application/json" if fallback else "")


ONE, LIST = accepting("PartialObjectMetadata"), accepting("PartialObjectMetadataList")


def fields(message: bytes) -> list[tuple[int, bytes]]:
    """Return the fields of a message by number; all their lengths are one or two bytes."""
    found, at = [], 0
    while at < len(message):
        number, size, at = message[at] >> 3, message[at + 1], at + 2
        if size & 0x80:
            size, at = (size & 0x7F) | message[at] << 7, at + 1
        found.append((number, message[at : at + size]))
        at += size
    return found


def metadata(message: bytes, kind: str = "ObjectMeta") -> dict[str, Any]:
    """Return the metadata in a message."""
    return definitions().protobuf.decode(f"{META}.{kind}", message)


def partial(body: bytes) -> tuple[str, dict[str, Any]]:
    """Return the kind of a single object, and its metadata."""
    envelope = read_envelope(body)
    ((number, content),) = fields(envelope.raw)
    assert number == 1
    return envelope.kind, metadata(content)


class Cases:
    """Built-in and custom resources."""

    server: Any
    client: Any
    path: str

    def other(self, name: str, **labels: str) -> dict[str, Any]:
        """Return an object to create."""
        raise NotImplementedError

    def get(self: Any, path: str, accept: str, method: str = "GET", body: Any = None) -> bytes:
        """Return the body of a response in protobuf."""
        answer = self.client.answer(method, path, body, Accept=accept)
        self.assertEqual((answer.code // 100, answer.header("content-type")), (2, PROTOBUF), answer.body)
        found: bytes = answer.body
        return found

    def test_get(self: Any) -> None:
        """An object's metadata equals the one in JSON."""
        expected = self.client.ask("GET", f"{self.path}/a")[1]["metadata"]
        managers = [one["manager"] for one in expected.pop("managedFields", [])]
        for accept in (ONE, accepting("PartialObjectMetadata", fallback="json")):
            kind, found = partial(self.get(f"{self.path}/a", accept))
            self.assertEqual(kind, "PartialObjectMetadata")
            self.assertEqual({name: found[name] for name in expected}, expected)
            self.assertEqual([one["manager"] for one in found.get("managedFields", [])], managers)

    def test_order(self: Any) -> None:
        """For metadata, the order in C{Accept} decides, since it is stored in neither format."""
        view = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        for accept in (f"application/json{view},{PROTOBUF}{view}", f"{PROTOBUF}{view};q=0.5,application/json{view}"):
            found = self.client.ask("GET", f"{self.path}/a", Accept=accept)[1]
            self.assertEqual(found["kind"], "PartialObjectMetadata")

    def test_list(self: Any) -> None:
        """A list has its metadata and items, which omit their kind."""
        expected = self.client.ask("GET", self.path)[1]
        for accept in (LIST, accepting("PartialObjectMetadataList", fallback="json")):
            envelope = read_envelope(self.get(f"{self.path}?limit=1", accept))
            self.assertEqual((envelope.api_version, envelope.kind), ("meta.k8s.io/v1", "PartialObjectMetadataList"))
            (first, meta), (second, item) = fields(envelope.raw)
            self.assertEqual((first, second), (1, 2))
            self.assertEqual(metadata(meta, "ListMeta")["remainingItemCount"], 1)
            ((_, found),) = fields(item)
            self.assertEqual(metadata(found)["uid"], expected["items"][0]["metadata"]["uid"])

    def test_beta_list(self: Any) -> None:
        """In v1beta1 the items of a list come before its metadata, since its field numbers differ."""
        envelope = read_envelope(self.get(self.path, accepting("PartialObjectMetadataList", "v1beta1")))
        self.assertEqual(envelope.api_version, "meta.k8s.io/v1beta1")
        self.assertEqual([number for number, _ in fields(envelope.raw)], [1, 1, 2])

    def test_writes(self: Any) -> None:
        """Results of creates, patches and deletes are in this format, too; a Status has its protobuf form."""
        kind, found = partial(self.get(self.path, ONE, "POST", self.other("c", l="1")))
        self.assertEqual((kind, found["name"], found["labels"]), ("PartialObjectMetadata", "c", {"l": "1"}))
        for accept in (ONE, LIST):
            envelope = read_envelope(self.get(f"{self.path}/c?dryRun=All", accept, "DELETE"))
            self.assertEqual((envelope.api_version, envelope.kind), ("v1", "Status"))

    def test_not_a_table(self: Any) -> None:
        """Tables have no protobuf form."""
        self.assertEqual(self.client.answer("GET", self.path, Accept=accepting("Table")).code, 406)

    def watch(self: Any, query: str, accept: str = ONE) -> Any:
        """Begin a watch."""
        client = self.server.client()
        client.begin(f"{self.path}?{query}", Accept=accept)
        return client

    def events(self: Any, client: Any) -> list[tuple[str, bytes]]:
        """Return the events that the watch has received: type and object."""
        self.server.clock.advance(0)
        return self.framed(client.taken())

    def framed(self: Any, body: bytes) -> list[tuple[str, bytes]]:
        """Return the events in a chunked body."""
        data, found = b"".join(chunks(body)), []
        while data:
            (size,) = struct.unpack_from(">I", data)
            (_, kind), (_, raw) = fields(data[4 : 4 + size])
            ((_, shown),) = fields(raw)
            found.append((kind.decode(), shown))
            data = data[4 + size :]
        return found

    def test_watch(self: Any) -> None:
        """A watch sends metadata, for initial events and later ones."""
        for accept in (ONE, accepting("PartialObjectMetadata", fallback="json")):
            client = self.server.client()
            head, _, body = client.begin(f"{self.path}?watch=1", Accept=accept).partition(b"\r\n\r\n")
            self.assertIn(f"content-type: {PROTOBUF};stream=watch".encode(), head.lower())
            found = [*self.framed(body), *self.events(client)]
            self.assertEqual([(kind, partial(one)[1]["name"]) for kind, one in found], [("ADDED", "a"), ("ADDED", "b")])
            self.client.ask("POST", self.path, self.other("d"))
            self.client.ask("DELETE", f"{self.path}/d")
            found = [(kind, partial(one)) for kind, one in self.events(client)]
            self.assertEqual([kind for kind, _ in found], ["ADDED", "DELETED"])
            self.assertEqual({(kind, meta["name"]) for _, (kind, meta) in found}, {("PartialObjectMetadata", "d")})

    def test_watch_list(self: Any) -> None:
        """A watch list ends with a bookmark that is metadata, too."""
        client = self.server.client()
        body = client.begin(f"{self.path}?{WATCH_LIST}", Accept=ONE).partition(b"\r\n\r\n")[2]
        *added, (kind, last) = [*self.framed(body), *self.events(client)]
        self.assertEqual([kind for kind, _ in added], ["ADDED", "ADDED"])
        kind_, meta = partial(last)
        self.assertEqual((kind, kind_), ("BOOKMARK", "PartialObjectMetadata"))
        self.assertEqual(meta["annotations"], {"k8s.io/initial-events-end": "true"})
        self.assertEqual(meta["resourceVersion"], str(self.server.backend.revision))

    def test_encoded_once(self: Any) -> None:
        """The encoded event is shared by all watches."""
        clients = [self.watch(f"watch=1&resourceVersion={self.server.backend.revision}") for _ in range(3)]
        encoded = []
        types = definitions().protobuf
        encode = types.encode
        self.patch(types, "encode", lambda *of: encoded.append(of) or encode(*of))
        for name in "ef":
            self.client.ask("POST", self.path, self.other(name))
        self.server.clock.advance(0)
        first, *fallback = (client.taken() for client in clients)
        self.assertEqual((len(encoded), fallback), (2, [first, first]))

    def test_ends(self: Any) -> None:
        """The reason for the end of a watch is sent in protobuf, also if no object can be sent."""
        self.successResultOf(self.server.backend.compact(self.server.backend.revision))
        for accept in (ONE, LIST):
            client = self.server.client()
            body = client.begin(f"{self.path}?watch=1&resourceVersion=1", Accept=accept).partition(b"\r\n\r\n")[2]
            ((kind, status),) = [*self.framed(body), *self.events(client)]
            self.assertEqual((kind, read_envelope(status).kind), ("ERROR", "Status"))


class BuiltInTests(Cases, SynchronousTestCase):
    """ConfigMaps."""

    path = MAPS

    def setUp(self) -> None:
        """Create two of them."""
        self.server = Server("configmaps")
        self.client = self.server.client()
        for name in "ab":
            self.client.ask("POST", self.path, self.other(name, x="y"))

    def other(self, name: str, **labels: str) -> dict[str, Any]:
        """Return a ConfigMap."""
        created: dict[str, Any] = config_map(name, k="v")
        created["metadata"]["labels"] = labels
        return created


class CustomTests(Cases, SynchronousTestCase):
    """Custom resources, which have no protobuf form."""

    path = KITES

    def setUp(self) -> None:
        """Create two of them."""
        self.server = CustomServer()
        self.client = self.server.client()
        self.server.define(self.client, definition(subresources={"status": {}}))
        for name in "ab":
            self.assertEqual(self.client.ask("POST", self.path, self.other(name, x="y"))[0], 201)

    def other(self, name: str, **labels: str) -> dict[str, Any]:
        """Return a kite."""
        meta = {"name": name, "labels": labels}
        return {"kind": "Kite", "apiVersion": "example.com/v1", "metadata": meta, "spec": {"tail": 2}}

    def test_object(self) -> None:
        """The object itself has no protobuf form."""
        self.assertEqual(self.client.answer("GET", f"{self.path}/a", Accept=PROTOBUF).code, 406)
        found = self.client.ask("GET", f"{self.path}/a", Accept=f"{PROTOBUF},application/json")[1]
        self.assertEqual(found["kind"], "Kite")

    def test_status(self) -> None:
        """Its status is available as metadata as well."""
        self.assertEqual(partial(self.get(f"{self.path}/a/status", ONE))[1]["name"], "a")
