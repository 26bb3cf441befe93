"""Tests for L{kubetwist.storage.remote._messages} and L{kubetwist.storage.remote._requests}."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from attrs import asdict
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import PastChange, StorageEvent, StoredValue, Write
from kubetwist.storage.remote import _messages as messages
from kubetwist.storage.remote import _requests as requests
from kubetwist.storage.remote._errors import ErrorFields
from kubetwist.storage.remote._frames import ProtocolError
from kubetwist.storage.remote._messages import Result, Welcome
from kubetwist.storage.remote._requests import Request

_revisions = st.integers(-1, 2**63 - 1)
_keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_texts = st.text(max_size=12)
_values = st.binary(max_size=30)
_numbers = st.integers(0, 2**32 - 1)
_writes = st.lists(
    st.builds(
        Write,
        _keys,
        st.none() | _values,
        st.none() | st.integers(0, 2**63 - 1),
        st.none() | st.floats(0, 1e9),
        st.sampled_from([b""]),
        st.booleans(),
    ),
    max_size=4,
)
_events = st.lists(st.builds(StorageEvent, _keys, st.none() | _values, _revisions, _revisions), max_size=4)
_errors = st.builds(ErrorFields, st.integers(1, 255), _revisions, _revisions, _texts, _texts)
_stored = st.lists(st.builds(StoredValue, _texts, _values, _revisions, _texts), max_size=4)
_changes = st.lists(
    st.builds(PastChange, _texts, st.none() | _values, _revisions, st.none() | _values, _texts), max_size=4
)
_requests = st.builds(
    Request, _numbers, st.integers(0, 255), _texts, _texts, st.tuples(_revisions, _revisions, _revisions, _revisions)
)
#: All functions that decode messages of another process.
_DECODERS: tuple[Callable[[bytes], Any], ...] = (
    messages.decode_hello,
    messages.decode_welcome,
    messages.decode_transactions,
    messages.decode_results,
    messages.decode_position,
    lambda payload: messages.decode_events(payload, _refuse),
    requests.decode_request,
    requests.decode_response,
    requests.decode_failure,
    requests.decode_number,
    requests.decode_page_part,
    requests.decode_changes,
    requests.decode_expirations,
)


def _refuse(number: int, index: int, revision: int) -> Write:
    raise ProtocolError("no such write")


class MessageTests(SynchronousTestCase):
    """Messages are the same on the other side."""

    def assert_same(self, found: Any, expected: Any) -> None:
        """Compare values of attrs classes."""
        self.assertEqual([asdict(one) for one in found], [asdict(one) for one in expected])

    @given(transactions=st.lists(st.tuples(_numbers, _writes), max_size=3))
    def test_transactions(self, transactions: list[tuple[int, list[Write]]]) -> None:
        """Transactions have their numbers and writes."""
        payload = b"".join(messages.encode_transaction(number, writes) for number, writes in transactions)
        found = messages.decode_transactions(payload)
        self.assertEqual([number for number, _ in found], [number for number, _ in transactions])
        for (_, decoded), (_, writes) in zip(found, transactions, strict=True):
            self.assert_same(decoded, writes)

    def test_unencodable_key(self) -> None:
        """A key that is no Unicode is not encoded."""
        with self.assertRaises(UnicodeEncodeError):
            messages.encode_transaction(1, [Write("/r/\ud800", b"", None)])

    @given(
        results=st.lists(
            st.builds(Result, _numbers, _revisions, st.none())
            | st.builds(Result, _numbers, st.sampled_from([0]), _errors),
            max_size=4,
        )
    )
    def test_results(self, results: list[Result]) -> None:
        """Results have their revision or their error."""
        self.assertEqual(messages.decode_results(b"".join(map(messages.encode_result, results))), results)

    @given(revision=_revisions, compacted=_revisions, events=_events)
    def test_events(self, revision: int, compacted: int, events: list[StorageEvent]) -> None:
        """Events have keys, values and revisions."""
        payload = messages.encode_position(revision, compacted) + b"".join(map(messages.encode_event, events))
        newest, oldest, found = messages.decode_events(payload, _refuse)
        self.assertEqual((newest, oldest), (revision, compacted))
        self.assert_same(found, events)

    def test_reference(self) -> None:
        """An event that refers to a write has its key, value and attachment."""
        mark = object()
        write = Write("/r/a", b"value", None, attachment=mark)
        asked: list[tuple[int, int, int]] = []

        def find(number: int, index: int, revision: int) -> Write:
            asked.append((number, index, revision))
            return write

        event = StorageEvent("/r/a", b"value", 7, 3)
        payload = messages.encode_position(7, 0) + messages.encode_reference(event, 5, 1)
        (found,) = messages.decode_events(payload, find)[2]
        self.assertEqual(asked, [(5, 1, 7)])
        self.assertEqual(
            (found.key, found.value, found.revision, found.previous, found.attachment), ("/r/a", b"value", 7, 3, mark)
        )

    @given(request=_requests)
    def test_requests(self, request: Request) -> None:
        """Requests have their method, texts and numbers."""
        self.assertEqual(requests.decode_request(requests.encode_request(request)), request)

    @given(number=_numbers, kind=st.sampled_from([requests.MORE, requests.LAST, requests.FAILED]), content=_values)
    def test_responses(self, number: int, kind: int, content: bytes) -> None:
        """Parts of responses have the number of their request."""
        payload = requests.encode_response(number, kind, content)
        self.assertEqual(requests.decode_response(payload), (number, kind, content))

    def test_unknown_part(self) -> None:
        """A response of an unknown kind is refused."""
        with self.assertRaises(ProtocolError):
            requests.decode_response(requests.encode_response(1, 3, b""))

    @given(error=_errors)
    def test_failures(self, error: ErrorFields) -> None:
        """A failed request has its error."""
        self.assertEqual(requests.decode_failure(requests.encode_failure(error)), error)

    def test_no_failure(self) -> None:
        """A failed request without an error is refused."""
        for content in (b"", messages.encode_result(Result(0, 7))):
            with self.assertRaises(ProtocolError):
                requests.decode_failure(content)

    @given(revision=_revisions, more=st.booleans(), items=_stored)
    def test_pages(self, revision: int, more: bool, items: list[StoredValue]) -> None:
        """Pages have their values, with their problems."""
        content = requests.encode_page_head(revision, more) + b"".join(map(requests.encode_stored_value, items))
        part = requests.decode_page_part(content)
        self.assertEqual((part.revision, part.more), (revision, more))
        self.assert_same(part.items, items)

    @given(revision=_revisions, changes=_changes)
    def test_changes(self, revision: int, changes: list[PastChange]) -> None:
        """Past changes have both values."""
        content = requests.encode_number(revision) + b"".join(map(requests.encode_change, changes))
        reached, found = requests.decode_changes(content)
        self.assertEqual(reached, revision)
        self.assert_same(found, changes)

    @given(expirations=st.dictionaries(_texts, st.floats(0, 1e12)))
    def test_expirations(self, expirations: dict[str, float]) -> None:
        """Keys have the times at which they expire."""
        content = b"".join(requests.encode_expirations(expirations))
        self.assertEqual(requests.decode_expirations(content), expirations)

    def test_beginning(self) -> None:
        """The first messages have the version, and the position of the server."""
        messages.decode_hello(messages.encode_hello())
        welcome = Welcome(2**64 - 1, True, 7, 3)
        self.assertEqual(messages.decode_welcome(messages.encode_welcome(welcome)), welcome)

    def test_other_version(self) -> None:
        """A peer with another version of the protocol is refused."""
        self.patch(messages, "VERSION", 2)
        hello, welcome = messages.encode_hello(), messages.encode_welcome(Welcome(1, True, 7, 3))
        self.patch(messages, "VERSION", 1)
        for decode, payload in ((messages.decode_hello, hello), (messages.decode_welcome, welcome)):
            with self.assertRaises(ProtocolError) as caught:
                decode(payload)
            self.assertIn("has version 2", str(caught.exception))


class MalformedTests(SynchronousTestCase):
    """Malformed messages."""

    @given(payload=st.binary(max_size=80), index=st.integers(0, len(_DECODERS) - 1))
    def test_random_bytes(self, payload: bytes, index: int) -> None:
        """Any bytes are decoded or refused, without another exception."""
        with contextlib.suppress(ProtocolError):
            _DECODERS[index](payload)

    @given(writes=_writes.filter(bool), data=st.data())
    def test_truncated_transaction(self, writes: list[Write], data: st.DataObject) -> None:
        """A transaction whose end is missing is refused."""
        payload = messages.encode_transaction(1, writes)
        with self.assertRaises(ProtocolError):
            messages.decode_transactions(payload[: data.draw(st.integers(1, len(payload) - 1))])

    def test_too_long(self) -> None:
        """Bytes after the end of a message are refused."""
        request = requests.encode_request(Request(1, 1, "/r/a"))
        for decode, payload in (
            (messages.decode_hello, messages.encode_hello()),
            (messages.decode_position, messages.encode_position(1, 1)),
            (requests.decode_request, request),
            (requests.decode_number, requests.encode_number(1)),
        ):
            with self.assertRaises(ProtocolError):
                decode(payload + b"x")

    def test_no_text(self) -> None:
        """A key that is not encoded in UTF-8 is refused."""
        payload = messages.encode_transaction(1, [Write("/r/abc", b"", None)])
        with self.assertRaises(ProtocolError):
            messages.decode_transactions(payload.replace(b"abc", b"\xff\xfe\xfd"))
