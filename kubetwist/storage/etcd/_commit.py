"""
Writes to etcd as transactions, and recovery of the outcome of writes without a response.

A transaction that compares a revision greater than 0 is repeatable: after any write of its key, the comparison never
holds again. A create is not repeatable, since the new key may be deleted in between and created again by a late
request. A transaction without comparisons is not repeatable either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import txaioetcd
from txaioetcd import CompModified, CompVersion, Failed, Lease, OpDel, OpGet, OpSet, Range, Success, Transaction

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

from ...api.storage import Write
from ..errors import (
    KeyExists,
    KeyNotFound,
    OutcomeUnknown,
    RevisionConflict,
    StorageError,
    StorageUnavailable,
)
from ._errors import (
    NoResponse,
    NotSent,
    ProtocolError,
    RPCError,
)
from ._interfaces import IEtcdMember
from ._leases import Leases
from ._methods import WRITE_TIMEOUT
from ._values import key_bytes
from .client import (
    TIMED_OUT,
    EtcdClient,
    NoMemberReachable,
)

#: Seconds until the outcome of a write must be known.
COMMIT_TIMEOUT: Final = 10.0
#: Seconds to wait for the event of a write that got no response and cannot be sent again.
EVENT_TIMEOUT: Final = 5.0
#: Seconds between two attempts when no member can be reached.
RETRY_INTERVAL: Final = 0.25


class Commit:
    """
    A transaction.

    @ivar response: The result for the caller.
    @ivar outcome_unknown: Whether it was sent without getting a response.
    @ivar matched: The revision of an event with the value of this write; 0 if there was none since it was sent.
    """

    __slots__ = (
        "blockers",
        "done",
        "followers",
        "matched",
        "on_match",
        "outcome_unknown",
        "response",
        "started_at",
        "writes",
    )

    def __init__(self, writes: Sequence[Write]) -> None:
        self.writes = writes
        self.started_at = 0.0
        self.response: Deferred[int] = Deferred()
        self.outcome_unknown = False
        self.matched = 0
        self.on_match: Deferred[None] | None = None
        #: Earlier writes of the same keys that are not answered yet.
        self.blockers = 0
        self.followers: list[Commit] = []
        self.done: list[Deferred[None]] = []

    def when_finished(self) -> Deferred[None]:
        """Return a Deferred that fires when the write is answered, with success or failure."""
        when_finished: Deferred[None] = Deferred()
        self.done.append(when_finished)
        return when_finished

    @property
    def repeatable(self) -> bool:
        """Return whether repeated sending applies it at most once."""
        return any(write.expected for write in self.writes)

    @property
    def identifiable_by_event(self) -> bool:
        """Return whether an event with its value can only be from this write."""
        return any(write.unique for write in self.writes)


def make_transaction(writes: Sequence[Write], lease: Lease | None = None) -> Transaction:
    """
    Return a transaction that writes if all preconditions hold, and else reads the keys.

    The deleted key must exist.

    @param lease: The lease of keys with a time to live.
    """
    compare, success, failure = [], [], []
    for write in writes:
        key = key_bytes(write.key)
        if write.expected is not None:
            compare.append(CompModified(key, "==", write.expected))
        if write.value is None:
            if not write.expected:
                compare.append(CompVersion(key, ">", 0))
            success.append(OpDel(key))
        else:
            success.append(OpSet(key, write.value, None if write.ttl is None else lease))
        failure.append(OpGet(key, keys_only=True))
    # Found at the time of the call, so that programs can replace the class.
    return txaioetcd.Transaction(compare, success, failure if compare else None)


def existing_revisions(failed: Failed) -> list[int]:
    """
    Return the revisions of the keys of a transaction whose preconditions do not hold; 0 for absent keys.

    @raise ProtocolError: The response does not match the transaction.
    """
    revisions = []
    for found in failed.responses:
        if not isinstance(found, Range):
            raise ProtocolError("etcd sent a response that does not match the transaction")
        revisions.append(found.kvs[0].mod_revision if found.kvs else 0)
    return revisions


def conflict_error(writes: Sequence[Write], revisions: Sequence[int], revision: int) -> StorageError:
    """Return the conflict of a transaction, from the revisions found; 0 for absent keys."""
    for write, existing in zip(writes, revisions, strict=True):
        if not existing:
            if write.expected or write.value is None:
                return KeyNotFound(write.key, revision)
        elif write.expected == 0:
            return KeyExists(write.key, existing)
        elif write.expected is not None and write.expected != existing:
            return RevisionConflict(write.key, existing)
    return StorageUnavailable("etcd rejected a write whose preconditions hold")


class Committer:
    """Sends transactions. Transactions of the same key are sent one at a time, in the order of submission."""

    def __init__(
        self, client: EtcdClient, reactor: IReactorTime, leases: Leases, written: Callable[[int], Deferred[bool]]
    ) -> None:
        """
        @param written: Called with a written revision; fires when observers have all events up to it, or after
            a timeout: with whether they have them.
        """
        self._client = client
        self._reactor = reactor
        self._leases = leases
        self._written = written
        #: The newest commit of each key.
        self._tails: dict[str, Commit] = {}
        #: The writes sent and not answered yet, by key.
        self._sent: dict[str, tuple[Commit, Write]] = {}
        self._all: set[Commit] = set()
        #: Counts the restarts of the watch, during which events may be missed.
        self.watch_restarts = 0

    def submit(self, writes: Sequence[Write]) -> Deferred[int]:
        """Commit as L{kubetwist.interfaces.IStorageBackend.commit}."""
        commit = Commit(writes)
        tails = self._tails
        for write in writes:
            before = tails.get(write.key)
            tails[write.key] = commit
            if before is not None and commit not in before.followers:
                before.followers.append(commit)
                commit.blockers += 1
        self._all.add(commit)
        if not commit.blockers:
            self._send(commit)
        return commit.response

    def in_progress(self) -> list[Commit]:
        """Return the commits that are not answered yet."""
        return list(self._all)

    def attachment(self, key: str, value: bytes | None, revision: int) -> object:
        """Return the attachment of the writer of a change, if this server wrote it."""
        sent = self._sent.get(key)
        if sent is None:
            return None
        commit, write = sent
        if write.value != value:
            return None
        if not commit.matched:
            commit.matched = revision
            if commit.on_match is not None:
                on_match, commit.on_match = commit.on_match, None
                on_match.callback(None)
        return write.attachment

    # --- sending

    def _send(self, commit: Commit) -> None:
        commit.started_at = self._reactor.seconds()
        for write in commit.writes:
            self._sent[write.key] = (commit, write)
        if any(write.ttl is not None and write.value is not None for write in commit.writes):
            self._start_recovery(commit, None)
            return
        member = self._client.pick_member()
        assert member is not None, "there are members"
        timeout = self._client.retry_timeout if commit.repeatable else WRITE_TIMEOUT
        member.submit(make_transaction(commit.writes), timeout).addCallbacks(
            self._applied, self._not_applied, callbackArgs=(commit, member), errbackArgs=(commit, member)
        )

    def _applied(self, success: Success, commit: Commit, member: IEtcdMember) -> None:
        member.mark_healthy()
        self._done(commit, success.header.revision)

    def _not_applied(self, failure: Failure, commit: Commit, member: IEtcdMember) -> None:
        self._start_recovery(commit, self._note_outcome(member, failure.value))

    def _note_outcome(self, member: IEtcdMember, error: BaseException | None) -> BaseException | None:
        """Note what an error shows about a member; return the error."""
        if isinstance(error, Failed):
            member.mark_healthy()
        elif not isinstance(error, (NotSent, RPCError)):
            self._client.report_failure(member, error)
        return error

    def _done(self, commit: Commit, revision: int) -> None:
        self._written(revision).addCallback(lambda _: self._finish(commit, revision))

    def _finish(self, commit: Commit, result: int | Failure) -> None:
        for write in commit.writes:
            key = write.key
            if self._tails.get(key) is commit:
                del self._tails[key]
            sent = self._sent.get(key)
            if sent is not None and sent[0] is commit:
                del self._sent[key]
        self._all.discard(commit)
        commit.response.callback(result)
        for when_finished in commit.done:
            when_finished.callback(None)
        for follower in commit.followers:
            follower.blockers -= 1
            if not follower.blockers:
                self._send(follower)

    # --- recovery of unknown outcomes

    def _start_recovery(self, commit: Commit, outcome: object) -> None:
        resolution = Deferred.fromCoroutine(self._resolve(commit, outcome))
        resolution.addBoth(lambda result: self._finish(commit, result))

    async def _resolve(self, commit: Commit, outcome: object) -> int:
        """
        Determine the outcome of a transaction.

        @param outcome: The first attempt's error; L{None} when there was none.
        @return: The revision of the transaction.
        @raise StorageError: It is refused, was never sent, or its outcome is unknown (L{OutcomeUnknown}).
        """
        watch_restarts = self.watch_restarts
        lease: Lease | None = None
        tried: list[IEtcdMember] = []
        leases_lost = 0
        while True:
            if isinstance(outcome, Success):
                revision: int = outcome.header.revision
                await self._written(revision)
                return revision
            if isinstance(outcome, Failed):
                raise await self._conflict_error(commit, outcome, watch_restarts)
            if isinstance(outcome, RPCError):
                if "lease not found" in outcome.message and leases_lost < 2:
                    self._leases.forget(lease)
                    lease, leases_lost, tried = None, leases_lost + 1, []
                elif not outcome.uncertain:
                    self._raise_if_outcome_unknown(commit, outcome)
                    raise StorageUnavailable(str(outcome))
                else:
                    commit.outcome_unknown = True
            elif isinstance(outcome, NotSent):
                pass
            elif outcome is not None:
                commit.outcome_unknown = True
            if commit.outcome_unknown and not commit.repeatable:
                return await self._wait_for_own_event(commit)
            if self._reactor.seconds() - commit.started_at >= COMMIT_TIMEOUT:
                raise OutcomeUnknown(TIMED_OUT) if commit.outcome_unknown else StorageUnavailable(TIMED_OUT)
            if lease is None and any(write.ttl is not None for write in commit.writes):
                lease = await self._leases.lease(max(write.ttl or 0 for write in commit.writes))
            member = self._client.pick_member(tried)
            if member is None:
                if not commit.outcome_unknown:
                    raise NoMemberReachable(str(outcome))
                tried = []
                await deferLater(self._reactor, RETRY_INTERVAL)
                continue
            tried.append(member)
            outcome = await self._attempt(commit, member, lease)

    async def _attempt(self, commit: Commit, member: IEtcdMember, lease: Lease | None) -> object:
        """Send a transaction; return the result or the error."""
        timeout = self._client.retry_timeout if commit.repeatable else WRITE_TIMEOUT
        try:
            return await member.submit(make_transaction(commit.writes, lease), timeout)
        except (Failed, NotSent, RPCError, NoResponse, ProtocolError) as error:
            return self._note_outcome(member, error)

    def _raise_if_outcome_unknown(self, commit: Commit, error: RPCError) -> None:
        """Raise if an earlier attempt got no response: the refusal of a later one does not decide it."""
        if commit.outcome_unknown:
            raise OutcomeUnknown(str(error))

    async def _conflict_error(self, commit: Commit, failed: Failed, watch_restarts: int) -> StorageError:
        """Return the error for a transaction whose comparison failed."""
        observed = await self._written(failed.header.revision)
        if commit.outcome_unknown and (commit.matched or self.watch_restarts != watch_restarts or not observed):
            # An earlier attempt of this commit may have made the change.
            return OutcomeUnknown(TIMED_OUT)
        try:
            return conflict_error(commit.writes, existing_revisions(failed), failed.header.revision)
        except ProtocolError as error:
            return error
        except ValueError:
            return ProtocolError("etcd sent a response that does not match the transaction")

    async def _wait_for_own_event(self, commit: Commit) -> int:
        """Wait for the event of a write that must not be sent again."""
        if not commit.identifiable_by_event:
            raise OutcomeUnknown(TIMED_OUT)
        if not commit.matched:
            commit.on_match = Deferred()
            timeout_call = self._reactor.callLater(EVENT_TIMEOUT, commit.on_match.cancel)
            try:
                await commit.on_match
            except CancelledError:
                raise OutcomeUnknown(TIMED_OUT) from None
            finally:
                commit.on_match = None
                if timeout_call.active():
                    timeout_call.cancel()
        await self._written(commit.matched)
        return commit.matched
