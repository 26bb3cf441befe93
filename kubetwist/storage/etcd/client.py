"""
txaioetcd's client for all members of one etcd, with failover, timeouts, errors and the operations that it lacks.

Code that was written for C{txaioetcd.Client} runs on it. Members are clients of one member each, over gRPC
(L{kubetwist.storage.etcd._grpcclient}) or over the gateway for HTTP/1.1 (L{kubetwist.storage.etcd.gateway}).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from random import shuffle
from typing import Any, Final, TypeVar

from txaioetcd import (
    Deleted,
    Failed,
    Header,
    KeySet,
    Lease,
    OpGet,
    Range,
    Revision,
    Status,
    Success,
    Transaction,
)
from txaioetcd._client_commons import validate_client_lease_parameters

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IReactorTime
from twisted.internet.ssl import optionsForClientTLS
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from ...metrics.registry import MetricSnapshot
from ..errors import StorageUnavailable
from ._errors import (
    NoResponse,
    NotSent,
    ProtocolError,
    ResponseTimeout,
    RPCError,
)
from ._grpcclient import GRPCClient
from ._interfaces import IEtcdMember, MemberFactory
from ._methods import READ_TIMEOUT, WRITE_TIMEOUT
from ._metrics import EtcdMetrics
from ._typedclient import TypedClient
from ._values import EtcdLease, LeaseTimeToLive
from .address import Address

#: Seconds in which a read is repeated. A read that was sent to a lost leader gets no response; its repetition does.
READ_RETRY_TIMEOUT: Final = 10.0
RETRY_INTERVAL: Final = 0.1
#: The timeout per member of a write that can be sent to another one, in seconds.
RETRY_TIMEOUT: Final = 3.0
#: The timeout of a health check of an unhealthy member, in seconds.
HEALTH_CHECK_TIMEOUT: Final = 2.0

#: The text of the reference for a request without a response.
TIMED_OUT: Final = "etcdserver: request timed out"

T = TypeVar("T")


def grpc_members(
    reactor: IReactorTime, tls: Callable[[str], IOpenSSLClientConnectionCreator] | None = None
) -> MemberFactory:
    """
    Return a factory of members over gRPC.

    @param tls: Returns the options of a TLS connection for a host name.
    """
    return lambda address, check_health, metrics: GRPCClient(address, reactor, tls, check_health, metrics)


class NoMemberReachable(StorageUnavailable):
    """No member can be reached, so none has received the request."""

    def __init__(self, reason: str) -> None:
        super().__init__(f'rpc error: code = Unavailable desc = connection error: desc = "transport: {reason}"')


class WriteOutcomeUnknown(Exception):
    """A write may have been applied, or may still be."""


class EtcdClient(TypedClient):
    """
    A client of all members of one etcd.

    Requests are sent to one member as long as it responds. If it cannot be reached, they are sent to another member
    immediately. If it does not respond, only repeatable requests are sent to another member.

    Calls fail with L{RPCError}, which is txaioetcd's C{Error}, if etcd refuses a request; with L{NoMemberReachable} if
    nothing was applied since no member can be reached; with L{StorageUnavailable} if no member responds to a request
    that can be repeated; with L{WriteOutcomeUnknown} if a request that must not be repeated got no response.

    @ivar members: The members.
    @ivar reactor: The reactor.
    @ivar read_timeout: Seconds per member for a read.
    @ivar retry_timeout: Seconds per member for a write that can be sent again.
    @ivar metrics: The metrics of its calls.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: IReactorTime,
        addresses: Sequence[Address],
        make_member: MemberFactory,
        shuffle_members: bool = True,
    ) -> None:
        """
        @param reactor: The reactor.
        @param addresses: The addresses of the members.
        @param make_member: Creates the client of a member: L{grpc_members}, or C{gateway_members}.
        @param shuffle_members: Begin with a random member, so that several servers do not all use the same one.
        """
        if not addresses:
            raise ValueError("no etcd servers are named")
        super().__init__(reactor, addresses[0].url)
        self.reactor = reactor
        self.metrics = EtcdMetrics()
        self.members = [make_member(address, self._check_health, self.metrics) for address in addresses]
        if shuffle_members:
            shuffle(self.members)
        self._call_timeout: float | None = None
        several = len(self.members) > 1
        # With a single member, an early timeout has no use.
        self.read_timeout = READ_TIMEOUT if several else READ_RETRY_TIMEOUT
        self.retry_timeout = RETRY_TIMEOUT if several else WRITE_TIMEOUT

    @property
    def endpoints(self) -> str:
        """Return the members, for messages."""
        return ", ".join(sorted(member.address.url for member in self.members))

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return the metrics of the calls and of the members."""
        yield from self.metrics.collect()
        values = [((member.address.url,), float(member.unhealthy_since is None)) for member in self.members]
        text = "Whether a member of etcd has responded to the last request: 1 or 0."
        yield MetricSnapshot("kubetwist_etcd_member_healthy", "gauge", text, ("endpoint",), values)

    # --- members

    def pick_member(self, without: Sequence[IEtcdMember] = ()) -> IEtcdMember | None:
        """
        Return the member to use next, best one first; L{None} when there is none except C{without}.

        Of unhealthy members, it is the one that failed the longest ago.
        """
        best = None
        for member in self.members:
            if member in without:
                continue
            if member.unhealthy_since is None:
                return member
            if best is None or member.unhealthy_since < (best.unhealthy_since or 0.0):
                best = member
        return best

    def report_failure(self, member: IEtcdMember, reason: BaseException | None) -> None:
        """Record that a member did not respond; it is logged once."""
        if member.unhealthy_since is None:
            self._log.warn(
                "etcd member did not respond: member={member} error={reason}", member=member.address.url, reason=reason
            )
        member.mark_unhealthy(str(reason))

    def _check_health(self, member: IEtcdMember) -> None:
        """Check in the background whether an unhealthy member responds again."""

        def answered(revision: int) -> None:
            member.mark_healthy()

        def failed(failure: Failure) -> None:
            member.mark_unhealthy(failure.getErrorMessage())

        member.revision(HEALTH_CHECK_TIMEOUT).addCallbacks(answered, failed)

    def _call(
        self,
        operation: Callable[[IEtcdMember, float], Deferred[T]],
        timeout: float | None,
        *,
        repeatable: bool,
        finish: Callable[[T], Any] | None = None,
    ) -> Deferred[Any]:
        """
        Call a member, and other members if that fails.

        @param operation: Calls a member, with the timeout in seconds.
        @param timeout: In seconds, for each member; L{None} for the default.
        @param repeatable: Whether it can be called twice without harm.
        @param finish: Converts the result.
        """
        if timeout is None:
            timeout = self._call_timeout or (self.read_timeout if repeatable else WRITE_TIMEOUT)
        called = Deferred.fromCoroutine(self._try_members(operation, timeout, repeatable))
        return called if finish is None else called.addCallback(finish)

    async def _try_members(
        self, operation: Callable[[IEtcdMember, float], Deferred[T]], timeout: float, repeatable: bool
    ) -> T:
        tried: list[IEtcdMember] = []
        last_error: Exception = NoMemberReachable("no member")
        until = self.reactor.seconds() + READ_RETRY_TIMEOUT
        while True:
            member = self.pick_member(tried)
            if member is None:
                if isinstance(last_error, NoMemberReachable) or not repeatable or self.reactor.seconds() > until:
                    raise last_error
                tried.clear()
                last_error = NoMemberReachable("no member")
                await deferLater(self.reactor, RETRY_INTERVAL)
                continue
            tried.append(member)
            try:
                result = await operation(member, timeout)
                member.mark_healthy()
                return result
            except Failed:
                member.mark_healthy()
                raise
            except RPCError as rpc_error:
                error = rpc_error
            except NotSent as reason:
                if isinstance(last_error, NoMemberReachable):
                    last_error = NoMemberReachable(str(reason))
                continue
            except (NoResponse, ProtocolError) as reason:
                self.report_failure(member, reason)
                if not repeatable:
                    raise WriteOutcomeUnknown(str(reason)) from None
                timed_out = isinstance(reason, ResponseTimeout)
                last_error = StorageUnavailable(
                    TIMED_OUT if timed_out else f"rpc error: code = Unavailable desc = {reason}"
                )
                continue
            if not error.retry_other_member:
                raise error
            member.mark_unhealthy(str(error))
            if error.uncertain and not repeatable:
                raise WriteOutcomeUnknown(str(error))
            last_error = StorageUnavailable(str(error))

    # --- txaioetcd's methods

    def status(self, timeout: float | None = None) -> Deferred[Status]:
        """Return the status of a member."""
        return self._call(lambda member, seconds: member.status(seconds), timeout, repeatable=True)

    def set(
        self,
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
        return self._call(
            lambda member, seconds: member.set(key, value, lease, return_previous, seconds), timeout, repeatable=False
        )

    def read(self, op: OpGet, timeout: float | None = None) -> Deferred[Range]:
        """See L{IEtcdMember.read}."""
        return self._call(lambda member, seconds: member.read(op, seconds), timeout, repeatable=True)

    def delete(
        self, key: bytes | KeySet, return_previous: bool | None = None, timeout: float | None = None
    ) -> Deferred[Deleted]:
        """
        Delete keys.

        @param return_previous: Whether the result has the deleted keys.
        """
        return self._call(
            lambda member, seconds: member.delete(key, return_previous, seconds), timeout, repeatable=False
        )

    def submit(self, txn: Transaction, timeout: float | None = None) -> Deferred[Success]:
        """
        Apply a transaction.

        @raise Failed: Its comparisons do not hold; its C{failure} operations were applied.
        """
        return self._call(lambda member, seconds: member.submit(txn, seconds), timeout, repeatable=False)

    def lease(self, time_to_live: int, lease_id: int | None = None, timeout: float | None = None) -> Deferred[Lease]:
        """
        Grant a lease.

        @param time_to_live: In seconds.
        @param lease_id: The id; by default etcd chooses it.
        """

        def grant(member: IEtcdMember, seconds: float) -> Deferred[Lease]:
            validate_client_lease_parameters(time_to_live, lease_id)
            return member.lease(time_to_live, lease_id, seconds)

        def finish(lease: Lease) -> Lease:
            return EtcdLease(self, lease.header, lease.time_to_live, lease.lease_id)

        # A second lease that is not used does no harm; a second one with the same id is refused.
        return self._call(grant, timeout, repeatable=lease_id is None, finish=finish)

    # --- additions to txaioetcd

    def revision(self, timeout: float | None = None) -> Deferred[int]:
        """Return the newest revision of the store, by any writer: a linearizable read."""
        return self._call(lambda member, seconds: member.revision(seconds), timeout, repeatable=True)

    def request_revision_now(self) -> Deferred[int]:
        """
        Return the newest revision, as L{revision}, but write the request at once.

        It is for frequent calls, and has a short path for the usual response.
        """
        member = self.pick_member()
        assert member is not None, "there are members"

        def answered(revision: int) -> int:
            member.mark_healthy()
            return revision

        def failed(failure: Failure) -> Deferred[int]:
            if not failure.check(NotSent, RPCError):
                self.report_failure(member, failure.value)
            return self.revision()

        return member.revision(self.read_timeout, True).addCallbacks(answered, failed)

    def compact(self, revision: int, timeout: float | None = None) -> Deferred[Header]:
        """
        Compact to a revision.

        @raise RPCError: It is compacted already, or in the future.
        """
        return self._call(lambda member, seconds: member.compact(revision, seconds), timeout, repeatable=True)

    def lease_time_to_live(
        self, lease_id: int, keys: bool = False, timeout: float | None = None
    ) -> Deferred[LeaseTimeToLive]:
        """
        Return the rest of a lease.

        @param keys: Whether the result has its keys.
        """
        return self._call(
            lambda member, seconds: member.lease_time_to_live(lease_id, keys, seconds), timeout, repeatable=True
        )

    def revoke_lease(self, lease_id: int, timeout: float | None = None) -> Deferred[Header]:
        """Revoke a lease, and delete its keys."""
        return self._call(lambda member, seconds: member.revoke_lease(lease_id, seconds), timeout, repeatable=False)

    def keep_lease_alive(self, lease_id: int, timeout: float | None = None) -> Deferred[LeaseTimeToLive]:
        """Restart the time to live of a lease."""
        return self._call(lambda member, seconds: member.keep_lease_alive(lease_id, seconds), timeout, repeatable=True)

    def close(self) -> None:
        """Close all members."""
        for member in self.members:
            member.close()


class Client(EtcdClient):
    """
    An L{EtcdClient} with the constructor of C{txaioetcd.Client}, whose programs only need another import.

    Connections use gRPC over HTTP/2; with C{https}, the authorities of the system verify its certificate.
    """

    def __init__(
        self,
        reactor: IReactorTime,
        url: str | None = None,
        pool: object = None,
        timeout: float | None = None,
        connect_timeout: float | None = None,
    ) -> None:
        """
        @param reactor: The reactor.
        @param url: The address of a member; by default C{ETCD_URL} of the environment, then C{http://localhost:2379}.
        @param pool: Connections of HTTP/1.1, which are not used.
        @param timeout: The timeout of a call for each member, in seconds.
        @param connect_timeout: Not used: a member that cannot be reached has the timeout of a call.
        """
        address = Address.parse(url or os.environ.get("ETCD_URL", "http://localhost:2379"))
        members = grpc_members(reactor, lambda host: optionsForClientTLS(host, acceptableProtocols=[b"h2"]))
        super().__init__(reactor, [address], members)
        self._call_timeout = timeout
