"""Tests for lists in protobuf."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kubetwist.api.resource import GroupVersionKind
from kubetwist.flowcontrol.scheduler import CooperativeScheduler
from kubetwist.http.responses import PIECE
from kubetwist.resources.binaryencoding import MAX_SLICE_SIZE
from kubetwist.schema.protobuf.wire import WireError
from tests.resources.protobufcase import MAPS, PROTOBUF, AnswerTestCase, opened
from tests.resources.server import JSONClient, config_map, definitions


class ListTests(AnswerTestCase):
    """Lists."""

    def test_list(self) -> None:
        """A list has its revision, and its items equal those in JSON."""
        _, found = self.ask("GET", MAPS)
        expected = self.client.ask("GET", MAPS)[1]
        self.assertEqual((found.api_version, found.kind), ("v1", "ConfigMapList"))
        self.assertEqual(found.value["metadata"]["resourceVersion"], expected["metadata"]["resourceVersion"])
        known = definitions().type_for(GroupVersionKind("", "v1", "ConfigMap"))
        self.assertEqual([known.decode(one, []) for one in found.value["items"]], expected["items"])

    def test_pages(self) -> None:
        """A paginated list has the number of remaining items, and a continue token."""
        _, found = self.ask("GET", f"{MAPS}?limit=1")
        self.assertEqual(found.value["metadata"]["remainingItemCount"], 1)
        _, found = self.ask("GET", f"{MAPS}?limit=1&continue={found.value['metadata']['continue']}")
        self.assertEqual([one["metadata"]["name"] for one in found.value["items"]], ["b"])

    def test_empty(self) -> None:
        """A list may be empty."""
        _, found = self.ask("GET", "/api/v1/pods")
        self.assertEqual((found.kind, "items" in found.value), ("PodList", False))

    def begin_long(self, *names: str) -> JSONClient:
        """
        Request a list whose items each have the size of a slice; C{first_part} has the part that is sent immediately.
        """
        for name in names:
            self.client.ask("POST", MAPS, config_map(name, x="y" * MAX_SLICE_SIZE))
        self.turning = Clock()
        self.server.site.scheduler = CooperativeScheduler(self.turning)
        client = self.server.client()
        self.first_part = client.begin(MAPS, Accept=PROTOBUF)
        return client

    def test_long(self) -> None:
        """A long list is encoded in slices, over several iterations of the reactor."""
        work: list[Deferred[None]] = []

        def wait_for_slot(scheduler: CooperativeScheduler) -> Deferred[None]:
            work.append(Deferred())
            return work[-1]

        self.patch(CooperativeScheduler, "wait_for_slot", wait_for_slot)
        client = self.begin_long(*"cdefgh")
        pieces, data = 0, b""
        while work:
            self.assertEqual((len(work), data), (1, b""))
            work.pop().callback(None)
            pieces += 1
            data = client.taken()
        self.assertEqual(pieces, 5)
        head, _, body = data.partition(b"\r\n\r\n")
        self.assertIn(PROTOBUF.encode(), head)
        found = opened(body)
        self.assertEqual([one["metadata"]["name"] for one in found.value["items"]], list("abcdefgh"))

    def test_slow_reader(self) -> None:
        """A large list is written at the pace of its reader."""
        for number in range(8):
            self.client.ask("POST", MAPS, config_map(f"large-{number}", x="y" * PIECE))
        client = self.server.client()
        write = client.transport.write

        def pause(data: bytes) -> None:
            write(data)
            client.channel.pauseProducing()

        client.transport.write = pause  # type: ignore[method-assign]
        pieces = [client.begin(MAPS, Accept=PROTOBUF)]
        while pieces[-1]:
            client.channel.resumeProducing()
            pieces.append(client.taken())
        self.assertLess(max(map(len, pieces)), 3 * PIECE)
        self.assertGreater(len(pieces), 7)
        found = opened(b"".join(pieces).partition(b"\r\n\r\n")[2])
        self.assertEqual(len(found.value["items"]), 10)

    def test_client_disconnects(self) -> None:
        """Encoding of a long list stops when the client disconnects."""
        client = self.begin_long(*"cdefgh")
        client.disconnect()
        encoded = []
        types = definitions().protobuf
        encode = types.encode
        self.patch(types, "encode", lambda *of: encoded.append(of) or encode(*of))
        for _ in range(20):
            self.turning.advance(0)
        self.assertLess(len(encoded), 2)
        self.assertEqual(client.taken(), b"")

    def test_invalid_item(self) -> None:
        """A list with an item that cannot be encoded is an error, even if it is in a later slice."""
        types = definitions().protobuf
        encode = types.encode

        def refuse(definition: str, value: Any) -> bytes:
            if value.get("metadata", {}).get("name") == "h":
                raise WireError("exceeded max depth")
            return encode(definition, value)

        self.patch(types, "encode", refuse)
        client = self.begin_long(*"cdefgh")
        data = self.first_part
        for _ in range(50):
            self.turning.advance(0)
            data += client.taken()
        self.assertTrue(data.startswith(b"HTTP/1.1 500 "), data)
        self.assertIn(b"exceeded max depth", data)
