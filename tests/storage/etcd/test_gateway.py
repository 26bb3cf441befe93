"""Tests for L{kubetwist.storage.etcd.gateway}: the tests of the store over etcd's gateway, and its defects."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from txaioetcd import CompModified, KeySet, OpGet, OpSet, Transaction

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from kubetwist.storage.etcd import EtcdStorage
from kubetwist.storage.etcd._errors import (
    INTERNAL,
    NOT_FOUND,
    OUT_OF_RANGE,
    UNAVAILABLE,
    UNKNOWN,
    NoResponse,
    NotSent,
    ProtocolError,
    ResponseTimeout,
    RPCError,
)
from kubetwist.storage.etcd._values import ALL_KEYS, WatchRequest, WatchResponse
from kubetwist.storage.etcd.address import Address
from kubetwist.storage.etcd.gateway import (
    MAX_CONCURRENT_CALLS,
    GatewayClient,
    IGatewayTransport,
    LineReader,
)
from kubetwist.testing.etcd import etcd_skip_reason
from kubetwist.testing.storage import storage_tests

from . import test_client, test_expiry, test_loss, test_metrics, test_sharing, test_sizes, test_storage
from .answers import text
from .case import RunningReactor, fresh_storage
from .peer import cut


def fresh_gateway_storage(case: SynchronousTestCase, reactor: Any) -> EtcdStorage:
    """Return a store in a separate etcd, over the gateway."""
    return fresh_storage(case, reactor, "gateway")


class GatewayStorageTests(storage_tests(fresh_gateway_storage, RunningReactor)):
    """A store over the gateway passes the tests of all stores."""

    skip = etcd_skip_reason() or None
    # etcd uses real time.
    deleted = test_storage.EtcdStorageTests.deleted
    test_ttl = test_storage.EtcdStorageTests.test_ttl
    test_ttl_renewed = test_storage.EtcdStorageTests.test_ttl_renewed


class GatewayLossTests(test_loss.LossTests):
    """Lost connections to the gateway."""

    transport = "gateway"


class GatewayClusterTests(test_loss.ClusterTests):
    """The loss of one of three members."""

    transport = "gateway"


class GatewayTLSTests(test_loss.TLSTests):
    """TLS connections to the gateway."""

    transport = "gateway"


class GatewaySharingTests(test_sharing.SharingTests):
    """Several servers on one etcd."""

    transport = "gateway"


class GatewayMovingTests(test_expiry.MovingTests):
    """Migration to and from etcd."""

    transport = "gateway"


class GatewayTallyTests(test_metrics.EtcdTallyTests):
    """The metrics of a store."""

    transport = "gateway"


class GatewaySizeTests(test_sizes.SizeTallyTests):
    """The sizes of databases."""

    transport = "gateway"


class GatewayClientTests(test_client.ClientTests):
    """The methods of txaioetcd's client, and the additions."""

    flags = ()
    transport = "gateway"


class GatewayWatchTests(test_client.WatchTests):
    """Watches of changes that are larger than one message."""

    transport = "gateway"


@implementer(IGatewayTransport)
class FakeTransport:
    """
    A transport whose responses are given by the test.

    @ivar calls: The paths and bodies of requests, with their results.
    @ivar streams: The same for streams, with the receivers.
    @ivar ended: The number of cancelled streams.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, Deferred[tuple[int, bytes]]]] = []
        self.streams: list[tuple[Any, Deferred[None], Callable[[bytes], object]]] = []
        self.refused: Callable[[int, bytes], Exception] | None = None
        self.ended = 0
        self.closed = False

    def post(self, path: str, body: bytes, timeout: float) -> Deferred[tuple[int, bytes]]:
        """Record a request."""
        result: Deferred[tuple[int, bytes]] = Deferred()
        self.calls.append((path, json.loads(body), result))
        return result

    def stream(
        self,
        path: str,
        body: bytes,
        receive: Callable[[bytes], object],
        refused: Callable[[int, bytes], Exception],
    ) -> Deferred[None]:
        """Record a stream."""

        def cancelled(_: object) -> None:
            self.ended += 1

        result: Deferred[None] = Deferred(cancelled)
        self.streams.append((json.loads(body), result, receive))
        self.refused = refused
        return result

    def close(self) -> None:
        """Note the end."""
        self.closed = True


HEADER = {"cluster_id": "1", "member_id": "2", "revision": "7", "raft_term": "3"}


def body(**found: Any) -> bytes:
    """Return a response."""
    return json.dumps({"header": HEADER, **found}).encode()


class FakeGatewayCase(SynchronousTestCase):
    """A client whose responses are given by the test."""

    def setUp(self) -> None:
        """Make a client."""
        self.clock = Clock()
        self.transport = FakeTransport()
        self.client = GatewayClient(Address.parse("http://etcd:1"), self.clock, self.transport)


class ResponseTests(FakeGatewayCase):
    """Responses of the gateway."""

    def answer(self, call: Callable[[], Deferred[Any]], status: int, content: bytes) -> Any:
        """Return the result of a call, or its error."""
        results: list[Any] = []
        call().addBoth(results.append)
        self.transport.calls.pop()[2].callback((status, content))
        (result,) = results
        return getattr(result, "value", result)

    def test_request(self) -> None:
        """Requests have the path of etcd 3.4 and later, and all options."""
        self.client.get(KeySet(b"a", prefix=True), limit=5, revision=6, sort_order="DESCEND")
        path, request, _ = self.transport.calls.pop()
        self.assertEqual(path, "/v3/kv/range")
        wanted = {"key": text(b"a"), "range_end": text(b"b"), "limit": 5, "revision": 6, "sort_order": "DESCEND"}
        self.assertEqual(request, wanted)
        self.client.submit(
            Transaction(compare=[CompModified(b"k", "==", 0)], failure=[OpGet(KeySet(b"\xff", prefix=True))])
        )
        path, request, _ = self.transport.calls.pop()
        self.assertEqual(path, "/v3/kv/txn")
        self.assertEqual(
            request,
            {
                "compare": [{"key": text(b"k"), "result": "EQUAL", "target": "MOD", "mod_revision": 0}],
                "failure": [{"request_range": {"key": text(b"\xff"), "range_end": text(b"\0")}}],
            },
        )
        verifyObject(IGatewayTransport, self.transport)

    def test_refusals(self) -> None:
        """A refusal has the code and the text of etcd; one of a proxy has the code for its status."""
        for status, content, code, message in (
            (400, b'{"error":"etcdserver: x","message":"etcdserver: x","code":11}', OUT_OF_RANGE, "etcdserver: x"),
            (404, b'{"error":"lease","code":5}', NOT_FOUND, "lease"),
            (503, b"<html>", UNAVAILABLE, "etcd's gateway responded with status 503"),
            (502, b'{"code":502,"message":"bad gateway"}', UNAVAILABLE, "bad gateway"),
            (302, b"", UNKNOWN, "etcd's gateway responded with status 302"),
            (400, b'{"error":5,"code":"x"}', INTERNAL, "etcd's gateway responded with status 400"),
            (400, b"[]", INTERNAL, "etcd's gateway responded with status 400"),
        ):
            error = self.answer(lambda: self.client.set(b"k", b"v"), status, content)
            self.assertIsInstance(error, RPCError, content)
            self.assertEqual((error.code, error.message), (code, message))

    def test_nonsense(self) -> None:
        """Responses that are no result are rejected."""

        def read() -> Deferred[Any]:
            return self.client.read(OpGet(b"k"))

        def write() -> Deferred[Any]:
            return self.client.submit(Transaction(success=[OpSet(b"k", b"v")]))

        for call, content in (
            (read, b""),
            (read, b"[]"),
            (read, b"{"),
            (read, b"{}"),
            (read, b'{"header":{}}'),
            (read, b'{"header":{"revision":"x"}}'),
            (read, b'{"header":{"revision":"0"}}'),
            (read, body(kvs=5)),
            (read, body(kvs=[5])),
            (read, body(kvs=[{"key": "*", "mod_revision": "1"}])),
            (read, body(kvs=[{"key": text(b"k")}])),
            (read, body(count="many")),
            (lambda: self.client.set(b"k", b"v"), body(prev_kv=5)),
            (lambda: self.client.delete(b"k"), body(prev_kvs=5)),
            (lambda: self.client.lease(5), body()),
            (self.client.status, body(dbSize="x")),
            (lambda: self.client.lease_time_to_live(5), body(TTL="x")),
            (lambda: self.client.keep_lease_alive(5), b'{"result":5}'),
            (lambda: self.client.keep_lease_alive(5), b'{"result":{}}'),
            (write, body(succeeded=True, responses=[{"response_other": {}}])),
            (write, body(succeeded=True, responses=[{}])),
            (write, body(succeeded=True, responses=[{"response_put": {}, "response_range": {"value": "secret"}}])),
            (read, b"secret"),
            (write, body(succeeded=True, responses=5)),
        ):
            error = self.answer(call, 200, content)
            self.assertIsInstance(error, ProtocolError, content)
            self.assertNotIn("secret", str(error))
        self.assertEqual(self.answer(self.client.revision, 200, body()), 7)

    def test_lease_refused(self) -> None:
        """A lease that cannot be renewed has the error of the stream."""
        refused = b'{"error":{"grpc_code":14,"http_code":503,"message":"no leader","http_status":"Unavailable"}}'
        error = self.answer(lambda: self.client.keep_lease_alive(5), 200, refused)
        self.assertEqual((error.code, error.message), (14, "no leader"))

    def test_concurrent_calls(self) -> None:
        """The number of concurrent calls is limited; waiting calls go to other members if this one fails."""
        results: list[Any] = []
        calls = [self.client.revision() for _ in range(MAX_CONCURRENT_CALLS + 3)]
        for call in calls:
            call.addBoth(results.append)
        self.assertEqual(len(self.transport.calls), MAX_CONCURRENT_CALLS)
        calls[-3].cancel()
        results.clear()
        self.transport.calls[0][2].callback((200, body()))
        self.assertEqual((results, len(self.transport.calls)), ([7], MAX_CONCURRENT_CALLS + 1))
        self.client.mark_unhealthy("it is silent")
        self.assertIsInstance(results[1].value, NotSent)
        for _, _, result in self.transport.calls[1:]:
            result.callback((200, body()))
        self.assertEqual(results[2:], [7] * MAX_CONCURRENT_CALLS)
        self.client.revision()
        self.assertEqual(len(self.transport.calls), MAX_CONCURRENT_CALLS + 2)

    def test_closed(self) -> None:
        """A closed client sends nothing."""
        self.client.close()
        self.failureResultOf(self.client.revision(), NotSent)
        ends: list[Any] = []
        self.client.follow(WatchRequest(ALL_KEYS, 1), self.fail, ends.append, 3.0)
        self.assertIsInstance(ends[0], NotSent)
        self.assertEqual((self.transport.calls, self.transport.streams, self.transport.closed), ([], [], True))
        self.assertEqual(self.clock.getDelayedCalls(), [])


def event(key: bytes, revision: int, **more: Any) -> dict[str, Any]:
    """Return an event."""
    return {"kv": {"key": text(key), "create_revision": "1", "mod_revision": str(revision)}, **more}


def message(**result: Any) -> bytes:
    """Return a message of a watch."""
    return json.dumps({"result": {"header": HEADER, **result}}).encode() + b"\n"


class FollowTests(FakeGatewayCase):
    """Watches over the gateway."""

    def follow(self) -> tuple[Any, list[WatchResponse], list[Any], Callable[[bytes], object]]:
        """Begin a watch; return it, its messages, its end, and the receiver of data."""
        messages: list[WatchResponse] = []
        ends: list[Any] = []
        watch = self.client.follow(WatchRequest(KeySet(b"k"), 5, True, ("NOPUT",)), messages.append, ends.append, 3.0)
        return watch, messages, ends, self.transport.streams[-1][2]

    @given(st.lists(st.integers(0, 2000)))
    def test_fragments(self, places: list[int]) -> None:
        """Messages are complete, however the data is fragmented."""
        self.setUp()
        _, messages, ends, receive = self.follow()
        deletion = event(b"k", 6, type="DELETE", prev_kv={"key": text(b"k"), "mod_revision": "5", "value": text(b"v")})
        data = message(created=True) + message(events=[event(b"k", 5), deletion]) + message(fragment=True, events=[])
        for piece in cut(data, places):
            receive(piece)
        changes = [
            [(one.key, one.mod_revision, one.deleted, one.previous and one.previous.value) for one in found.changes]
            for found in messages
        ]
        self.assertEqual(changes, [[], [(b"k", 5, False, None), (b"k", 6, True, b"v")], []])
        self.assertEqual(([found.partial for found in messages], ends), ([False, False, True], []))
        self.assertEqual(
            self.transport.streams[0][0]["create_request"],
            {"key": text(b"k"), "start_revision": 5, "prev_kv": True, "filters": ["NOPUT"], "fragment": True},
        )

    def test_ends(self) -> None:
        """Compactions are messages; errors of the stream, nonsense and its end are ends, which are reported once."""
        _, messages, ends, receive = self.follow()
        receive(message(canceled=True, compact_revision="9", cancel_reason="old"))
        self.assertEqual((messages[0].canceled, messages[0].compacted, messages[0].reason), (True, 9, "old"))
        for data, kind in (
            (b'{"error":{"code":14,"message":"no leader"}}\n', RPCError),
            (b"nonsense\n", ProtocolError),
            (b'{"other":5}\n', ProtocolError),
            (message(events=[{"kv": 5}]), ProtocolError),
            (message(events=[event(b"k", 5, type="OTHER")]), ProtocolError),
            (message(events=[event(b"", 5)]), ProtocolError),
        ):
            before = self.transport.ended
            _, messages, ends, receive = self.follow()
            receive(data + message(created=True))
            self.assertEqual((messages, len(ends), self.transport.ended), ([], 1, before + 1))
            self.assertIsInstance(ends[0], kind)
        _, _, ends, _ = self.follow()
        self.transport.streams[-1][1].callback(None)
        self.assertEqual(ends, [None])
        _, _, ends, _ = self.follow()
        self.transport.streams[-1][1].errback(NoResponse("lost"))
        self.assertIsInstance(ends[0], NoResponse)
        assert self.transport.refused is not None
        self.assertEqual(self.transport.refused(503, b"").code, UNAVAILABLE)  # type: ignore[attr-defined]

    def test_failing_receiver(self) -> None:
        """An error of the receiver ends the watch."""
        ends: list[Any] = []

        def receive(message: WatchResponse) -> None:
            raise ValueError("x")

        self.client.follow(WatchRequest(ALL_KEYS, 1), receive, ends.append, 3.0)
        self.transport.streams[-1][2](message(created=True))
        self.assertIn("failed to handle the response: ValueError('x')", str(ends[0]))

    def test_timeout(self) -> None:
        """A watch without a first message ends; afterwards it may be silent."""
        _, _, ends, receive = self.follow()
        self.clock.advance(3.0)
        self.assertIsInstance(ends[0], ResponseTimeout)
        _, _, ends, receive = self.follow()
        receive(message(created=True))
        self.clock.advance(100.0)
        self.assertEqual((ends, self.clock.getDelayedCalls()), ([], []))

    def test_stop(self) -> None:
        """A stopped watch ends its connection and receives nothing."""
        watch, messages, ends, receive = self.follow()
        watch.stop()
        watch.stop()
        receive(message(created=True))
        self.assertEqual((messages, ends, self.transport.ended, self.clock.getDelayedCalls()), ([], [], 1, []))


class LineReaderTests(SynchronousTestCase):
    """Tests for L{LineReader}."""

    @given(st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b""))), st.lists(st.integers(0, 99)))
    def test_lines(self, lines: list[bytes], places: list[int]) -> None:
        """Lines are complete, however they are fragmented; empty ones are omitted."""
        reader = LineReader(100)
        found = [line for piece in cut(b"".join(line + b"\n" for line in lines), places) for line in reader.feed(piece)]
        self.assertEqual(found, [line for line in lines if line.strip()])

    def test_limit(self) -> None:
        """A line over the limit is rejected, whether it is complete or not."""
        for pieces in ([b"123456"], [b"123", b"456"], [b"123", b"456\n"], [b"123456\n"]):
            reader = LineReader(5)
            with self.assertRaises(ProtocolError):
                for piece in pieces:
                    reader.feed(piece)
        self.assertEqual(LineReader(5).feed(b"12345\n"), [b"12345"])
