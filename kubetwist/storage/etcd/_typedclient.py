"""Methods of txaioetcd's client that lack arguments there, or handle errors wrongly."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

from txaioetcd import Client, KeySet, KeyValue, OpGet, Range

from twisted.internet.defer import Deferred, DeferredList, FirstError, fail
from twisted.internet.interfaces import IReactorTime

from ._interfaces import IEtcdMember
from ._metrics import EtcdMetrics
from ._values import WatchRequest
from ._watch import watch_keys


class TypedClient(Client):  # type: ignore[misc] # txaioetcd has no annotations
    """
    A C{txaioetcd.Client} whose reads have all options, and whose watches report why they end.

    @ivar reactor: The reactor.
    @ivar metrics: The metrics of its calls.
    """

    reactor: IReactorTime
    metrics: EtcdMetrics

    @abstractmethod
    def pick_member(self, without: Sequence[IEtcdMember] = ()) -> IEtcdMember | None:
        """Return the member to use next, best one first; L{None} when there is none except C{without}."""

    @abstractmethod
    def revision(self, timeout: float | None = None) -> Deferred[int]:
        """Return the newest revision of the store, by any writer: a linearizable read."""

    @abstractmethod
    def read(self, op: OpGet, timeout: float | None = None) -> Deferred[Range]:
        """See L{IEtcdMember.read}."""

    def stats(self) -> dict[str, dict[str, int]]:
        """Return the number of calls by method."""
        return {"posts": self.metrics.started()}

    def get(
        self,
        key: bytes | KeySet,
        range_end: bytes | None = None,
        count_only: bool | None = None,
        keys_only: bool | None = None,
        limit: int | None = None,
        max_create_revision: int | None = None,
        min_create_revision: int | None = None,
        min_mod_revision: int | None = None,
        revision: int | None = None,
        serializable: bool | None = None,
        sort_order: str | None = None,
        sort_target: str | None = None,
        timeout: float | None = None,
    ) -> Deferred[Range]:
        """
        Read keys.

        @param key: The key, or a set of keys.
        @param range_end: The end of the range that begins with the key, exclusive.
        @param count_only: Whether to return only the number of keys.
        @param keys_only: Whether to return no values.
        @param limit: Maximum number of keys.
        @param max_create_revision: Omit keys that were created later.
        @param min_create_revision: Omit keys that were created earlier.
        @param min_mod_revision: Omit keys that were written earlier.
        @param revision: The revision of the store; by default the newest one.
        @param serializable: Whether the member's state suffices, which may be older than the newest one.
        @param sort_order: C{"NONE"}, C{"ASCEND"} or C{"DESCEND"}.
        @param sort_target: C{"KEY"}, C{"VERSION"}, C{"CREATE"}, C{"MOD"} or C{"VALUE"}.
        @param timeout: In seconds.
        """
        try:
            if range_end and not isinstance(key, KeySet):
                key = KeySet(key, range_end=range_end)
            op = OpGet(
                key,
                count_only,
                keys_only,
                limit,
                max_create_revision,
                min_create_revision,
                min_mod_revision,
                revision,
                serializable,
                sort_order,
                sort_target,
            )
        except TypeError:
            return fail()
        return self.read(op, timeout)

    def _start_watching(
        self,
        keys: Sequence[bytes | KeySet],
        on_watch: Callable[[KeyValue], object],
        filters: Sequence[str] | None,
        start_revision: int | None,
        return_previous: bool | None,
    ) -> Deferred[object]:
        """
        Watch keys until the result is cancelled; see C{Client.watch}. A lost watch continues on another member.

        @param keys: The keys.
        @param on_watch: Called with a L{WatchEvent} for each change.
        @param filters: The kinds of events that are not sent.
        @param start_revision: The first revision; by default the next one.
        @param return_previous: Whether events have the key before the change.
        """
        requests = [
            WatchRequest(
                key if isinstance(key, KeySet) else KeySet(key),
                start_revision or 0,
                bool(return_previous),
                tuple(filters or ()),
            )
            for key in keys
        ]
        return Deferred.fromCoroutine(self._watch_all(requests, on_watch))

    async def _watch_all(self, requests: Sequence[WatchRequest], on_watch: Callable[[KeyValue], object]) -> None:
        following = [Deferred.fromCoroutine(watch_keys(self, request, on_watch)) for request in requests]
        try:
            await DeferredList(following, fireOnOneErrback=True, consumeErrors=True)
        except FirstError as first:
            first.subFailure.raiseException()
        finally:
            for watch in following:
                watch.cancel()
