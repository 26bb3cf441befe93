"""What is asked of etcd about the past: which of it is forgotten, and what happened since a revision."""

from __future__ import annotations

from typing import Final

from twisted.internet.defer import CancelledError, Deferred

from .errors import RevisionCompacted, StorageUnavailable
from .etcdclient import TIMED_OUT, EtcdClient
from .etcderrors import RPCError
from .etcdmessages import FIRST_KEY, Change
from .etcdwatch import EtcdWatch, WatchLost
from .values import SOME, StorageEvent

#: Seconds that reading the past may take.
PATIENCE: Final = 30.0


async def changes_between(client: EtcdClient, revision: int, until: int) -> list[Change]:
    """
    All that changed after C{revision}, up to C{until}, anywhere.

    @raise WatchLost: They can not be told; perhaps since they are forgotten.
    """
    done: Deferred[list[Change]] = Deferred()
    found: list[Change] = []

    def receive(changes: list[Change]) -> None:
        found.extend(change for change in changes if change.revision <= until)
        if changes[-1].revision >= until and not done.called:
            watch.stop()
            done.callback(found)

    member = client.choose()
    assert member is not None, "there are members"
    watch = EtcdWatch(client, member, revision, receive, done.errback)
    impatient = client._reactor.callLater(PATIENCE, done.cancel)
    try:
        return await done
    except CancelledError:
        watch.stop()
        raise WatchLost(TIMED_OUT) from None
    except WatchLost as lost:
        if not lost.compacted:
            member.suspect(str(lost))
        raise
    finally:
        if impatient.active():
            impatient.cancel()


async def read_history(client: EtcdClient, prefix: str, revision: int, until: int) -> list[StorageEvent]:
    """
    What changed below C{prefix} after C{revision}, up to C{until}.

    @raise RevisionCompacted: It is forgotten.
    @raise StorageUnavailable: No member can tell.
    """
    for attempt in range(len(client.members) + 1):
        try:
            changes = await changes_between(client, revision, until)
            return [
                StorageEvent(change.key, change.value, change.revision, 0 if change.created else SOME)
                for change in changes
                if change.key.startswith(prefix)
            ]
        except WatchLost as lost:
            if lost.compacted:
                raise RevisionCompacted(revision, lost.compacted) from None
            if attempt == len(client.members):
                raise StorageUnavailable(str(lost)) from None
    raise AssertionError("there are members")


async def find_compacted(client: EtcdClient) -> int:
    """
    The oldest revision that can still be read; 0 while nothing is forgotten.

    @raise StorageUnavailable: No member can tell.
    """
    try:
        await client.range(FIRST_KEY, revision=1)
        return 0
    except RPCError as error:
        if not error.compacted:
            raise StorageUnavailable(str(error)) from None
    for _ in range(len(client.members) + 1):
        try:
            # Whoever watches from the beginning is told where that is now.
            await changes_between(client, 0, 1)
        except WatchLost as lost:
            if lost.compacted:
                return lost.compacted
    raise StorageUnavailable("etcd does not tell what it has compacted")
