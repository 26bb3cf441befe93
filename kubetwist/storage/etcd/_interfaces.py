"""
The interface of a client of one member, which each transport provides.

It is not in L{kubetwist.interfaces}, since its types are txaioetcd's, which is an optional requirement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from txaioetcd import Deleted, Header, KeySet, Lease, OpGet, Range, Revision, Status, Success, Transaction

from twisted.internet.defer import Deferred
from zope.interface import Attribute, Interface

from ._metrics import EtcdMetrics
from ._values import LeaseTimeToLive, WatchRequest, WatchResponse
from .address import Address


class IEtcdStream(Interface):
    """A watch of one member."""

    def stop() -> None:
        """End it; its callbacks are not called any more. Idempotent."""


class IGatewayTransport(Interface):
    """
    The connections to a member over HTTP/1.1.

    Requests fail with L{NotSent} if they were certainly not sent, with L{ResponseTimeout} or another L{NoResponse} if
    the response is incomplete.
    """

    def post(path: str, body: bytes, timeout: float) -> Deferred[tuple[int, bytes]]:
        """
        Send a POST request with JSON.

        @param timeout: Seconds until the response is complete.
        @return: Fires with the status and the body of the response.
        """

    def stream(
        path: str, body: bytes, receive: Callable[[bytes], object], refused: Callable[[int, bytes], Exception]
    ) -> Deferred[None]:
        """
        Send a POST request with JSON whose response has no end.

        @param path: The path.
        @param body: The body of the request.
        @param receive: Called with each piece of the response; raises no error.
        @param refused: Returns the error for a response with another status than 200, and its body.
        @return: Fires when the response ends; cancelling it ends the connection.
        """

    def close() -> None:
        """Close all connections. Idempotent."""


class IEtcdMember(Interface):
    """
    A client of one member: operations of txaioetcd's C{Client}, with its types, and operations that it lacks.

    Every operation takes the timeout in seconds, and fails with an error of L{kubetwist.storage.etcd._errors}:
    L{NotSent} if the member certainly did not apply it, L{RPCError} if it was refused, L{NoResponse} if its outcome
    is unknown, L{ProtocolError} if the response cannot be read.
    """

    address: Address = Attribute("The host and port.")
    unhealthy_since: float | None = Attribute("When it failed to respond, or None while it is healthy.")

    def mark_unhealthy(reason: str) -> None:
        """Prefer other members, until this one responds."""

    def mark_healthy() -> None:
        """Note that it responds."""

    def close() -> None:
        """Close the connections; calls under way get no response."""

    def status(timeout: float | None = None) -> Deferred[Status]:
        """Return the status."""

    def set(
        key: bytes,
        value: bytes,
        lease: Lease | None = None,
        return_previous: bool | None = None,
        timeout: float | None = None,
    ) -> Deferred[Revision]:
        """
        Write a key.

        @param key: The key.
        @param value: The value.
        @param lease: The lease of the key.
        @param return_previous: Whether the result has the key before the write.
        @param timeout: In seconds.
        """

    def delete(
        key: bytes | KeySet, return_previous: bool | None = None, timeout: float | None = None
    ) -> Deferred[Deleted]:
        """
        Delete keys.

        @param return_previous: Whether the result has the deleted keys.
        """

    def submit(txn: Transaction, timeout: float | None = None) -> Deferred[Success]:
        """
        Apply a transaction.

        @raise Failed: Its comparisons do not hold; its C{failure} operations were applied.
        """

    def lease(time_to_live: int, lease_id: int | None = None, timeout: float | None = None) -> Deferred[Lease]:
        """
        Grant a lease.

        @param time_to_live: In seconds.
        @param lease_id: The id; by default etcd chooses it.
        """

    def read(op: OpGet, timeout: float | None = None) -> Deferred[Range]:
        """Read keys, with all options of C{OpGet}; their values are L{EtcdKeyValue}."""

    def revision(timeout: float | None = None, urgent: bool = False) -> Deferred[int]:
        """
        Return the newest revision of the store, by any writer.

        @param urgent: Whether to write the request at once, without waiting for more calls of this turn.
        """

    def compact(revision: int, timeout: float | None = None) -> Deferred[Header]:
        """Remove the history before a revision."""

    def lease_time_to_live(
        lease_id: int, keys: bool = False, timeout: float | None = None
    ) -> Deferred[LeaseTimeToLive]:
        """
        Return the rest of a lease.

        @param keys: Whether the result has its keys.
        """

    def revoke_lease(lease_id: int, timeout: float | None = None) -> Deferred[Header]:
        """Revoke a lease, and delete its keys."""

    def keep_lease_alive(lease_id: int, timeout: float | None = None) -> Deferred[LeaseTimeToLive]:
        """Restart the time to live of a lease."""

    def follow(
        request: WatchRequest,
        receive: Callable[[WatchResponse], object],
        end: Callable[[Exception | None], object],
        timeout: float,
    ) -> IEtcdStream:
        """
        Watch keys.

        @param request: The keys.
        @param receive: Called with each message.
        @param end: Called once at the end, perhaps before this returns: with an error, or L{None}.
        @param timeout: Seconds until the first message.
        """


#: Creates the client of a member: with the address, a function that checks its health later, and the metrics.
MemberFactory: TypeAlias = Callable[[Address, Callable[[IEtcdMember], object], EtcdMetrics], IEtcdMember]
