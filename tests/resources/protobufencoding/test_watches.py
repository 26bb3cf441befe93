"""Tests for watches in protobuf."""

from __future__ import annotations

import struct
from typing import Any

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage

from kubetwist.schema.protobuf.wire import WireError
from tests.resources.handlers.test_websocketwatch import ASKED
from tests.resources.handlers.watch.watchcase import END
from tests.resources.protobufcase import FOREIGN, MAPS, PROTOBUF, AnswerTestCase, Opened, opened
from tests.resources.server import chunks, config_map, definitions

STREAM = f"{PROTOBUF};stream=watch"


def event_of(data: bytes, definition: str = "") -> tuple[str, Opened]:
    """Return the type of a watch event and its object; see L{opened}."""
    event = FOREIGN("Event")
    event.ParseFromString(data)
    return event.type, opened(event.object.raw, definition)


class WatchTests(AnswerTestCase):
    """Watches."""

    def watch(self, query: str, accept: str = STREAM) -> list[tuple[str, Opened]]:
        """Begin a watch; return the events that arrive immediately."""
        self.watcher = self.server.client()
        head, _, body = self.watcher.begin(f"{MAPS}?watch=1&{query}", Accept=accept).partition(b"\r\n\r\n")
        self.assertIn(b"content-type: " + STREAM.encode(), head.lower())
        return self.events(body) + self.more()

    def more(self) -> list[tuple[str, Opened]]:
        """Return the events since the last call."""
        self.server.clock.advance(0)
        return self.events(self.watcher.taken())

    def events(self, body: bytes) -> list[tuple[str, Opened]]:
        """Return the events in a chunked body."""
        data, found = b"".join(chunks(body)), []
        while data:
            (size,) = struct.unpack_from(">I", data)
            found.append(event_of(data[4 : 4 + size]))
            self.assertGreaterEqual(len(data), 4 + size)
            data = data[4 + size :]
        return found

    def test_events(self) -> None:
        """Each event follows its length, and each object is in an envelope."""
        found = self.watch("")
        self.assertEqual(
            [(kind, one.value["metadata"]["name"]) for kind, one in found], [("ADDED", "a"), ("ADDED", "b")]
        )
        self.client.ask("PUT", f"{MAPS}/a", config_map("a", x="2"))
        self.client.ask("DELETE", f"{MAPS}/b")
        (first, changed), (second, decoded) = self.more()
        self.assertEqual((first, changed.kind, changed.value["data"]), ("MODIFIED", "ConfigMap", {"x": "2"}))
        self.assertEqual((second, decoded.value["metadata"]["name"]), ("DELETED", "b"))

    def test_shared(self) -> None:
        """An encoded event is shared by all watches."""
        watchers = [self.server.client() for _ in range(3)]
        for client in watchers:
            client.begin(f"{MAPS}?watch=1&resourceVersion={self.server.backend.revision}", Accept=STREAM)
        encoded = []
        types = definitions().protobuf
        encode = types.encode
        self.patch(types, "encode", lambda *of: encoded.append(of) or encode(*of))
        self.client.ask("PUT", f"{MAPS}/a", config_map("a", x="2"))
        self.client.ask("PUT", f"{MAPS}/a", config_map("a", x="3"))
        self.server.clock.advance(0)
        first, *further_watches = (client.taken() for client in watchers)
        self.assertEqual(further_watches, [first, first])
        self.assertEqual(len(encoded), 2)

    def test_bookmarks(self) -> None:
        """A bookmark is an object with a revision only."""
        query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        *_, (kind, found) = self.watch(query)
        self.assertEqual((kind, found.kind), ("BOOKMARK", "ConfigMap"))
        meta = found.value["metadata"]
        self.assertEqual(meta["annotations"], {"k8s.io/initial-events-end": "true"})
        self.assertEqual(meta["resourceVersion"], str(self.server.backend.revision))

    def test_failures(self) -> None:
        """A watch that cannot begin at its revision sends an error event, and ends."""
        self.successResultOf(self.server.backend.compact(self.server.backend.revision))
        client = self.server.client()
        body = client.begin(f"{MAPS}?watch=1&resourceVersion=1", Accept=STREAM).partition(b"\r\n\r\n")[2]
        self.assertTrue(body.endswith(END))
        ((kind, found),) = self.events(body)
        self.assertEqual((kind, found.kind, found.value["code"]), ("ERROR", "Status", 410))

    def test_invalid_object(self) -> None:
        """An object that cannot be encoded is reported by an error event; later objects are sent."""
        self.watch(f"resourceVersion={self.server.backend.revision}")
        types = definitions().protobuf
        encode = types.encode

        def refuse(definition: str, value: Any) -> bytes:
            if value["metadata"].get("name") == "a":
                raise WireError("exceeded max depth")
            return encode(definition, value)

        self.patch(types, "encode", refuse)
        for name in "ab":
            self.client.ask("PUT", f"{MAPS}/{name}", config_map(name, x="2"))
        (first, error), (second, found) = self.more()
        self.assertEqual((first, error.kind, error.value["code"]), ("ERROR", "Status", 500))
        self.assertEqual((second, found.value["metadata"]["name"]), ("MODIFIED", "b"))
        code, found = self.ask("GET", f"{MAPS}/a")
        self.assertEqual((code, found.value["reason"]), (500, "InternalError"))

    def test_partial(self) -> None:
        """The metadata of objects can be watched in protobuf."""
        client = self.server.client()
        body = client.begin(f"{MAPS}?watch=1", Accept=f"{STREAM};g=meta.k8s.io;v=v1;as=PartialObjectMetadata")
        self.server.clock.advance(0)
        data = b"".join(chunks(body.partition(b"\r\n\r\n")[2] + client.taken()))
        found = event_of(data[4 : 4 + struct.unpack_from(">I", data)[0]], "io.k8s.api.core.v1.ConfigMap")[1]
        self.assertEqual((found.kind, {*found.value}), ("PartialObjectMetadata", {"metadata"}))
        self.assertEqual(found.value["metadata"]["name"], "a")

    def test_socket(self) -> None:
        """Over WebSocket each event is a binary message without its length."""
        client = self.server.client()
        frames = Connection(ConnectionType.CLIENT)
        rest = client.begin(f"{MAPS}?watch=1", Accept=STREAM, **ASKED).partition(b"\r\n\r\n")[2]
        self.server.clock.advance(0)
        frames.receive_data(rest + client.taken())
        found = []
        for event in frames.events():
            assert isinstance(event, BytesMessage), event
            found.append(event_of(bytes(event.data)))
        self.assertEqual(
            [(kind, one.value["metadata"]["name"]) for kind, one in found], [("ADDED", "a"), ("ADDED", "b")]
        )
