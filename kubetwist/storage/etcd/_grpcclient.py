"""A client of one member over gRPC, with txaioetcd's types and without its JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from txaioetcd import Deleted, Header, KeySet, Lease, OpDel, OpGet, OpSet, Range, Revision, Status, Success, Transaction

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from zope.interface import implementer

from ._connection import Stream
from ._errors import NoResponse
from ._grpc import Member
from ._interfaces import IEtcdMember
from ._messages import (
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
)
from ._methods import (
    COMPACT,
    DELETE_RANGE,
    LEASE_GRANT,
    LEASE_KEEP_ALIVE,
    LEASE_REVOKE,
    LEASE_TIME_TO_LIVE,
    PUT,
    RANGE,
    READ_TIMEOUT,
    REVISION_QUERY,
    STATUS,
    TXN,
    WATCH,
    WRITE_TIMEOUT,
)
from ._values import EtcdLease, LeaseTimeToLive, WatchRequest, WatchResponse

T = TypeVar("T")

_REVISION_MESSAGE: Final = encode_get(REVISION_QUERY)


def _read_revision(response: bytes) -> int:
    revision: int = read_header(response).revision
    return revision


@implementer(IEtcdMember)
class GRPCClient(Member):
    """L{IEtcdMember} over gRPC."""

    def status(self, timeout: float | None = None) -> Deferred[Status]:
        """See L{IEtcdMember.status}."""
        return self._request(STATUS, b"", timeout or READ_TIMEOUT, read_status)

    def set(
        self,
        key: bytes,
        value: bytes,
        lease: Lease | None = None,
        return_previous: bool | None = None,
        timeout: float | None = None,
    ) -> Deferred[Revision]:
        """See L{IEtcdMember.set}."""
        message = encode_set(OpSet(key, value, lease, return_previous))
        return self._request(PUT, message, timeout or WRITE_TIMEOUT, read_set)

    def delete(
        self, key: bytes | KeySet, return_previous: bool | None = None, timeout: float | None = None
    ) -> Deferred[Deleted]:
        """See L{IEtcdMember.delete}."""
        message = encode_delete(OpDel(key, return_previous))
        return self._request(DELETE_RANGE, message, timeout or WRITE_TIMEOUT, read_delete)

    def submit(self, txn: Transaction, timeout: float | None = None) -> Deferred[Success]:
        """See L{IEtcdMember.submit}."""
        return self._request(TXN, encode_transaction(txn), timeout or WRITE_TIMEOUT, read_transaction)

    def lease(self, time_to_live: int, lease_id: int | None = None, timeout: float | None = None) -> Deferred[Lease]:
        """See L{IEtcdMember.lease}."""

        def read(response: bytes) -> Lease:
            return EtcdLease(self, *read_lease_grant(response))

        return self._request(LEASE_GRANT, encode_lease_grant(time_to_live, lease_id), timeout or WRITE_TIMEOUT, read)

    def read(self, op: OpGet, timeout: float | None = None) -> Deferred[Range]:
        """See L{IEtcdMember.read}."""
        return self._request(RANGE, encode_get(op), timeout or READ_TIMEOUT, read_range)

    def revision(self, timeout: float | None = None, urgent: bool = False) -> Deferred[int]:
        """See L{IEtcdMember.revision}."""
        response = self.call_unary(RANGE, _REVISION_MESSAGE, timeout or READ_TIMEOUT, urgent)
        return response.addCallback(_read_revision)

    def compact(self, revision: int, timeout: float | None = None) -> Deferred[Header]:
        """See L{IEtcdMember.compact}."""
        return self._request(COMPACT, encode_compaction(revision), timeout or WRITE_TIMEOUT, read_header)

    def lease_time_to_live(
        self, lease_id: int, keys: bool = False, timeout: float | None = None
    ) -> Deferred[LeaseTimeToLive]:
        """See L{IEtcdMember.lease_time_to_live}."""
        message = encode_lease(lease_id, keys)
        return self._request(LEASE_TIME_TO_LIVE, message, timeout or READ_TIMEOUT, read_lease_time_to_live)

    def revoke_lease(self, lease_id: int, timeout: float | None = None) -> Deferred[Header]:
        """See L{IEtcdMember.revoke_lease}."""
        return self._request(LEASE_REVOKE, encode_lease(lease_id), timeout or WRITE_TIMEOUT, read_header)

    def keep_lease_alive(self, lease_id: int, timeout: float | None = None) -> Deferred[LeaseTimeToLive]:
        """See L{IEtcdMember.keep_lease_alive}."""
        # A stream of requests and responses, of which the first ones suffice.
        renewed: Deferred[LeaseTimeToLive] = Deferred(lambda _: stream.stop())

        def receive(message: bytes) -> None:
            renewal = read_lease_time_to_live(message)
            stream.stop()
            renewed.callback(renewal)

        def end(error: Exception | None) -> None:
            renewed.errback(Failure(error or NoResponse("the member closed the stream")))

        stream = self.stream(LEASE_KEEP_ALIVE, encode_lease(lease_id), receive, end, timeout or READ_TIMEOUT)
        return renewed

    def follow(
        self,
        request: WatchRequest,
        receive: Callable[[WatchResponse], object],
        end: Callable[[Exception | None], object],
        timeout: float,
    ) -> Stream:
        """
        See L{IEtcdMember.follow}.

        @param request: The keys.
        @param receive: Called with each message.
        @param end: Called once at the end.
        @param timeout: Seconds until the first message.
        """
        return self.stream(WATCH, encode_watch(request), lambda message: receive(read_watch(message)), end, timeout)

    def _request(self, path: bytes, message: bytes, timeout: float, read: Callable[[bytes], T]) -> Deferred[T]:
        """
        Send a request with a single response.

        @param path: The method.
        @param message: The request.
        @param timeout: In seconds.
        @param read: Decodes the response.
        """
        return self.call_unary(path, message, timeout).addCallback(read)
