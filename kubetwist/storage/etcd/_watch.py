"""
The single watch of all keys in etcd: it continues at its revision on another member when its member fails.

It watches every key, also those that other programs write. So each revision of the store comes with an event, and an
event shows that all earlier events were received: progress requests are not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from typing import Protocol as TypingProtocol

from attrs import evolve
from txaioetcd import KeyValue

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from ._errors import OUT_OF_RANGE, UNKNOWN, RPCError
from ._interfaces import IEtcdMember, IEtcdStream
from ._values import (
    ALL_KEYS,
    WatchEvent,
    WatchRequest,
    WatchResponse,
)

#: The timeout for the start of a watch on a member, in seconds.
BEGIN_TIMEOUT: Final = 3.0
#: Seconds until a lost watch is retried, after an immediate first retry: the first delay, and the maximum.
RETRY_FIRST: Final = 0.1
RETRY_MAX: Final = 2.0


_log: Final = Logger()


class WatchingClient(TypingProtocol):
    """A client that watches: L{kubetwist.storage.etcd.client.EtcdClient}."""

    @property
    def reactor(self) -> IReactorTime:
        """The reactor."""

    def pick_member(self) -> IEtcdMember | None:
        """Return the member to use next."""

    def revision(self) -> Deferred[int]:
        """Return the newest revision of the store."""


class WatchLost(Exception):
    """
    The watch ended.

    @ivar compacted: The oldest revision available, if an older one was requested.
    @ivar canceled: Whether the member has refused it.
    """

    def __init__(self, reason: str, compacted: int = 0, *, canceled: bool = False) -> None:
        super().__init__(reason)
        self.compacted = compacted
        self.canceled = canceled


class EtcdWatch:
    """
    A watch on one member, until it ends.

    @ivar created: Whether the member has confirmed the watch.
    """

    def __init__(
        self,
        member: IEtcdMember,
        reactor: IReactorTime,
        request: WatchRequest,
        receive: Callable[[list[WatchEvent]], object],
        ended: Callable[[WatchLost], object],
        *,
        complete: bool = False,
    ) -> None:
        """
        @param member: The member.
        @param reactor: The reactor.
        @param request: The keys, and the first revision, which is greater than 0.
        @param receive: Called with changes in the order of their revisions, all of a revision at once.
        @param ended: Called once, unless L{stop} is called.
        @param complete: Whether the keys are all keys, so that each revision has an event. If one is missing, it counts
            as compacted: etcd before 3.4.32 and 3.5.13 skips the events between a slow watch and the compacted revision
            (etcd#17529).
        """
        self.created = False
        self._complete = complete
        self._receive = receive
        self._ended: Callable[[WatchLost], object] | None = ended
        self._revision = request.start_revision - 1
        self._held: list[WatchEvent] = []
        self._stream: IEtcdStream | None = None
        beginning = True

        def end(error: Exception | None) -> None:
            lost = WatchLost("it was ended" if error is None else str(error))
            if beginning:
                # The caller does not expect the end before this returns.
                reactor.callLater(0, self._end, lost)
            else:
                self._end(lost)

        if complete:
            # etcd before 3.4.36 and 3.5.18 accepts a watch that begins with the compacted revision, but has removed
            # the event if it was a deletion (etcd#19179). A watch from the revision before is refused.
            request = evolve(request, start_revision=max(request.start_revision - 1, 1))
        self._stream = member.follow(request, self._received, end, BEGIN_TIMEOUT)
        beginning = False

    def stop(self) -> None:
        """Stop receiving."""
        self._ended = None
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.stop()

    def _received(self, message: WatchResponse) -> None:
        if message.canceled or message.compacted:
            reason = message.reason or ("compacted" if message.compacted else "canceled")
            self._end(WatchLost(reason, message.compacted, canceled=True))
            return
        self.created = True
        changes = message.changes
        if self._held:
            changes = [*self._held, *changes]
            self._held = []
        if message.partial and changes:
            # The rest of the last revision may be in the next message.
            last = changes[-1].mod_revision
            self._held = [change for change in changes if change.mod_revision == last]
            changes = changes[: -len(self._held)]
        if changes and changes[0].mod_revision <= self._revision:
            changes = [change for change in changes if change.mod_revision > self._revision]
        gap = self._find_gap(changes) if self._complete else None
        following = changes if gap is None else changes[:gap]
        if following:
            self._revision = following[-1].mod_revision
            self._receive(following)
        if gap is not None:
            reached, found = self._revision, changes[gap].mod_revision
            self._end(WatchLost(f"the event after revision {reached} is of revision {found}", found - 1))

    def _find_gap(self, changes: Sequence[WatchEvent]) -> int | None:
        """Return the index of the first change that does not follow its predecessor; L{None} if all do."""
        # The first revision of a store has no event.
        reached = max(self._revision, 1)
        for index, change in enumerate(changes):
            if change.mod_revision > reached + 1:
                return index
            reached = change.mod_revision
        return None

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

    def __init__(
        self,
        client: WatchingClient,
        reactor: IReactorTime,
        receive: Callable[[list[WatchEvent]], object],
        compacted: Callable[[int], object],
    ) -> None:
        """
        @param client: Picks the member.
        @param reactor: The reactor.
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
        self._member: IEtcdMember | None = None
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
        request = WatchRequest(ALL_KEYS, self.revision + 1)
        self._watch = EtcdWatch(member, self._reactor, request, self._changes, self._lost, complete=True)

    def _changes(self, changes: list[WatchEvent]) -> None:
        self.revision = changes[-1].mod_revision
        if self._lost_at is not None or self._delay:
            self._recovered()
        self._receive(changes)

    def _recovered(self) -> None:
        if self._lost_at is not None and self._member is not None:
            _log.info("watching etcd at {member} again", member=self._member.address.url)
        self._lost_at = None
        self._delay = 0.0

    def _lost(self, lost: WatchLost) -> None:
        watch, self._watch = self._watch, None
        if lost.compacted:
            _log.warn("cannot continue the watch of etcd: {reason}", reason=lost)
            self._compacted(lost.compacted)
            return
        member = self._member
        if member is not None:
            member.mark_unhealthy(str(lost))
            if self._lost_at is None:
                _log.warn("lost the watch of etcd at {member}: {reason}", member=member.address.url, reason=lost)
        if watch is not None and watch.created:
            self._recovered()
        if self._lost_at is None:
            self._lost_at = self._reactor.seconds()
        delay = self._delay
        self._delay = min(max(delay * 2, RETRY_FIRST), RETRY_MAX)
        self._retry = self._reactor.callLater(delay, self._begin)


async def watch_keys(client: WatchingClient, request: WatchRequest, on_event: Callable[[KeyValue], object]) -> None:
    """
    Call C{on_event} with each change of keys, until this is cancelled.

    @param request: The keys, and the first revision; 0 for the next one.
    @raise RPCError: etcd refuses the watch, for example since the first revision is compacted.
    """
    following = request.start_revision or await client.revision() + 1
    delay = 0.0
    stopped = False

    def receive(changes: list[WatchEvent]) -> None:
        nonlocal following, delay
        following, delay = changes[-1].mod_revision + 1, 0.0
        for change in changes:
            if stopped:
                # The callback has cancelled the watch.
                return
            try:
                on_event(change)
            except Exception:
                _log.failure("the callback of a watch of etcd failed")

    try:
        while True:
            member = client.pick_member()
            assert member is not None, "there are members"
            await _watch_member(client, member, evolve(request, start_revision=following), receive)
            await deferLater(client.reactor, delay)
            delay = min(max(delay * 2, RETRY_FIRST), RETRY_MAX)
    finally:
        stopped = True


async def _watch_member(
    client: WatchingClient, member: IEtcdMember, request: WatchRequest, receive: Callable[[list[WatchEvent]], object]
) -> None:
    """
    Watch keys until the member is lost.

    @param client: The client.
    @param member: The member.
    @param request: The keys, and the first revision.
    @param receive: Called with changes.
    @raise RPCError: The member refuses the watch.
    """
    lost: Deferred[None] = Deferred()
    watch = EtcdWatch(member, client.reactor, request, receive, lost.errback)
    try:
        await lost
    except WatchLost as reason:
        if reason.canceled:
            code = OUT_OF_RANGE if reason.compacted else UNKNOWN
            raise RPCError(code, f"etcdserver: {reason}") from None
        member.mark_unhealthy(str(reason))
    finally:
        watch.stop()
