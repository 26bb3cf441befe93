"""Reads of etcd's past: the compacted revision, and the changes since a revision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twisted.internet.defer import CancelledError, Deferred

from ...api.storage import (
    UNKNOWN_REVISION,
    History,
    PastChange,
    StorageEvent,
)
from ..errors import (
    RevisionCompacted,
    StorageUnavailable,
)
from ._errors import RPCError
from ._values import (
    ALL_KEYS,
    FIRST_KEY,
    WatchEvent,
    WatchRequest,
    key_bytes,
    key_text,
)
from ._watch import (
    EtcdWatch,
    WatchLost,
)
from .client import (
    TIMED_OUT,
    EtcdClient,
)

#: The timeout for reading the past, in seconds.
HISTORY_TIMEOUT: Final = 30.0


async def changes_between(client: EtcdClient, revision: int, until: int) -> list[WatchEvent]:
    """
    Return all changes after C{revision}, up to C{until}, of all keys.

    @raise WatchLost: The changes are unavailable, perhaps because they are compacted.
    """
    found: list[WatchEvent] = []

    def take(changes: list[WatchEvent]) -> bool:
        found.extend(change for change in changes if change.mod_revision <= until)
        return changes[-1].mod_revision >= until

    await _watch_until(client, revision, take)
    return found


async def _watch_until(
    client: EtcdClient, revision: int, take: Callable[[list[WatchEvent]], bool], *, previous: bool = False
) -> None:
    """
    Watch the changes of all keys after C{revision}, for a while.

    @param take: Called with all changes of a revision at once; returns whether it has enough.
    @param client: The client.
    @param revision: Only later changes are read.
    @param previous: Whether changes contain the previous values.
    @raise WatchLost: They cannot be read, for example since they are compacted.
    """
    done: Deferred[None] = Deferred()

    def receive(changes: list[WatchEvent]) -> None:
        if not done.called and take(changes):
            watch.stop()
            done.callback(None)

    member = client.pick_member()
    assert member is not None, "there are members"
    request = WatchRequest(ALL_KEYS, revision + 1, previous)
    watch = EtcdWatch(member, client.reactor, request, receive, done.errback, complete=True)
    impatient = client.reactor.callLater(HISTORY_TIMEOUT, done.cancel)
    try:
        await done
    except CancelledError:
        watch.stop()
        raise WatchLost(TIMED_OUT) from None
    except WatchLost as lost:
        if not lost.compacted:
            member.mark_unhealthy(str(lost))
        raise
    finally:
        if impatient.active():
            impatient.cancel()


async def read_history(client: EtcdClient, prefix: str, revision: int, until: int) -> list[StorageEvent]:
    """
    Return the changes below C{prefix} after C{revision}, up to C{until}.

    @raise RevisionCompacted: It is compacted.
    @raise StorageUnavailable: No member responds.
    """
    for attempt in range(len(client.members) + 1):
        try:
            changes = await changes_between(client, revision, until)
            start = key_bytes(prefix)
            return [
                StorageEvent(
                    key_text(change.key),
                    change.new_value,
                    change.mod_revision,
                    0 if change.created else UNKNOWN_REVISION,
                )
                for change in changes
                if change.key.startswith(start)
            ]
        except WatchLost as lost:
            if lost.compacted:
                raise RevisionCompacted(revision, lost.compacted) from None
            if attempt == len(client.members):
                raise StorageUnavailable(str(lost)) from None
    raise AssertionError("there are members")


async def read_past(
    client: EtcdClient, prefix: str, after: int, until: int, max_changes: int, max_bytes: int
) -> History:
    """
    Read changes below C{prefix}, see L{kubetwist.interfaces.IStorageHistory.read_changes}.

    All keys are watched: the event of a revision then shows that the earlier ones are complete. etcd reads a previous
    value when it sends the event, and sends the event without it if it is compacted by then. Such an
    event does not show what was deleted or changed, so that it counts as compacted, as in kube-apiserver.

    @raise RevisionCompacted: Changes after C{after} are compacted.
    @raise StorageUnavailable: No member responds.
    """
    past_changes: list[PastChange] = []
    reached, remaining_bytes = after, max_bytes
    compacted = 0
    start = key_bytes(prefix)

    def receive(changes: list[WatchEvent]) -> bool:
        nonlocal reached, remaining_bytes, compacted
        for change in changes:
            if change.mod_revision > reached:
                if change.mod_revision > until:
                    reached = until
                    return True
                if past_changes and (len(past_changes) >= max_changes or remaining_bytes <= 0):
                    return True
                reached = change.mod_revision
            if change.key.startswith(start):
                if change.previous is None and not change.created:
                    compacted = change.mod_revision
                    return True
                former = None if change.previous is None else change.previous.value or b""
                past_changes.append(PastChange(key_text(change.key), change.new_value, change.mod_revision, former))
                remaining_bytes -= len(change.value or b"") + len(former or b"")
        return reached >= until

    for attempt in range(len(client.members) + 1):
        try:
            await _watch_until(client, reached, receive, previous=True)
        except WatchLost as lost:
            if lost.compacted:
                raise RevisionCompacted(after, lost.compacted) from None
            if attempt == len(client.members):
                raise StorageUnavailable(str(lost)) from None
        else:
            break
    if compacted:
        raise RevisionCompacted(after, compacted)
    return History(past_changes, reached)


async def find_compacted(client: EtcdClient) -> int:
    """
    Return the oldest revision that can be read; 0 before the first compaction.

    @raise StorageUnavailable: No member responds.
    """
    try:
        await client.get(FIRST_KEY, revision=1)
        return 0
    except RPCError as error:
        if not error.compacted:
            raise StorageUnavailable(str(error)) from None
    for _ in range(len(client.members) + 1):
        try:
            # A watch from the first revision is answered with the compacted one.
            await changes_between(client, 0, 1)
        except WatchLost as lost:
            if lost.compacted:
                return lost.compacted
    raise StorageUnavailable("etcd did not report its compacted revision")
