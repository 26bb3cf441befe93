"""
The single watch of all keys in etcd: it continues at its revision on another member when its member fails.

It watches every key, also those that other programs write. So each revision of the store comes with an event, and an
event shows that all earlier events were received: progress requests are not needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from ._connection import Stream
from ._grpc import Member
from ._messages import (
    WatchEvent,
    WatchResponse,
    read_watch,
)
from .client import EtcdClient

#: The timeout for the start of a watch on a member, in seconds.
BEGIN_TIMEOUT: Final = 3.0
#: Seconds until a lost watch is retried, after an immediate first retry: the first delay, and the maximum.
RETRY_FIRST: Final = 0.1
RETRY_MAX: Final = 2.0


class WatchLost(Exception):
    """The watch ended; C{compacted} is the oldest revision available, if that is the reason."""

    def __init__(self, reason: str, compacted: int = 0) -> None:
        super().__init__(reason)
        self.compacted = compacted


class EtcdWatch:
    """
    A watch on one member, until it ends.

    @ivar created: Whether the member has confirmed the watch.
    """

    def __init__(
        self,
        client: EtcdClient,
        member: Member,
        revision: int,
        receive: Callable[[list[WatchEvent]], object],
        ended: Callable[[WatchLost], object],
        *,
        former: bool = False,
    ) -> None:
        """
        @param revision: Only later changes are sent.
        @param receive: Called with changes in the order of their revisions, all of a revision at once.
        @param ended: Called once, unless L{stop} is called.
        @param former: Whether changes contain the previous values.
        """
        self.created = False
        self._receive = receive
        self._ended: Callable[[WatchLost], object] | None = ended
        self._revision = revision
        self._held: list[WatchEvent] = []
        self._stream: Stream | None = None
        beginning = True

        def end(error: Exception | None) -> None:
            lost = WatchLost("it was ended" if error is None else str(error))
            if beginning:
                # The caller does not expect the end before this returns.
                member.reactor.callLater(0, self._end, lost)
            else:
                self._end(lost)

        self._stream = client.watch_from(member, revision + 1, self._data, end, BEGIN_TIMEOUT, former)
        beginning = False

    def stop(self) -> None:
        """Stop receiving."""
        self._ended = None
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.stop()

    def _data(self, data: bytes) -> None:
        self._message(read_watch(data))

    def _message(self, message: WatchResponse) -> None:
        if message.canceled or message.compacted:
            reason = message.reason or ("compacted" if message.compacted else "canceled")
            self._end(WatchLost(reason, message.compacted))
            return
        self.created = True
        changes = message.changes
        if self._held:
            changes = [*self._held, *changes]
            self._held = []
        if message.partial and changes:
            # The rest of the last revision may be in the next message.
            last = changes[-1].revision
            self._held = [change for change in changes if change.revision == last]
            changes = changes[: -len(self._held)]
        if changes and changes[0].revision <= self._revision:
            changes = [change for change in changes if change.revision > self._revision]
        if changes:
            self._revision = changes[-1].revision
            self._receive(changes)

    def _end(self, lost: WatchLost) -> None:
        ended = self._ended
        self.stop()
        if ended is not None:
            ended(lost)


class ResumableWatch:
    """
    Follows all changes, over any member that can be reached.

    @ivar revision: The revision up to which all changes were received.
    """

    _log = Logger()

    def __init__(
        self,
        client: EtcdClient,
        reactor: IReactorTime,
        receive: Callable[[list[WatchEvent]], object],
        compacted: Callable[[int], object],
    ) -> None:
        """
        @param receive: Called with changes, each exactly once, all of a revision at once, in order.
        @param compacted: Called when changes after C{revision} are compacted, so that they are lost. Following has
            ended then.
        """
        self.revision = 0
        self._client = client
        self._reactor = reactor
        self._receive = receive
        self._compacted = compacted
        self._watch: EtcdWatch | None = None
        self._member: Member | None = None
        self._retry: IDelayedCall | None = None
        self._delay = 0.0
        self._lost_at: float | None = None

    def start(self, revision: int) -> None:
        """Begin with the changes after C{revision}."""
        self.stop()
        self.revision = revision
        self._begin()

    def stop(self) -> None:
        """Stop receiving."""
        if self._retry is not None and self._retry.active():
            self._retry.cancel()
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()

    def retry_other_member(self, reason: str) -> None:
        """Continue on another member, if there is one, as the watch lags behind."""
        if self._watch is not None:
            self._watch.stop()
            self._lost(WatchLost(reason))

    def _begin(self) -> None:
        member = self._client.pick_member()
        assert member is not None, "there are members"
        self._member = member
        self._watch = EtcdWatch(self._client, member, self.revision, self._changes, self._lost)

    def _changes(self, changes: list[WatchEvent]) -> None:
        self.revision = changes[-1].revision
        if self._lost_at is not None or self._delay:
            self._recovered()
        self._receive(changes)

    def _recovered(self) -> None:
        if self._lost_at is not None and self._member is not None:
            self._log.info("watching etcd at {member} again", member=self._member.address.url)
        self._lost_at = None
        self._delay = 0.0

    def _lost(self, lost: WatchLost) -> None:
        watch, self._watch = self._watch, None
        if lost.compacted:
            self._compacted(lost.compacted)
            return
        member = self._member
        if member is not None:
            member.mark_unhealthy(str(lost))
            if self._lost_at is None:
                self._log.warn("lost the watch of etcd at {member}: {reason}", member=member.address.url, reason=lost)
        if watch is not None and watch.created:
            self._recovered()
        if self._lost_at is None:
            self._lost_at = self._reactor.seconds()
        delay = self._delay
        self._delay = min(max(delay * 2, RETRY_FIRST), RETRY_MAX)
        self._retry = self._reactor.callLater(delay, self._begin)
