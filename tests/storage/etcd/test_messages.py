"""Tests for L{kubetwist.storage.etcd._messages}, with messages of the tables in C{descriptors}."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from txaioetcd import (
    CompCreated,
    CompModified,
    CompValue,
    CompVersion,
    Failed,
    KeySet,
    Lease,
    OpDel,
    OpGet,
    OpSet,
    Success,
    Transaction,
)

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.etcd._errors import ProtocolError
from kubetwist.storage.etcd._messages import (
    encode_compaction,
    encode_delete,
    encode_get,
    encode_lease,
    encode_lease_grant,
    encode_set,
    encode_transaction,
    encode_watch,
    read_delete,
    read_header,
    read_lease_grant,
    read_lease_time_to_live,
    read_range,
    read_set,
    read_status,
    read_transaction,
    read_watch,
    scan,
)
from kubetwist.storage.etcd._values import ALL_KEYS, WatchRequest, WatchResponse
from tests.storage.etcd.answers import keys, text

from .descriptors import decode, encode

revisions = st.integers(1, (1 << 63) - 1)


values = st.binary(max_size=300)


READERS = (
    read_range,
    read_set,
    read_delete,
    read_transaction,
    read_watch,
    read_header,
    read_status,
    read_lease_grant,
    read_lease_time_to_live,
)


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


class ResponseTests(SynchronousTestCase):
    """Decoding of responses."""

    @given(st.lists(st.tuples(keys, values, revisions, st.integers(-(1 << 63), (1 << 63) - 1))), revisions)
    def test_range(self, result: list[tuple[bytes, bytes, int, int]], revision: int) -> None:
        """A range has keys with values, revisions and leases, the number of keys, and the revision of the store."""
        kvs = [stored(key, value, 1, at, lease) for key, value, at, lease in result]
        response = encode("RangeResponse", {"header": header(revision), "kvs": kvs, "count": 99})
        found = read_range(response)
        self.assertEqual(
            [(one.key, one.value or b"", one.mod_revision, one.lease or 0, one.version) for one in found.kvs],
            [(*one, 1) for one in result],
        )
        self.assertEqual((found.count, found.header.revision, read_header(response).revision), (99, revision, revision))
        self.assertEqual(
            (found.header.cluster_id, found.header.member_id, found.header.raft_term), (2**64 - 1, 2**63, 3)
        )

    @given(st.lists(st.one_of(st.none(), revisions), max_size=5), revisions)
    def test_failed(self, result: list[int | None], revision: int) -> None:
        """A transaction whose comparisons do not hold raises C{Failed} with the results of its other operations."""
        ranges = [
            {"response_range": {"header": header(revision), "kvs": [] if at is None else [stored(b"k", b"", 1, at)]}}
            for at in result
        ]
        response = encode("TxnResponse", {"header": header(revision), "responses": ranges})
        with self.assertRaises(Failed) as caught:
            read_transaction(response)
        found = [[one.mod_revision for one in part.kvs] for part in caught.exception.responses]
        self.assertEqual(found, [[] if at is None else [at] for at in result])
        self.assertEqual(caught.exception.header.revision, revision)

    def test_success(self) -> None:
        """A transaction has the results of its operations; malformed ones are rejected when they are read."""
        operations = [
            {"response_put": {"header": header(8), "prev_kv": stored(b"a", b"1", 2, 3)}},
            {"response_delete_range": {"header": header(8), "deleted": 2, "prev_kvs": [stored(b"b", b"", 4, 5)]}},
            {"response_range": {"header": header(8), "count": 0}},
        ]
        done = read_transaction(
            encode("TxnResponse", {"header": header(8), "succeeded": True, "responses": operations})
        )
        self.assertIsInstance(done, Success)
        put, deleted, found = done.responses
        self.assertEqual((put.previous.value, put.previous.mod_revision, put.header.revision), (b"1", 3, 8))
        self.assertEqual((deleted.deleted, [one.key for one in deleted.previous], found.kvs), (2, [b"b"], []))
        damaged = read_transaction(block(1, b"\x18\x05") + b"\x10\x01" + block(3, b""))
        self.assertEqual(damaged.header.revision, 5)
        with self.assertRaises(ProtocolError):
            damaged.responses  # noqa: B018

    def test_other_results(self) -> None:
        """Results of single operations, of leases and of the status have txaioetcd's attributes."""
        head = header(7)
        put = read_set(encode("PutResponse", {"header": head}))
        self.assertEqual((put.header.revision, put.previous), (7, None))
        deleted = read_delete(encode("DeleteRangeResponse", {"header": head}))
        self.assertEqual((deleted.deleted, deleted.previous), (0, []))
        granted = encode("LeaseGrantResponse", {"header": head, "ID": "-3", "TTL": "5"})
        self.assertEqual(read_lease_grant(granted)[1:], (5, -3))
        rest = encode("LeaseTimeToLiveResponse", {"header": head, "TTL": "-1", "keys": [text(b"a"), ""]})
        self.assertEqual(
            (read_lease_time_to_live(rest).remaining, read_lease_time_to_live(rest).keys), (-1, [b"a", b""])
        )
        numbers = {"dbSize": "12", "leader": str(2**64 - 1), "raftIndex": "4", "raftTerm": "6"}
        status = read_status(encode("StatusResponse", {"header": head, "version": "3.6.0", **numbers}))
        self.assertEqual(
            (status.version, status.db_size, status.leader, status.raft_index, status.raft_term),
            ("3.6.0", 12, 2**64 - 1, 4, 6),
        )

    def message(self, *parts: bytes) -> WatchResponse:
        """Return a watch response."""
        return read_watch(block(1, encode("ResponseHeader", header(9))) + b"".join(parts))

    def test_events(self) -> None:
        """Events have the value, the revision, and whether the key was created or deleted."""
        put = block(2, encode("KeyValue", stored(b"/a", b"v", 7, 7)))
        change = b"\x08\x00" + block(2, encode("KeyValue", stored(b"/a", b"", 7, 8)))
        deletion = b"\x08\x01" + block(2, encode("KeyValue", {"key": text(b"/\xff"), "mod_revision": 9}))
        deletion += block(3, encode("KeyValue", stored(b"/\xff", b"old", 2, 6)))
        message = self.message(*(block(11, event) for event in (put, change, deletion)))
        self.assertEqual(
            [(one.key, one.value, one.new_value, one.mod_revision, one.created) for one in message.changes],
            [
                (b"/a", b"v", b"v", 7, True),
                (b"/a", None, b"", 8, False),
                (b"/\xff", None, None, 9, False),
            ],
        )
        previous = [one.previous and (one.previous.value, one.previous.mod_revision) for one in message.changes]
        self.assertEqual(previous, [None, None, (b"old", 6)])

    def test_other_messages(self) -> None:
        """A watch is created, fragmented, and canceled, perhaps because its revision is compacted."""

        def state(response: WatchResponse) -> tuple[object, ...]:
            return response.changes, response.canceled, response.partial, response.compacted, response.reason

        self.assertEqual(state(self.message(b"\x18\x01")), ([], False, False, 0, ""))
        self.assertEqual(state(self.message(b"\x38\x01")), ([], False, True, 0, ""))
        ended = self.message(b"\x20\x01\x28\x05", block(6, b"gr\xc3\xbcn"))
        self.assertEqual(state(ended), ([], True, False, 5, "grün"))
        self.assertEqual(state(read_watch(b"")), ([], False, False, 0, ""))

    def test_unknown_fields(self) -> None:
        """Unknown fields of later versions are ignored."""
        new = b"\xa0\x06\x05" + b"\xa5\x06" + bytes(4) + b"\xa1\x06" + bytes(8) + b"\xa2\x06\x01x"
        response = block(1, encode("ResponseHeader", header(9)) + new) + new
        self.assertEqual((read_header(response).revision, read_range(response).kvs), (9, []))

    def test_nonsense(self) -> None:
        """Invalid messages are rejected."""
        head = block(1, b"\x18\x05")
        for reader, response in (
            (read_header, b""),
            (read_header, block(1, b"")),
            (read_range, block(2, block(1, b"k"))),
            (read_range, head + block(2, block(1, b"k"))),
            (read_range, head + block(2, b"\x18\x05")),
            (read_set, b""),
            (read_delete, b""),
            (read_status, b""),
            (read_lease_grant, head),
            (read_lease_time_to_live, b""),
            (read_transaction, head + block(3, b"")),
            (read_transaction, head + block(3, block(4, b""))),
            (read_transaction, b"\x10\x01"),
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
        """Any bytes are decoded or raise L{ProtocolError}."""
        for read in READERS:
            with contextlib.suppress(ProtocolError, Failed):
                read(data)

    @given(st.data())
    def test_damaged(self, data: st.DataObject) -> None:
        """A damaged response is decoded or raises L{ProtocolError}; a truncated one has no event."""
        event = block(2, encode("KeyValue", stored(b"/a", b"v" * 20, 300, 70_000)))
        complete = block(1, encode("ResponseHeader", header(1 << 40))) + block(11, event)
        where = data.draw(st.integers(0, len(complete) - 1))
        damaged = complete[:where] + data.draw(st.binary(max_size=3)) + complete[where + 1 :]
        for read in READERS:
            with contextlib.suppress(ProtocolError, Failed):
                read(damaged)
        with contextlib.suppress(ProtocolError):
            self.assertEqual(read_watch(complete[:where]).changes, [])

    def test_scan(self) -> None:
        """Fields are only found in the message that they belong to."""
        self.assertEqual(scan(b"xx\x08\x01yy", 2, 4), [(8, 1, 0)])


numbers = st.integers(-(1 << 63), (1 << 63) - 1)
sets = st.one_of(
    st.builds(KeySet, keys),
    st.builds(KeySet, keys, range_end=keys),
    # txaioetcd cannot increment a last byte of 255.
    st.builds(KeySet, keys.filter(lambda key: key[-1] < 255), prefix=st.just(True)),
)
comparisons = st.one_of(
    st.builds(kind, keys, st.sampled_from(["==", "!=", "<", ">"]), of)
    for kind, of in ((CompVersion, numbers), (CompCreated, numbers), (CompModified, numbers), (CompValue, values))
)
switches = st.sampled_from([None, False, True])
limits = st.one_of(st.none(), numbers)
gets = st.builds(
    OpGet,
    sets,
    switches,
    switches,
    limits,
    limits,
    limits,
    limits,
    limits,
    switches,
    st.sampled_from([None, *OpGet.SORT_ORDERS]),
    st.sampled_from([None, *OpGet.SORT_TARGETS]),
)
leases = st.one_of(st.none(), st.integers(1, (1 << 63) - 1).map(lambda number: Lease(None, None, 5, number)))
operations = st.lists(
    st.one_of(gets, st.builds(OpSet, keys, values, leases, switches), st.builds(OpDel, sets, switches)), max_size=4
)


class RequestTests(SynchronousTestCase):
    """Encoding of requests."""

    @given(st.builds(Transaction, st.lists(comparisons, max_size=3), operations, operations))
    def test_transactions(self, txn: Transaction) -> None:
        """A transaction is encoded as by txaioetcd and the gateway."""
        expected = decode("TxnRequest", encode("TxnRequest", txn._marshal()))
        self.assertEqual(decode("TxnRequest", encode_transaction(txn)), expected)

    def test_extended_classes(self) -> None:
        """Subclasses of operations and comparisons are encoded like their base class; other objects are rejected."""

        class Absent(CompModified):  # type: ignore[misc]
            def __init__(self, key: bytes) -> None:
                super().__init__(key, "==", 0)

        txn = Transaction(compare=[Absent(b"k")])
        same = Transaction(compare=[CompModified(b"k", "==", 0)])
        self.assertEqual(encode_transaction(txn), encode_transaction(same))
        txn.success = [object()]
        with self.assertRaises(TypeError):
            encode_transaction(txn)

    def test_prefixes(self) -> None:
        """The end of a prefix is the next key that does not begin with it."""
        for prefix, end in ((b"/a", b"/b"), (b"/a\xff\xff", b"/b"), (b"\xff", b"\0"), (b"", b"\0")):
            message = decode("RangeRequest", encode_get(OpGet(KeySet(prefix, prefix=True))))
            self.assertEqual(message.get("range_end"), text(end))

    def test_other_requests(self) -> None:
        """Requests for single operations, leases, compactions and watches have etcd's fields."""
        self.assertEqual(decode("PutRequest", encode_set(OpSet(b"k", b""))), {"key": text(b"k")})
        self.assertEqual(
            decode("DeleteRangeRequest", encode_delete(OpDel(b"k", True))), {"key": text(b"k"), "prev_kv": True}
        )
        self.assertEqual(decode("LeaseGrantRequest", encode_lease_grant(5, None)), {"TTL": "5"})
        self.assertEqual(decode("LeaseTimeToLiveRequest", encode_lease(7, True)), {"ID": "7", "keys": True})
        self.assertEqual(encode_compaction(300), b"\x08\xac\x02")
        watch = decode("WatchRequest", encode_watch(WatchRequest(ALL_KEYS, 133)))["create_request"]
        every = {"key": text(b"\0"), "range_end": text(b"\0")}
        self.assertEqual(watch, {**every, "start_revision": "133", "fragment": True})
        filtered = encode_watch(WatchRequest(KeySet(b"k"), 1, True, ("NOPUT", "NODELETE")))
        self.assertEqual(
            decode("WatchRequest", filtered)["create_request"],
            {
                "key": text(b"k"),
                "start_revision": "1",
                "prev_kv": True,
                "filters": text(b"\0\1"),
                "fragment": True,
            },
        )
