"""Tests for reads of etcd's past, with a member that sends given events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import PastChange
from kubetwist.storage.errors import RevisionCompacted
from kubetwist.storage.etcd._history import read_past
from kubetwist.storage.etcd._values import EtcdKeyValue, WatchEvent, WatchRequest, WatchResponse


class SendingMember:
    """A member that sends the same messages to each watch; also the client that has only this member."""

    def __init__(self, *messages: list[WatchEvent]) -> None:
        self.members = [self]
        self.reactor = Clock()
        self.requests: list[WatchRequest] = []
        self._messages = messages

    def pick_member(self) -> SendingMember:
        """Return this member."""
        return self

    def follow(
        self,
        request: WatchRequest,
        receive: Callable[[WatchResponse], object],
        end: Callable[[Exception | None], object],
        timeout: float,
    ) -> SendingMember:
        """Send all messages in the next turn."""
        self.requests.append(request)
        for message in self._messages:
            self.reactor.callLater(0, receive, WatchResponse(list(message)))
        return self

    def stop(self) -> None:
        """Ignore the end of a watch."""


def put(key: bytes, value: bytes, created: int, revision: int, previous: bytes | None = None) -> WatchEvent:
    """Return the event of a write of C{key}, which exists since the revision C{created}."""
    event = WatchEvent(key, value, None, created, revision)
    if previous is not None:
        event.previous = EtcdKeyValue(key, previous)
    return event


def deletion(key: bytes, revision: int, previous: bytes | None = None) -> WatchEvent:
    """Return the event of a deletion."""
    event = WatchEvent(key, None, None, 0, revision)
    event.deleted = True
    if previous is not None:
        event.previous = EtcdKeyValue(key, previous)
    return event


class ReadPastTests(SynchronousTestCase):
    """Tests for L{read_past}."""

    def _read(self, member: SendingMember) -> Deferred[Any]:
        client: Any = member
        reading = Deferred.fromCoroutine(read_past(client, "/r/", 4, 9, 100, 1 << 20))
        member.reactor.advance(0)
        return reading

    def test_changes(self) -> None:
        """Changes have the value before; creations have none; events of foreign keys only show the progress."""
        member = SendingMember(
            [put(b"/r/a", b"1", 5, 5), put(b"/r/a", b"2", 5, 6, b"1")],
            [put(b"/q/a", b"x", 1, 7), deletion(b"/r/a", 8, b"2")],
            [put(b"/q/a", b"y", 1, 9)],
        )
        history = self.successResultOf(self._read(member))
        self.assertEqual(
            (history.changes, history.revision),
            (
                [
                    PastChange("/r/a", b"1", 5, None),
                    PastChange("/r/a", b"2", 6, b"1"),
                    PastChange("/r/a", None, 8, b"2"),
                ],
                9,
            ),
        )
        self.assertEqual([request.return_previous for request in member.requests], [True])

    def test_compacted_revision_requested(self) -> None:
        """The first revision is the last one that is known: etcd refuses it if the next one is compacted."""
        following = [put(b"/q/a", b"x", 1, revision) for revision in range(6, 10)]
        member = SendingMember([put(b"/r/b", b"0", 1, 4), put(b"/r/a", b"1", 5, 5)], following)
        history = self.successResultOf(self._read(member))
        self.assertEqual((history.changes, history.revision), ([PastChange("/r/a", b"1", 5, None)], 9))
        self.assertEqual([request.start_revision for request in member.requests], [4])

    def test_missing_event(self) -> None:
        """Events without one of each revision are not complete: a missing one counts as compacted."""
        messages = [put(b"/r/a", b"1", 5, 5)], [put(b"/q/a", b"x", 1, 6)], [put(b"/r/b", b"1", 8, 8)]
        error = self.failureResultOf(self._read(SendingMember(*messages)), RevisionCompacted).value
        self.assertEqual((error.revision, error.oldest), (4, 7))

    def test_previous_value_compacted(self) -> None:
        """A deletion or an update without the value before is not skipped or shown as a creation: it is compacted."""
        first = put(b"/r/a", b"1", 5, 5)
        for event in (deletion(b"/r/a", 6), put(b"/r/a", b"2", 5, 6)):
            with self.subTest(deleted=event.deleted):
                error = self.failureResultOf(self._read(SendingMember([first, event])), RevisionCompacted).value
                self.assertEqual((error.revision, error.oldest), (4, 6))
