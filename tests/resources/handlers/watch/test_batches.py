"""Tests for L{kubetwist.resources.handlers.watch}: events that happen at the same time, over HTTP in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from kubetwist.storage.cache import _delivery
from kubetwist.storage.embedded import Transaction
from tests.metrics.reading import parse_snapshots
from tests.resources.handlers.watch.watchcase import MAPS, WatchTestCase, summary
from tests.resources.server import JSONClient, chunks, config_map, events

PROTOBUF = "application/vnd.kubernetes.protobuf;stream=watch"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class BatchTests(WatchTestCase):
    """Several transactions that become durable at the same time, as the writers of the backends make them."""

    def setUp(self) -> None:
        """Record the writes to connections."""
        super().setUp()
        #: The transport and the data of each write.
        self.writes: list[tuple[Any, bytes]] = []
        #: Called after each write to a client.
        self.after_write: dict[JSONClient, Callable[[], object]] = {}
        self.held: list[Transaction] = []

    def record(self, client: JSONClient) -> JSONClient:
        """Record the writes to a client."""
        write = client.transport.write

        def recorded(data: bytes) -> None:
            self.writes.append((client, data))
            write(data)
            self.after_write.get(client, lambda: None)()

        client.transport.write = recorded
        return client

    def watching(self, query: str = "", **headers: str) -> JSONClient:
        """Begin a watch without initial events; return its client."""
        client = self.record(self.server.client())
        client.begin(f"{MAPS}?watch=1&resourceVersion={self.revision()}&{query}", **headers)
        client.taken()
        return client

    def create_together(
        self,
        *names: str,
        labels: dict[str, str] | None = None,
        size: int = 0,
        before: Callable[[], object] = lambda: None,
    ) -> list[JSONClient]:
        """
        Create ConfigMaps by a client each, in transactions that become durable together.

        @param names: The names of the ConfigMaps.
        @param labels: Their labels.
        @param size: The bytes of their data.
        @param before: Called before the transactions become durable, in the same iteration.
        @return: The clients.
        """
        self.writes.clear()
        submit, self.server.backend.submit = self.server.backend.submit, self.held.append  # type: ignore[method-assign]
        clients = [self.record(self.server.client()) for _ in names]
        for client, name in zip(clients, names, strict=True):
            obj = config_map(name, filling="x" * size)
            obj["metadata"]["labels"] = labels or {}
            body = orjson.dumps(obj)
            head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
            client.send(head.encode() + b"\r\n\r\n" + body)
        self.server.backend.submit = submit  # type: ignore[method-assign]
        held, self.held = self.held, []
        self.assertEqual((len(held), self.writes), (len(names), []))
        before()
        self.server.backend.apply(held)
        self.server.clock.advance(0)
        return clients

    def test_one_write(self) -> None:
        """Each watch gets the events in one write and one chunk, before the writers are answered."""
        watches = [self.watching() for _ in range(3)]
        writers = self.create_together("c", "d", "e")
        self.assertEqual([client for client, _ in self.writes], [*watches, *writers])
        self.assertEqual(len({data for client, data in self.writes if client in watches}), 1)
        for watch in watches:
            (chunk,) = chunks(watch.taken())
            found = [orjson.loads(line) for line in chunk.splitlines()]
            self.assertEqual(summary(found), [("ADDED", "c"), ("ADDED", "d"), ("ADDED", "e")])

    def test_divided(self) -> None:
        """A writer is answered after the last watch has its event, also if a delivery takes several iterations."""
        watches = [self.watching() for _ in range(5)]
        self.patch(_delivery, "MIN_DIVIDED", 1)
        self.patch(_delivery, "UNINTERRUPTED", 2)
        self.patch(_delivery, "DELIVERY_SECONDS", -1.0)
        writers = self.create_together("c")
        self.assertEqual([client for client, _ in self.writes], [*watches, *writers])
        self.assertEqual([summary(self.more(watch)) for watch in watches], [[("ADDED", "c")]] * 5)

    def test_forms(self) -> None:
        """In every form, with and without selectors, the events equal those that a later watch gets one by one."""
        for accept in ("application/json", PROTOBUF, METADATA, TABLE):
            for query in ("", "labelSelector=app%3Dx", "fieldSelector=metadata.name%3Dd"):
                labels = {"app": "x"}
                watches = [self.watching(query, Accept=accept) for _ in range(2)]
                begun = self.revision()
                self.create_together("c", "d", labels=labels)
                later = self.server.client()
                response = later.begin(f"{MAPS}?watch=1&resourceVersion={begun}&{query}", Accept=accept)
                expected = b"".join(chunks(response.partition(b"\r\n\r\n")[2]))
                self.assertIn(b"d", expected)
                for watch in watches:
                    self.assertEqual(b"".join(chunks(watch.taken())), expected, (accept, query))
                for name in "cd":
                    self.assertEqual(self.writer.ask("DELETE", f"{MAPS}/{name}")[0], 200)

    def test_after_a_bookmark(self) -> None:
        """Events follow a bookmark that waits for the end of the iteration."""
        client = self.watching("allowWatchBookmarks=true")
        (watch,) = self.cache()._watches["default/"]
        self.create_together("c", "d", before=lambda: watch.sink.bookmark(self.revision(), False))
        self.assertEqual(summary(events(client.taken())), [("BOOKMARK", ""), ("ADDED", "c"), ("ADDED", "d")])

    def test_large(self) -> None:
        """Events that are too large for one write are sent all, in order."""
        client = self.watching()
        names = [f"large-{number}" for number in range(5)]
        self.create_together(*names, size=30_000)
        for _ in range(5):
            self.server.clock.advance(0)
        self.assertEqual([name for _, name in summary(events(client.taken()))], names)
        self.create_together("z")
        self.assertEqual(summary(events(client.taken())), [("ADDED", "z")])

    def test_paused(self) -> None:
        """A watch whose reader is slow gets later what a fast one gets immediately."""
        slow, fast = self.watching(), self.watching()
        slow.channel.pauseProducing()
        self.create_together("c", "d")
        self.assertEqual((slow.taken(), len(chunks(fast.taken()))), (b"", 1))
        slow.channel.resumeProducing()
        self.server.clock.advance(0)
        self.assertEqual(summary(events(slow.taken())), [("ADDED", "c"), ("ADDED", "d")])

    def test_client_goes(self) -> None:
        """A client that disconnects during a delivery gets nothing; other clients get all events."""
        first, second, third = (self.watching() for _ in range(3))
        self.after_write[first] = second.disconnect
        self.create_together("c", "d")
        self.assertEqual([len(client.taken()) > 0 for client in (first, second, third)], [True, False, True])
        self.assertEqual(len(self.cache()._watches["default/"]), 2)

    def test_metrics(self) -> None:
        """Every event is counted for every watch."""
        for _ in range(3):
            self.watching()
        self.watching("labelSelector=app%3Dx")
        self.create_together("c", "d")
        self.create_together("e", labels={"app": "x"})
        metrics = parse_snapshots(*self.server.installer._flusher.collect())
        (events_total,) = metrics["apiserver_watch_events_total"].values()
        self.assertEqual(events_total, 10)
