"""Tests for L{kubetwist.storage.etcd._messages} and C{descriptors}."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from txaioetcd import CompModified, CompVersion, KeySet, OpDel, OpGet, OpSet, Transaction

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import (
    StoredValue,
    Write,
)
from kubetwist.storage.etcd._descriptors import (
    decode,
    encode,
)
from kubetwist.storage.etcd._errors import ProtocolError
from kubetwist.storage.etcd._messages import (
    FIRST_KEY,
    RangeResult,
    TxnResult,
    WatchEvent,
    WatchResponse,
    compaction_request,
    header_revision,
    key_bytes,
    key_text,
    range_request,
    read_outcome,
    read_range,
    read_watch,
    scan,
    transaction,
    watch_request,
)
from tests.storage.etcd.answers import keys, text

revisions = st.integers(1, (1 << 63) - 1)


values = st.binary(max_size=300)


READERS = (read_range, read_outcome, read_watch, header_revision)


def block(tag: int, content: bytes) -> bytes:
    """Return a field with a length below 128."""
    return bytes([tag << 3 | 2, len(content)]) + content


def header(revision: int) -> dict[str, str]:
    """Return the header of a response."""
    return {"cluster_id": str(2**64 - 1), "member_id": str(2**63), "revision": str(revision), "raft_term": "3"}


def stored(key: bytes, value: bytes, created: int, modified: int, lease: int = 0) -> dict[str, Any]:
    """Return a key-value message."""
    result = {"key": text(key), "value": text(value), "create_revision": created, "mod_revision": modified}
    return {**result, "version": 1, "lease": lease}


class AnswerTests(SynchronousTestCase):
    """Parsing of responses; the messages are encoded by C{descriptors}."""

    @given(st.lists(st.tuples(keys, values, revisions)), revisions, st.booleans())
    def test_range(self, result: list[tuple[bytes, bytes, int]], revision: int, more: bool) -> None:
        """A range has keys with values and revisions, and whether more keys follow."""
        kvs = [stored(key, value, 1, at, lease=5) for key, value, at in result]
        response = encode("RangeResponse", {"header": header(revision), "kvs": kvs, "more": more, "count": 99})
        expected = [StoredValue(key_text(key), value, at) for key, value, at in result]
        self.assertEqual(read_range(response), RangeResult(expected, revision, more))
        self.assertEqual([key_bytes(value.key) for value in expected], [key for key, _, _ in result])
        self.assertEqual(header_revision(response), revision)

    @given(st.lists(st.one_of(st.none(), revisions), max_size=5), revisions, st.booleans())
    def test_outcome(self, result: list[int | None], revision: int, succeeded: bool) -> None:
        """A transaction has whether it succeeded, and otherwise the existing revisions."""
        ranges = [
            {"response_range": {"header": header(revision), "kvs": [] if at is None else [stored(b"k", b"", 1, at)]}}
            for at in result
        ]
        done = [{"response_put": {"header": header(revision)}} for _ in result]
        response = encode(
            "TxnResponse",
            {"header": header(revision), "succeeded": succeeded, "responses": done if succeeded else ranges},
        )
        expected = [] if succeeded else [at or 0 for at in result]
        self.assertEqual(read_outcome(response), TxnResult(succeeded, revision, expected))

    def message(self, *parts: bytes) -> WatchResponse:
        """Return a watch response."""
        return read_watch(block(1, encode("ResponseHeader", header(9))) + b"".join(parts))

    def test_events(self) -> None:
        """Events have the value, the revision, and whether the key was created."""
        put = block(2, encode("KeyValue", stored(b"/a", b"v", 7, 7)))
        change = b"\x08\x00" + block(2, encode("KeyValue", stored(b"/a", b"", 7, 8)))
        deletion = b"\x08\x01" + block(2, encode("KeyValue", {"key": text(b"/\xff"), "mod_revision": 9}))
        message = self.message(*(block(11, event) for event in (put, change, deletion)))
        self.assertEqual(
            message,
            WatchResponse(
                [
                    WatchEvent("/a", b"v", 7, True),
                    WatchEvent("/a", b"", 8, False),
                    WatchEvent(key_text(b"/\xff"), None, 9, False),
                ]
            ),
        )

    def test_other_messages(self) -> None:
        """A watch is created, fragmented, and canceled, perhaps because its revision is compacted."""
        self.assertEqual(self.message(b"\x18\x01"), WatchResponse([], created=True))
        self.assertEqual(self.message(b"\x38\x01"), WatchResponse([], partial=True))
        ended = self.message(b"\x20\x01\x28\x05", block(6, b"gr\xc3\xbcn"))
        self.assertEqual(ended, WatchResponse([], canceled=True, compacted=5, reason="grün"))
        self.assertEqual(read_watch(b""), WatchResponse([]))

    def test_unknown_fields(self) -> None:
        """Unknown fields of later versions are ignored."""
        new = b"\xa0\x06\x05" + b"\xa5\x06" + bytes(4) + b"\xa1\x06" + bytes(8) + b"\xa2\x06\x01x"
        response = block(1, encode("ResponseHeader", header(9)) + new) + new
        self.assertEqual((header_revision(response), read_range(response)), (9, RangeResult([], 9, False)))

    def test_nonsense(self) -> None:
        """Invalid messages are rejected."""
        head = block(1, b"\x18\x05")
        for reader, response in (
            (header_revision, b""),
            (header_revision, block(1, b"")),
            (read_range, block(2, block(1, b"k"))),
            (read_range, head + block(2, block(1, b"k"))),
            (read_range, head + block(2, b"\x18\x05")),
            (read_outcome, head + block(3, b"")),
            (read_outcome, b"\x10\x01"),
            (read_watch, block(11, b"")),
            (read_watch, block(11, b"\x08\x02" + block(2, block(1, b"k") + b"\x18\x05"))),
            (read_watch, b"\x5a\x05a"),
            (read_watch, b"\x18"),
            (read_watch, b"\x18\xff"),
            (read_watch, b"\x18" + b"\xff" * 11),
            (read_watch, b"\x00\x00"),
            (read_watch, b"\x0b\x0c"),
            (read_watch, b"\x0f"),
            (read_watch, b"\x09\x00"),
            (read_watch, b"\x5a" + b"\xff" * 9 + b"\x01"),
        ):
            with self.assertRaises(ProtocolError, msg=response):
                reader(response)
        # A varint that begins within a length-delimited field, and ends after it.
        with self.assertRaises(ProtocolError):
            read_watch(block(11, b"\x08\x81") + b"\x01")

    @given(
        st.one_of(st.binary(max_size=80), st.lists(st.binary(max_size=6)).map(lambda parts: b"\x12\x06".join(parts)))
    )
    def test_any_bytes(self, data: bytes) -> None:
        """Any bytes are parsed or raise L{ProtocolError}."""
        for read in (*READERS, *(lambda data, name=name: decode(name, data) for name in ("TxnResponse", "KeyValue"))):
            with contextlib.suppress(ProtocolError):
                read(data)

    @given(st.data())
    def test_damaged(self, data: st.DataObject) -> None:
        """A damaged response is parsed or raises L{ProtocolError}; a truncated one is not a complete response."""
        event = block(2, encode("KeyValue", stored(b"/a", b"v" * 20, 300, 70_000)))
        complete = block(1, encode("ResponseHeader", header(1 << 40))) + block(11, event)
        where = data.draw(st.integers(0, len(complete) - 1))
        damaged = complete[:where] + data.draw(st.binary(max_size=3)) + complete[where + 1 :]
        for read in READERS:
            for response in (damaged, complete[:where]):
                try:
                    result = read(response)
                except ProtocolError:
                    continue
                if response is not damaged:
                    self.assertNotEqual(result, read_watch(complete))

    def test_scan(self) -> None:
        """Fields are only found in the message that they belong to."""
        self.assertEqual(scan(b"xx\x08\x01yy", 2, 4), [(8, 1, 0)])


class QuestionTests(SynchronousTestCase):
    """Encoding of requests; the messages are decoded by C{descriptors}."""

    def test_writes(self) -> None:
        """Expected revisions are compared, and deleted keys must exist; txaioetcd encodes the same."""
        writes = [Write("/new", b"n", 0), Write("/old", None, None), Write("/any", b"", None), Write("/at", b"a", 5)]
        names = [key_bytes(write.key) for write in writes]
        same = Transaction(
            compare=[
                CompModified(names[0], "==", 0),
                CompVersion(names[1], ">", 0),
                CompModified(names[3], "==", 5),
            ],
            success=[OpSet(names[0], b"n"), OpDel(names[1]), OpSet(names[2], b""), OpSet(names[3], b"a")],
            failure=[OpGet(KeySet(name), keys_only=True) for name in names],
        )
        self.assertEqual(
            decode("TxnRequest", transaction(writes)), decode("TxnRequest", encode("TxnRequest", same._marshal()))
        )

    def test_leases(self) -> None:
        """A key with a time to live has a lease; a write without precondition has no failure operations."""
        lease = (1 << 62) + 1
        result = decode("TxnRequest", transaction([Write("/a", b"v", None, ttl=5)], lambda write: lease))
        self.assertEqual(
            result, {"success": [{"request_put": {"key": text(b"/a"), "value": text(b"v"), "lease": str(lease)}}]}
        )

    @given(keys, st.one_of(st.just(b""), keys), st.integers(0, 1 << 40), st.integers(0, 1 << 62), st.booleans())
    def test_range(self, key: bytes, end: bytes, limit: int, revision: int, only: bool) -> None:
        """A range request has only the fields that differ from the defaults."""
        request = decode("RangeRequest", range_request(key, end, limit=limit, revision=revision, keys_only=only))
        expected: dict[str, Any] = {"key": text(key)}
        expected |= {"range_end": text(end)} if end else {}
        expected |= {"limit": str(limit)} if limit else {}
        expected |= {"revision": str(revision)} if revision else {}
        expected |= {"keys_only": True} if only else {}
        self.assertEqual(request, expected)

    def test_watch(self) -> None:
        """A watch covers all keys from a revision, and requests fragments."""
        create = block(1, FIRST_KEY) + block(2, FIRST_KEY) + b"\x18\x85\x01" + b"\x40\x01"
        self.assertEqual(watch_request(133), block(1, create))
        self.assertEqual(compaction_request(300), b"\x08\xac\x02")
