"""Tests for L{kubetwist.resources.handlers.websocketwatch}: watches over WebSocket, in memory."""

from __future__ import annotations

from typing import Any

import orjson
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, TextMessage

from kubetwist.resources.handlers import watch as watching
from tests.resources.handlers.watch.watchcase import MAPS, WatchTestCase, summary
from tests.resources.server import JSONClient, config_map

ASKED = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
    "Origin": "https://dashboard.example",
}


class SocketTests(WatchTestCase):
    """Watches of browsers."""

    def setUp(self) -> None:
        """Create a watched server."""
        super().setUp()
        self.frames = Connection(ConnectionType.CLIENT)
        self.ended: list[int] = []

    def watch(self, query: str, client: JSONClient | None = None, path: str = MAPS, **headers: str) -> list[Any]:
        """Begin a watch; return the events that arrive immediately."""
        data = self.client.begin(f"{path}?watch=1&{query}", **(ASKED | headers))
        self.head, separator, rest = data.partition(b"\r\n\r\n")
        self.assertTrue(self.head.startswith(b"HTTP/1.1 101 "), self.head)
        self.assertTrue(separator)
        self.frames.receive_data(rest)
        return self.more()

    def more(self, client: JSONClient | None = None) -> list[Any]:
        """Return the events since the last call."""
        self.server.clock.advance(0)
        self.frames.receive_data(self.client.taken())
        found = []
        for event in self.frames.events():
            if isinstance(event, CloseConnection):
                self.ended.append(event.code)
            else:
                assert isinstance(event, TextMessage)
                self.assertTrue(event.data.endswith("\n"))
                found.append(orjson.loads(event.data))
        return found

    def watched(self) -> int:
        """Return the number of watches of the cache."""
        return sum(map(len, self.cache()._watches.values()))

    def test_events(self) -> None:
        """Each event is a message of text."""
        self.assertEqual([("ADDED", "a"), ("ADDED", "b")], summary(self.watch("")))
        self.create("c")
        self.relabel("a", x="y")
        self.assertEqual([("ADDED", "c"), ("MODIFIED", "a")], summary(self.more()))
        self.client.send(b"\x81\x85\0\0\0\0hello")
        self.create("d")
        self.assertEqual([("ADDED", "d")], summary(self.more()))

    def test_subprotocol(self) -> None:
        """A single requested subprotocol is always accepted."""
        self.watch("", **{"Sec-WebSocket-Protocol": "base64.binary.k8s.io"})
        self.assertIn(b"sec-websocket-protocol: base64.binary.k8s.io", self.head.lower())

    def test_refused(self) -> None:
        """Errors of the handshake are answered as in kube-apiserver, and no watch is started."""
        for field, value, code in [
            ("Origin", "", 403),
            ("Origin", "null", 403),
            ("Sec-WebSocket-Protocol", "one, two", 400),
            ("Sec-WebSocket-Version", "8", 400),
            ("Sec-WebSocket-Key", "", 400),
        ]:
            client = self.server.client()
            answer = client.answer("GET", f"{MAPS}?watch=1", **(ASKED | {field: value}))
            self.assertEqual(code, answer.code)
            self.assertEqual((0, {}), (self.watched(), self.server.site.long_running_requests))

    def test_errors(self) -> None:
        """Errors of the watch are a Status; an error of a watch from a future revision is a message."""
        code, status = self.server.client().ask("GET", f"{MAPS}?watch=1&fieldSelector=x", **ASKED)
        self.assertEqual((400, "Failure"), (code, status["status"]))
        then = self.revision()
        self.create("c")
        self.create("d")
        self.successResultOf(self.server.backend.compact(self.revision()))
        (event,) = self.watch(f"resourceVersion={then}")
        self.assertEqual(("ERROR", 410, [1000]), (event["type"], event["object"]["code"], self.ended))
        self.assertEqual(0, self.watched())

    def test_timeout(self) -> None:
        """A watch closes its WebSocket cleanly at its timeout."""
        self.watch(f"timeoutSeconds=10&resourceVersion={self.revision()}")
        self.server.clock.advance(9)
        self.assertEqual(([], []), (self.more(), self.ended))
        self.server.clock.advance(1)
        self.assertEqual(([], [1000]), (self.more(), self.ended))
        self.assertEqual(0, self.watched())
        self.assertTrue(self.client.transport.disconnecting)

    def test_cache_starts_over(self) -> None:
        """After a loss of the store, the last message is an error that makes clients list again."""
        self.watch(f"resourceVersion={self.revision()}")
        self.cache().ended(RuntimeError("lost"))
        (event,) = self.more()
        self.assertEqual(("ERROR", 410, [1000]), (event["type"], event["object"]["code"], self.ended))

    def test_server_stops(self) -> None:
        """When the server stops, the WebSocket is closed cleanly."""
        self.watch("")
        self.server.site.end_long_running()
        self.assertEqual(([], [1000]), (self.more(), self.ended))
        self.assertEqual(0, self.watched())

    def test_client_goes(self) -> None:
        """When the client disconnects or closes, the watch and its timers are removed."""
        calls = len(self.server.clock.getDelayedCalls())
        for goodbye in (b"", b"\x88\x80\0\0\0\0"):
            self.frames = Connection(ConnectionType.CLIENT)
            self.client = self.server.client()
            self.watch("allowWatchBookmarks=true")
            self.assertEqual(1, self.watched())
            if goodbye:
                self.client.send(goodbye)
                self.assertEqual(0, self.watched())
            self.client.disconnect()
            self.assertEqual((0, {}), (self.watched(), self.server.site.long_running_requests))
            self.assertEqual(calls, len(self.server.clock.getDelayedCalls()))

    def test_bookmarks(self) -> None:
        """A watch that requests bookmarks gets them."""
        self.watch(f"allowWatchBookmarks=true&timeoutSeconds=130&resourceVersion={self.revision()}")
        self.server.clock.advance(60)
        (event,) = self.more()
        self.assertEqual("BOOKMARK", event["type"])

    def test_slow_reader(self) -> None:
        """
        Events are buffered while the reader is slow, and arrive in order when it continues; a reader that stalls is
        disconnected.
        """
        self.watch(f"resourceVersion={self.revision()}")
        socket: Any = self.client.transport.producer
        socket.pauseProducing()
        for name in "cd":
            self.create(name)
        self.assertEqual([], self.more())
        socket.resumeProducing()
        self.server.clock.advance(0)
        self.assertEqual([("ADDED", "c"), ("ADDED", "d")], summary(self.more()))
        socket.pauseProducing()
        for name in "efghijklm":
            self.create(name)
        self.server.clock.advance(watching.STALL_TIMEOUT)
        self.assertTrue(self.client.transport.disconnected)
        self.assertEqual(0, self.watched())

    def test_large_objects(self) -> None:
        """A large object is a message of several frames, none of which splits a character, sent with backpressure."""
        text = "\u00e4" * 150_000
        self.writer.ask("POST", MAPS, config_map("large", x=text))
        client = self.client
        write, sizes = client.transport.write, []

        def full(data: bytes) -> None:
            write(data)
            sizes.append(len(data))
            socket: Any = client.transport.producer
            if socket is not None and data[:4] != b"HTTP":
                socket.pauseProducing()

        client.transport.write = full  # type: ignore[method-assign]
        started = client.begin(f"{MAPS}?watch=1&fieldSelector=metadata.name%3Dlarge", **ASKED)
        self.server.clock.advance(0)
        self.assertLess(sum(sizes), 2 * watching.MAX_WRITE_SIZE)
        received = started.partition(b"\r\n\r\n")[2] + client.taken()
        for _ in range(10):
            client.transport.producer.resumeProducing()
            self.server.clock.advance(0)
            received += client.taken()
        self.frames.receive_data(received)
        pieces = [one.data for one in self.frames.events() if isinstance(one, TextMessage)]
        self.assertGreater(len(pieces), 4)
        self.assertEqual(text, orjson.loads("".join(pieces))["object"]["data"]["x"])
