"""Tests for L{kubetwist.resources.handlers.watch}: clients that do not read, over HTTP in memory."""

from __future__ import annotations

from typing import Any

from kubetwist.resources.handlers import watch as watching
from tests.resources.handlers.watch.watchcase import END, MAPS, WatchTestCase, summary
from tests.resources.server import JSONClient, config_map, events


class SlowReaderTests(WatchTestCase):
    """Slow readers."""

    def setUp(self) -> None:
        """Begin a watch whose connection accepts no further data."""
        super().setUp()
        self.watch(f"resourceVersion={self.revision()}")
        self.client.channel.pauseProducing()

    def streams(self) -> list[watching.WatchStream]:
        """Return the streams that watch ConfigMaps."""
        return [watch.sink for watches in self.cache()._watches.values() for watch in watches]  # type: ignore[misc]

    def test_waits(self) -> None:
        """Events are buffered while the reader is slow, and arrive in order when it continues."""
        for name in "cde":
            self.create(name)
        self.assertEqual(self.more(), [])
        self.client.channel.resumeProducing()
        self.assertEqual(summary(self.more()), [("ADDED", "c"), ("ADDED", "d"), ("ADDED", "e")])
        self.create("f")
        self.assertEqual(summary(self.more()), [("ADDED", "f")])

    def test_waits_in_the_cache(self) -> None:
        """The stream of a slow reader buffers no events, regardless of their number."""
        for number in range(30):
            self.writer.ask("POST", MAPS, config_map(f"m-{number}", x="x" * 20_000))
        (stream,) = self.streams()
        self.assertEqual((self.more(), stream._pending, stream._pending_bytes), ([], [], 0))
        self.client.channel.resumeProducing()
        found = self.more()
        while more := self.more():
            found += more
        self.assertEqual(summary(found), [("ADDED", f"m-{number}") for number in range(30)])

    def test_disconnected(self) -> None:
        """
        A reader that reads nothing for a minute is disconnected and its memory is freed; further watches continue.
        """
        other = self.server.client()
        self.watch(f"resourceVersion={self.revision()}", other)
        for name in "cdefghij":
            self.create(name)
        self.server.clock.advance(watching.STALL_TIMEOUT - 1)
        self.assertFalse(self.client.transport.disconnected)
        self.server.clock.advance(1)
        self.assertTrue(self.client.transport.disconnected)
        self.assertEqual(len(self.more(other)), 8)
        self.assertEqual(len(self.streams()), 1)

    def test_stall_timeout(self) -> None:
        """A reader that reads something gets another minute."""
        for _ in range(3):
            self.create(f"m-{self.revision()}")
            self.server.clock.advance(watching.STALL_TIMEOUT - 1)
            self.client.channel.resumeProducing()
            self.client.channel.pauseProducing()
        self.assertFalse(self.client.transport.disconnected)

    def test_end(self) -> None:
        """A watch that ends while its reader is slow ends regularly; the next watch shows the events it missed."""
        then = self.revision()
        self.create("c")
        (stream,) = self.streams()
        stream.end()
        self.assertEqual(self.client.taken(), END)
        self.assertEqual(summary(self.watch(f"resourceVersion={then}", self.server.client())), [("ADDED", "c")])

    def test_client_disconnects(self) -> None:
        """A slow reader that disconnects leaves nothing behind."""
        self.create("c")
        self.client.disconnect()
        self.create("d")
        self.assertEqual(self.cache()._watches, {})


class UnreadTests(WatchTestCase):
    """Readers that read one piece at a time, or nothing."""

    def setUp(self) -> None:
        """Create objects of 2 MB."""
        super().setUp()
        self.names = [f"m-{number:03}" for number in range(100)]
        for name in self.names:
            self.create_large(name, 20_000)

    def create_large(self, name: str, size: int) -> None:
        """Write an object of a size in bytes; half of it is metadata."""
        obj = config_map(name, x="x" * (size // 2))
        obj["metadata"]["annotations"] = {"note": "n" * min(size // 2, 200_000)}
        self.assertEqual(self.writer.ask("POST", MAPS, obj)[0], 201)

    def unread(
        self, query: str, accept: str = "application/json"
    ) -> tuple[JSONClient, watching.WatchStream, list[int]]:
        """Begin a watch whose transport is full after each write; collect the sizes of writes."""
        client = self.server.client()
        write, sizes = client.transport.write, []

        def full(data: bytes) -> None:
            write(data)
            sizes.append(len(data))
            client.channel.pauseProducing()

        client.transport.write = full  # type: ignore[method-assign]
        self.begun = client.begin(f"{MAPS}?watch=1&{query}", Accept=accept)
        self.server.clock.advance(0)
        stream: Any = [watch.sink for watches in self.cache()._watches.values() for watch in watches][-1]
        return client, stream, sizes

    def test_bound(self) -> None:
        """At most one piece of the initial events of an unread watch is encoded, in any format."""
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
        for accept in ("application/json", table, metadata, "application/vnd.kubernetes.protobuf;stream=watch"):
            client, stream, sizes = self.unread("", accept)
            client.channel.resumeProducing()
            self.server.clock.advance(0)
            self.assertGreater(sum(sizes), 10_000, accept)
            self.assertLess(sum(sizes) + stream._pending_bytes, 3 * watching.MAX_WRITE_SIZE, accept)
            client.disconnect()

    def test_pieces(self) -> None:
        """The initial events of a large collection are written with backpressure, and completely."""
        query = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        client, stream, sizes = self.unread(query)
        data = self.begun.partition(b"\r\n\r\n")[2] + client.taken()
        for _ in range(100):
            before = len(sizes)
            client.channel.resumeProducing()
            self.server.clock.advance(0)
            self.assertLessEqual(len(sizes) - before, 1)
            self.assertLess(stream._pending_bytes, 2 * watching.MAX_WRITE_SIZE)
            data += client.taken()
            if b"BOOKMARK" in data:
                break
        self.assertGreater(len(sizes), 20)
        self.assertLess(max(sizes), 2 * watching.MAX_WRITE_SIZE)
        found = events(data)
        self.assertEqual([name for _, name in summary(found)], ["a", "b", *self.names, ""])
        self.assertEqual(found[-1]["object"]["metadata"]["resourceVersion"], str(self.revision()))

    def test_large_object(self) -> None:
        """A large object is encoded once for all simultaneous streams, and written in pieces."""
        self.create_large("a-large", 1_000_000)
        streams = [self.unread("fieldSelector=metadata.name%3Da-large") for _ in range(2)]
        encoded = {id(event) for _, stream, _ in streams for event in stream._pending}
        self.assertEqual(len(encoded), 1)
        flusher = streams[0][1]._flusher
        self.assertEqual(len(flusher._shared), 1)
        for client, stream, sizes in streams:
            data = client.taken()
            while stream._pending:
                client.channel.resumeProducing()
                self.server.clock.advance(0)
                data += client.taken()
            self.assertGreater(len(sizes), 10)
            self.assertLess(max(sizes), 2 * watching.MAX_WRITE_SIZE)
            (event,) = events(data.rpartition(b"\r\n\r\n")[2] or data)
            self.assertEqual(len(event["object"]["data"]["x"]), 500_000)
        self.assertEqual(len(flusher._shared), 0)

    def test_no_progress(self) -> None:
        """A watch whose initial events are not read is closed after a minute."""
        client, _, _ = self.unread("")
        self.server.clock.advance(watching.STALL_TIMEOUT)
        self.assertTrue(client.transport.disconnected)
        self.assertEqual(self.cache()._watches, {})

    def test_end_amid_an_object(self) -> None:
        """A watch that ends within an unread object is aborted, so that its client does not consider it complete."""
        self.create_large("a-large", 1_000_000)
        client, stream, _ = self.unread("fieldSelector=metadata.name%3Da-large")
        client.channel.resumeProducing()
        stream.end()
        self.assertFalse(client.taken().endswith(END))
        self.assertTrue(client.transport.disconnected)

    def test_failing_flush(self) -> None:
        """A stream that fails to write is closed; further streams are written."""
        further_streams = [self.server.client() for _ in range(2)]
        self.watch(f"resourceVersion={self.revision()}", further_streams[0])
        self.watch(f"resourceVersion={self.revision()}")
        self.watch(f"resourceVersion={self.revision()}", further_streams[1])
        stream = self.cache()._watches["default/"][1].sink
        self.fail_writes(stream)
        self.create("c")
        self.assertEqual([summary(self.more(other)) for other in further_streams], [[("ADDED", "c")]] * 2)
        self.assertTrue(self.client.transport.disconnected)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        self.assertEqual(len(self.cache()._watches["default/"]), 2)

    def test_failing_bookmark(self) -> None:
        """A stream that fails to write at the end of an iteration is closed."""
        self.watch(f"resourceVersion={self.revision()}&allowWatchBookmarks=true&timeoutSeconds=1000")
        (watch,) = self.cache()._watches["default/"]
        self.fail_writes(watch.sink)
        self.server.clock.advance(watching.BOOKMARK_INTERVAL)
        self.server.clock.advance(0)
        self.assertTrue(self.client.transport.disconnected)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    def fail_writes(self, stream: Any) -> None:
        """Let all further writes of a stream fail."""

        def fail(*arguments: object) -> None:
            raise ValueError("as a test")

        stream._request.write = stream._shared_writer._write = fail

    def test_failing_encoder(self) -> None:
        """A stream whose objects cannot be encoded is closed."""
        client, stream, _ = self.unread("")
        stream._encoder = None
        for _ in range(5):
            client.channel.resumeProducing()
            self.server.clock.advance(0)
        self.assertTrue(client.transport.disconnected)
        self.assertNotEqual(self.flushLoggedErrors(AttributeError), [])
