"""
txaioetcd's client with additions: several members, TLS, timeouts, errors, and whole ranges.

It uses the library's types for transactions, comparisons, leases and sets of keys. The protocol on the wire
is gRPC (L{kubetwist.storage.etcd._grpc}), which every etcd supports, also with a disabled HTTP/1.1 gateway:
txaioetcd's requests to the gateway are translated (L{kubetwist.storage.etcd._descriptors}).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import shuffle
from typing import Final

from txaioetcd import Client, Error, Failed, KeySet, Lease, OpGet, Range, Success, Transaction
from txaioetcd._client_commons import validate_client_submit_response

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from ...api.jsontypes import JSONObject
from ..errors import StorageUnavailable
from ._connection import Stream
from ._descriptors import (
    GATEWAY,
    LEASE_GRANT,
    LEASE_REVOKE,
    RANGE,
    TXN,
    Method,
    decode,
    encode,
)
from ._errors import (
    NoResponse,
    NotSent,
    ProtocolError,
    ResponseTimeout,
    RPCError,
)
from ._grpc import Member
from ._messages import (
    FIRST_KEY,
    RangeResult,
    compaction_request,
    header_revision,
    range_request,
    read_range,
    watch_request,
)
from ._metrics import EtcdMetrics
from .address import Address

COMPACTION: Final = b"/etcdserverpb.KV/Compact"
WATCH: Final = b"/etcdserverpb.Watch/Watch"

#: The timeout per member of a request that can be repeated, in seconds.
READ_TIMEOUT: Final = 3.0
#: Seconds in which a read is repeated. A read that was sent to a lost leader gets no response; its repetition does.
READ_RETRY_TIMEOUT: Final = 10.0
RETRY_INTERVAL: Final = 0.1
#: The timeout per member of a write that can be sent to another one, in seconds.
RETRY_TIMEOUT: Final = 3.0
#: The timeout per member of a write that must not be sent twice, in seconds. etcd itself gives up after seven.
WRITE_TIMEOUT: Final = 10.0

#: The timeout of a health check of an unhealthy member, in seconds.
HEALTH_CHECK_TIMEOUT: Final = 2.0

#: Requests only the header with the revision of the store. The lookup of a missing key is fast.
REVISION_REQUEST: Final = range_request(FIRST_KEY, limit=1, keys_only=True)

#: The text of the reference for a request without a response.
TIMED_OUT: Final = "etcdserver: request timed out"


class NoMemberReachable(StorageUnavailable):
    """No member can be reached, so none has received the request."""

    def __init__(self, reason: str) -> None:
        super().__init__(f'rpc error: code = Unavailable desc = connection error: desc = "transport: {reason}"')


class WriteOutcomeUnknown(Exception):
    """A write may have been applied, or may still be."""


class RevocableLease(Lease):  # type: ignore[misc]
    """A lease that is revoked over the client that made it."""

    async def revoke(self) -> None:
        """Revoke the lease, and delete all its keys."""
        client: EtcdClient = self._client
        await client.call_json(LEASE_REVOKE, {"ID": self.lease_id})
        self._expired = True

    @classmethod
    def of(cls, client: EtcdClient, response: JSONObject) -> RevocableLease:
        """Return the lease in a response."""
        found = Lease._parse(client, response)
        return cls(client, found.header, found.time_to_live, found.lease_id)


class EtcdClient(Client):  # type: ignore[misc]
    """
    A client of all members of one etcd.

    Requests are sent to one member as long as it responds. If it cannot be reached, they are sent to another member
    immediately. If it does not respond, only repeatable requests are sent to another member.

    @ivar read_timeout: Seconds per member for a read.
    @ivar retry_timeout: Seconds per member for a write that can be sent again.
    @ivar metrics: The metrics of its calls.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: IReactorTime,
        addresses: Sequence[Address],
        tls: Callable[[str], IOpenSSLClientConnectionCreator] | None = None,
        shuffle_members: bool = True,
    ) -> None:
        """
        @param tls: Returns the options of a TLS connection for a host name.
        @param shuffle_members: Begin with a random member, so that several servers do not all use the same one.
        """
        if not addresses:
            raise ValueError("no etcd servers are named")
        super().__init__(reactor, addresses[0].url)
        self.metrics = EtcdMetrics()
        self.members = [Member(address, reactor, tls, self._check_health, self.metrics) for address in addresses]
        if shuffle_members:
            shuffle(self.members)
        several = len(self.members) > 1
        # With a single member, an early timeout has no use.
        self.read_timeout = READ_TIMEOUT if several else READ_RETRY_TIMEOUT
        self.retry_timeout = RETRY_TIMEOUT if several else WRITE_TIMEOUT
        self._reactor = reactor

    @property
    def endpoints(self) -> str:
        """Return the members, for messages."""
        return ", ".join(sorted(member.address.url for member in self.members))

    def pick_member(self, without: Sequence[Member] = ()) -> Member | None:
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

    def report_failure(self, member: Member, reason: BaseException | None) -> None:
        """Record that a member did not respond; it is logged once."""
        if member.unhealthy_since is None:
            self._log.warn(
                "etcd member did not respond: member={member} error={reason}", member=member.address.url, reason=reason
            )
        member.mark_unhealthy(str(reason))

    def _check_health(self, member: Member) -> None:
        """Check in the background whether an unhealthy member responds again."""

        def answered(response: bytes) -> None:
            member.mark_healthy()

        def failed(failure: Failure) -> None:
            member.mark_unhealthy(failure.getErrorMessage())

        member.call_unary(RANGE.path, REVISION_REQUEST, HEALTH_CHECK_TIMEOUT).addCallbacks(answered, failed)

    async def call(
        self, path: bytes, message: bytes, *, repeatable: bool = True, timeout: float | None = None
    ) -> bytes:
        """
        Send a request to a member, and to other members if that fails.

        @param path: The path of the method.
        @param repeatable: Whether it can be sent twice without harm.
        @param timeout: In seconds, for each member; L{None} for the timeout of a read.
        @return: The message of the response.
        @raise RPCError: etcd refuses the request.
        @raise NoMemberReachable: No member can be reached; nothing was applied.
        @raise StorageUnavailable: No member responds a request that can be repeated.
        @raise WriteOutcomeUnknown: A request that must not be repeated got no response.
        """
        tried: list[Member] = []
        last_error: Exception = NoMemberReachable("no member")
        until = self._reactor.seconds() + READ_RETRY_TIMEOUT
        timeout = timeout or self.read_timeout
        while True:
            member = self.pick_member(tried)
            if member is None:
                if isinstance(last_error, NoMemberReachable) or not repeatable or self._reactor.seconds() > until:
                    raise last_error
                tried.clear()
                last_error = NoMemberReachable("no member")
                await deferLater(self._reactor, RETRY_INTERVAL)
                continue
            tried.append(member)
            try:
                response = await member.call_unary(path, message, timeout)
                member.mark_healthy()
                return response
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

    async def call_json(
        self, method: Method, request: JSONObject, *, repeatable: bool = True, timeout: float | None = None
    ) -> JSONObject:
        """
        Send a request as L{call} does, with txaioetcd's JSON instead of protobuf.

        @param method: The method.
        @param request: The request.
        @param repeatable: Whether it can be sent twice without harm.
        @param timeout: In seconds, for each member; L{None} for the timeout of a read.
        @return: The response.
        """
        message = encode(method.request, request)
        return decode(method.response, await self.call(method.path, message, repeatable=repeatable, timeout=timeout))

    # --- overrides of txaioetcd

    def _post(self, url: bytes, data: JSONObject, timeout: float | None) -> Deferred[JSONObject]:
        # The paths of the library have the prefix of an old version of the gateway.
        method = GATEWAY[b"/" + url[len(self._url) + 1 :].partition(b"/")[2]]

        async def call_unary() -> JSONObject:
            try:
                return await self.call_json(method, data, repeatable=False, timeout=timeout or WRITE_TIMEOUT)
            except RPCError as error:
                raise Error(error.code, error.message) from None

        return Deferred.fromCoroutine(call_unary())

    async def submit(self, txn: Transaction, timeout: float | None = None, repeatable: bool = False) -> Success:
        """
        Apply a transaction.

        @param repeatable: Whether it can be applied twice without harm.
        @raise Failed: The comparison fails.
        """
        response = await self.call_json(TXN, txn._marshal(), repeatable=repeatable, timeout=timeout or WRITE_TIMEOUT)
        header, responses = validate_client_submit_response(response)
        if response.get("succeeded"):
            return Success(header, responses)
        raise Failed(header, responses)

    async def get(
        self, key: bytes | KeySet, range_end: bytes | None = None, timeout: float | None = None, **options: object
    ) -> Range:
        """
        Read keys.

        @param key: The key, or a set of keys.
        @param range_end: The end of the range, exclusive.
        @param timeout: In seconds.
        @param options: The arguments of L{OpGet}, such as C{limit}, C{revision}, C{sort_order} and C{keys_only}.
        """
        keys = KeySet(key, range_end=range_end) if range_end is not None else key
        return Range._parse(
            await self.call_json(RANGE, OpGet(keys, **options)._marshal()["request_range"], timeout=timeout)
        )

    async def lease(self, time_to_live: int, lease_id: int | None = None, timeout: float | None = None) -> Lease:
        """Grant a lease."""
        # An unused lease does no harm.
        return RevocableLease.of(self, await self.call_json(LEASE_GRANT, {"TTL": time_to_live, "ID": lease_id or 0}))

    # --- additions to txaioetcd

    async def range(self, key: bytes, end: bytes = b"", *, limit: int = 0, revision: int = 0) -> RangeResult:
        """
        Read values.

        @param end: The end of the range, exclusive; without it, one key is read.
        """
        return read_range(await self.call(RANGE.path, range_request(key, end, limit=limit, revision=revision)))

    async def revision(self, timeout: float | None = None) -> int:
        """Return the newest revision of the store, by any writer: a linearizable read."""
        return header_revision(await self.call(RANGE.path, REVISION_REQUEST, timeout=timeout))

    def request_revision_now(self) -> Deferred[int]:
        """
        Return the newest revision, as L{revision}, but write the request at once.

        It is for frequent calls, and has a short path for the usual response.
        """
        member = self.pick_member()
        assert member is not None, "there are members"

        def answered(response: bytes) -> int:
            member.mark_healthy()
            return header_revision(response)

        def failed(failure: Failure) -> Deferred[int]:
            if not failure.check(NotSent, RPCError):
                self.report_failure(member, failure.value)
            return Deferred.fromCoroutine(self.revision())

        return member.call_unary(RANGE.path, REVISION_REQUEST, self.read_timeout, True).addCallbacks(answered, failed)

    async def compact(self, revision: int) -> None:
        """
        Compact to a revision.

        @raise RPCError: It is compacted already, or in the future.
        """
        await self.call(COMPACTION, compaction_request(revision))

    def watch_from(
        self,
        member: Member,
        revision: int,
        receive: Callable[[bytes], object],
        end: Callable[[Exception | None], object],
        timeout: float,
        former: bool = False,
    ) -> Stream:
        """
        Watch all keys.

        @param revision: The first revision.
        @param receive: Called with each message.
        @param end: See L{Member.stream}.
        @param former: See L{watch_request}.
        """
        return member.stream(WATCH, watch_request(revision, former), receive, end, timeout)

    def close(self) -> None:
        """Close all members."""
        for member in self.members:
            member.close()
