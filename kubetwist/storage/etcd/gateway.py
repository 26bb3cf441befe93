"""
A client of one member over etcd's gateway for HTTP/1.1: txaioetcd's client, with its defects fixed.

The library posts to C{/v3alpha}, which etcd 3.4 and later do not serve; takes refusals for results; drops arguments of
reads; cannot express prefixes that end with a byte of 255; loses partial lines, errors and ends of watches; and its
leases bypass the client. Requests and results stay in the library's JSON.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Final, TypeAlias, TypeVar

import orjson
from txaioetcd import (
    Client,
    Deleted,
    Failed,
    Header,
    KeySet,
    Lease,
    Op,
    OpDel,
    OpGet,
    OpSet,
    Range,
    Revision,
    Status,
    Success,
    Transaction,
)

from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure
from zope.interface import implementer

from ._errors import (
    UNAUTHENTICATED,
    UNKNOWN,
    NoResponse,
    NotSent,
    ProtocolError,
    ResponseTimeout,
    RPCError,
)
from ._frames import http_code
from ._gatewayvalues import parse_range, parse_time_to_live, parse_watch
from ._health import MemberHealth
from ._interfaces import IEtcdMember, IEtcdStream, IGatewayTransport, MemberFactory
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
from ._metrics import CallCounts, EtcdMetrics
from ._typedclient import TypedClient
from ._values import EtcdLease, LeaseTimeToLive, WatchRequest, WatchResponse, range_end
from .address import Address

__all__ = [
    "GatewayClient",
    "IGatewayTransport",
    "LineReader",
    "NoResponse",
    "NotSent",
    "ResponseTimeout",
    "gateway_members",
]

#: The prefix of paths of the gateway.
_PREFIX: Final = "/v3"
#: The paths of the gateway below the prefix, with the methods of gRPC that they call.
_METHODS: Final = {
    "/kv/put": PUT,
    "/kv/range": RANGE,
    "/kv/deleterange": DELETE_RANGE,
    "/kv/txn": TXN,
    "/kv/compaction": COMPACT,
    "/lease/grant": LEASE_GRANT,
    "/lease/revoke": LEASE_REVOKE,
    "/lease/timetolive": LEASE_TIME_TO_LIVE,
    "/lease/keepalive": LEASE_KEEP_ALIVE,
    "/maintenance/status": STATUS,
}
#: Maximum number of concurrent calls to a member, each on one connection; more calls wait.
MAX_CONCURRENT_CALLS: Final = 64
#: Maximum size in bytes of one message of a watch; etcd splits those much larger than a request.
MAX_WATCH_MESSAGE_BYTES: Final = 64 << 20
#: Maximum number of bytes of an error text that are kept.
_MAX_ERROR_TEXT: Final = 4096

T = TypeVar("T")

TransportFactory: TypeAlias = Callable[[Address], IGatewayTransport]


def gateway_members(reactor: IReactorTime, make_transport: TransportFactory) -> MemberFactory:
    """
    Return a factory of members over the gateway.

    @param make_transport: Returns the connections to a member.
    """
    return lambda address, check_health, metrics: GatewayClient(
        address, reactor, make_transport(address), check_health, metrics
    )


class LineReader:
    """Splits received data into lines, however it is fragmented."""

    def __init__(self, limit: int) -> None:
        """
        @param limit: Maximum length of a line in bytes.
        """
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """
        Add received data.

        @return: The lines that are complete, without empty ones.
        @raise ProtocolError: A line is too long.
        """
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._parts, lines[0]))
            self._parts, self._size = [], 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
        if self._size > self._limit or any(len(line) > self._limit for line in lines):
            raise ProtocolError("etcd sent a message that is too large")
        return [line for line in lines if line.strip()]


def parse_object(data: bytes) -> dict[str, Any]:
    """
    Parse a JSON object.

    @raise ProtocolError: It is none.
    """
    try:
        value = orjson.loads(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ProtocolError("etcd's gateway sent what is no JSON object")
    return value


def _refusal(status: int, found: object) -> RPCError:
    """Return the error for a response with a status or an object that reports one."""
    code: object = None
    text: object = None
    if isinstance(found, dict):
        # In a stream of etcd 3.4, names differ.
        code = found.get("code", found.get("grpc_code"))
        text = found.get("message") or found.get("error")
    if not isinstance(code, int) or not 0 < code <= UNAUTHENTICATED:
        # A proxy may have the status in its object: it is no refusal of etcd.
        code = http_code(status) if status != 200 else UNKNOWN
    message = text[:_MAX_ERROR_TEXT] if isinstance(text, str) else f"etcd's gateway responded with status {status}"
    return RPCError(code, message)


def _stream_result(data: bytes) -> dict[str, Any]:
    """
    Return the result in a message of a stream.

    @raise RPCError: It has an error instead.
    @raise ProtocolError: It has neither.
    """
    found = parse_object(data)
    result = found.get("result")
    if isinstance(result, dict):
        return result
    if "error" in found:
        raise _refusal(200, found["error"])
    raise ProtocolError("etcd's gateway sent a message without a result")


def _checked_header(found: dict[str, Any]) -> dict[str, Any]:
    """Return a response, which must have the revision of the store."""
    try:
        revision = int(found["header"]["revision"])
    except (KeyError, TypeError, ValueError):
        revision = 0
    if revision <= 0:
        raise ProtocolError("etcd sent a response without a revision")
    return found


def _refused_response(status: int, body: bytes) -> Exception:
    """Return the error for a response that is no result."""
    try:
        found: object = orjson.loads(body)
    except ValueError:
        found = None
    return _refusal(status, found)


def _parse_header(found: dict[str, Any]) -> Header:
    return Header._parse(found["header"])


def _readable(result: Deferred[T]) -> Deferred[T]:
    """Convert the errors of a call: what the library cannot parse is no message of etcd."""

    def convert(failure: Failure) -> Failure:
        if failure.check(RPCError, Failed, NotSent, NoResponse, ProtocolError, CancelledError):
            return failure
        # The library's texts may quote the response, which may have Secrets.
        return Failure(ProtocolError(f"etcd sent a response that cannot be read: {type(failure.value).__name__}"))

    return result.addErrback(convert)


def exact_keys(keys: KeySet) -> KeySet:
    """Return a set of keys whose prefix is expressed as a range, since the library's prefixes are incomplete."""
    return KeySet(keys.key, range_end=range_end(keys)) if keys.prefix else keys


def _exact_operations(operations: Sequence[Op] | None) -> list[Op] | None:
    if operations is None:
        return None
    exact = []
    for op in operations:
        keys = getattr(op, "key", None)
        if isinstance(keys, KeySet) and keys.prefix:
            op = copy(op)
            op.key = exact_keys(keys)
        exact.append(op)
    return exact


@implementer(IEtcdStream)
class _Following:
    """A watch over the gateway."""

    def __init__(
        self,
        reactor: IReactorTime,
        receive: Callable[[WatchResponse], object],
        end: Callable[[Exception | None], object],
        counts: CallCounts,
        timeout: float,
    ) -> None:
        """
        @param reactor: The reactor.
        @param receive: See L{IEtcdMember.follow}.
        @param end: See L{IEtcdMember.follow}.
        @param counts: The metrics of the method.
        @param timeout: Seconds until the first message.
        """
        self._receive = receive
        self._end: Callable[[Exception | None], object] | None = end
        self._counts = counts
        self._lines = LineReader(MAX_WATCH_MESSAGE_BYTES)
        self._call: Deferred[None] | None = None
        self._timeout: IDelayedCall | None = reactor.callLater(timeout, self._timed_out, timeout)
        counts.begin()

    def begin(self, call: Deferred[None]) -> None:
        """
        Handle the end of a call whose response is being received.

        @param call: Fires when the response ends; cancelling it ends the connection.
        """
        self._call = call
        call.addCallbacks(lambda _: self._finish(None), lambda failure: self._finish(failure.value))

    def received(self, data: bytes) -> None:
        """Handle received data."""
        try:
            for line in self._lines.feed(data):
                if self._end is None:
                    return
                self._cancel_timeout()
                self._counts.received += 1
                self._receive(parse_watch(_stream_result(line)))
        except (RPCError, ProtocolError) as error:
            self._abort(error)
        except Exception as error:
            self._abort(NoResponse(f"the client failed to handle the response: {error!r}"))

    def stop(self) -> None:
        """See L{IEtcdStream.stop}."""
        if self._end is not None:
            self._counts.cancel()
        self._end = None
        self._cancel_timeout()
        call, self._call = self._call, None
        if call is not None:
            call.cancel()

    def _timed_out(self, timeout: float) -> None:
        self._timeout = None
        self._abort(ResponseTimeout(f"no response in {timeout:g} seconds"))

    def _abort(self, error: Exception) -> None:
        end, self._end = self._end, None
        if end is not None:
            self._counts.end(error)
        self.stop()
        if end is not None:
            end(error)

    def _finish(self, error: Exception | None) -> None:
        self._call = None
        self._cancel_timeout()
        end, self._end = self._end, None
        if end is not None:
            self._counts.end(error)
            end(error)

    def _cancel_timeout(self) -> None:
        timeout, self._timeout = self._timeout, None
        if timeout is not None and timeout.active():
            timeout.cancel()


@implementer(IEtcdMember)
class GatewayClient(MemberHealth, TypedClient):
    """L{IEtcdMember} over the gateway."""

    def __init__(
        self,
        address: Address,
        reactor: IReactorTime,
        transport: IGatewayTransport,
        check_health: Callable[[Any], object] | None = None,
        metrics: EtcdMetrics | None = None,
    ) -> None:
        """
        @param address: The host and port.
        @param reactor: The reactor.
        @param transport: The connections to the member.
        @param check_health: See L{MemberHealth}.
        @param metrics: The metrics of the calls.
        """
        MemberHealth.__init__(self, address, reactor, check_health, metrics)
        Client.__init__(self, reactor, address.url)
        self._transport = transport
        self._calls = 0
        self._waiting: deque[Deferred[None]] = deque()

    # --- requests

    def _post(self, url: bytes, data: dict[str, Any], timeout: float | None) -> Deferred[dict[str, Any]]:
        """Send a request of an inherited method, whose URL has the path of an old gateway."""
        path = "/" + url.decode("ascii")[len(self._url) + 1 :].partition("/")[2]
        return Deferred.fromCoroutine(self._request(path, data, timeout or WRITE_TIMEOUT, parse_object))

    async def _request(
        self,
        path: str,
        data: dict[str, Any],
        timeout: float,
        parse: Callable[[bytes], dict[str, Any]] = parse_object,
    ) -> dict[str, Any]:
        """
        Send a request, and return the response, which has the revision of the store.

        @param path: The path below the prefix.
        @param data: The request.
        @param timeout: Seconds until the response is complete, from the time that the request is sent.
        @param parse: Parses the response.
        """
        counts = self.metrics.of(_METHODS[path])
        counts.begin()
        try:
            status, body = await self._exchange(path, orjson.dumps(data), timeout)
            if status != 200:
                raise _refused_response(status, body)
            found = _checked_header(parse(body))
        except Exception as error:
            counts.end(error)
            raise
        counts.received += 1
        counts.end()
        return found

    async def _exchange(self, path: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        if self.closed:
            raise NotSent("the client is closed")
        if self._calls >= MAX_CONCURRENT_CALLS:
            turn: Deferred[None] = Deferred(self._waiting.remove)
            self._waiting.append(turn)
            await turn
        else:
            self._calls += 1
        try:
            return await self._transport.post(_PREFIX + path, body, timeout)
        finally:
            if self._waiting:
                # The next call takes the place.
                self._waiting.popleft().callback(None)
            else:
                self._calls -= 1

    def _fail_waiting(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, deque()
        for turn in waiting:
            turn.errback(NotSent(reason))

    def mark_unhealthy(self, reason: str) -> None:
        """See L{MemberHealth.mark_unhealthy}."""
        super().mark_unhealthy(reason)
        self._fail_waiting(reason)

    def close(self) -> None:
        """See L{MemberHealth.close}."""
        super().close()
        self._fail_waiting("the client is closed")
        self._transport.close()

    # --- txaioetcd's methods

    def status(self, timeout: float | None = None) -> Deferred[Status]:
        """See L{IEtcdMember.status}."""
        return _readable(super().status(timeout or READ_TIMEOUT))

    def set(
        self,
        key: bytes,
        value: bytes,
        lease: Lease | None = None,
        return_previous: bool | None = None,
        timeout: float | None = None,
    ) -> Deferred[Revision]:
        """See L{IEtcdMember.set}."""
        # Checks the arguments, whose errors do not concern a response.
        op = OpSet(key, value, lease, return_previous)
        return _readable(super().set(op.key, op.value, lease, return_previous, timeout))

    def delete(
        self, key: bytes | KeySet, return_previous: bool | None = None, timeout: float | None = None
    ) -> Deferred[Deleted]:
        """See L{IEtcdMember.delete}."""
        op = OpDel(key, return_previous)
        return _readable(super().delete(exact_keys(op.key), return_previous, timeout))

    def submit(self, txn: Transaction, timeout: float | None = None) -> Deferred[Success]:
        """See L{IEtcdMember.submit}."""
        exact = copy(txn)
        exact.success, exact.failure = _exact_operations(txn.success), _exact_operations(txn.failure)
        return _readable(super().submit(exact, timeout))

    def lease(self, time_to_live: int, lease_id: int | None = None, timeout: float | None = None) -> Deferred[Lease]:
        """See L{IEtcdMember.lease}."""

        def granted(lease: Lease) -> Lease:
            return EtcdLease(self, lease.header, lease.time_to_live, lease.lease_id)

        return _readable(super().lease(time_to_live, lease_id, timeout)).addCallback(granted)

    # --- additions to txaioetcd

    def pick_member(self, without: Sequence[IEtcdMember] = ()) -> IEtcdMember | None:
        """Return this member: its watches continue on it."""
        return None if self in without else self

    def read(self, op: OpGet, timeout: float | None = None) -> Deferred[Range]:
        """See L{IEtcdMember.read}."""
        exact = copy(op)
        exact.key = exact_keys(op.key)
        request = exact._marshal()["request_range"]
        return self._call("/kv/range", request, timeout or READ_TIMEOUT, parse_range)

    def revision(self, timeout: float | None = None, urgent: bool = False) -> Deferred[int]:
        """See L{IEtcdMember.revision}."""
        request = REVISION_QUERY._marshal()["request_range"]
        return self._call("/kv/range", request, timeout or READ_TIMEOUT, lambda found: int(found["header"]["revision"]))

    def compact(self, revision: int, timeout: float | None = None) -> Deferred[Header]:
        """See L{IEtcdMember.compact}."""
        return self._call("/kv/compaction", {"revision": revision}, timeout or WRITE_TIMEOUT, _parse_header)

    def lease_time_to_live(
        self, lease_id: int, keys: bool = False, timeout: float | None = None
    ) -> Deferred[LeaseTimeToLive]:
        """See L{IEtcdMember.lease_time_to_live}."""
        request = {"ID": lease_id, "keys": keys}
        return self._call("/lease/timetolive", request, timeout or READ_TIMEOUT, parse_time_to_live)

    def revoke_lease(self, lease_id: int, timeout: float | None = None) -> Deferred[Header]:
        """See L{IEtcdMember.revoke_lease}."""
        return self._call("/lease/revoke", {"ID": lease_id}, timeout or WRITE_TIMEOUT, _parse_header)

    def keep_lease_alive(self, lease_id: int, timeout: float | None = None) -> Deferred[LeaseTimeToLive]:
        """See L{IEtcdMember.keep_lease_alive}."""
        # A stream that ends after the response to its only request.
        return _readable(
            Deferred.fromCoroutine(
                self._request("/lease/keepalive", {"ID": lease_id}, timeout or READ_TIMEOUT, _stream_result)
            ).addCallback(parse_time_to_live)
        )

    def follow(
        self,
        request: WatchRequest,
        receive: Callable[[WatchResponse], object],
        end: Callable[[Exception | None], object],
        timeout: float,
    ) -> _Following:
        """
        See L{IEtcdMember.follow}.

        @param request: The keys.
        @param receive: Called with each message.
        @param end: Called once at the end.
        @param timeout: Seconds until the first message.
        """
        following = _Following(self.reactor, receive, end, self.metrics.of(WATCH, "bidi_stream"), timeout)
        if self.closed:
            following.begin(fail(NotSent("the client is closed")))
            return following
        options = {
            **exact_keys(request.keys)._marshal(),
            "start_revision": request.start_revision,
            "prev_kv": request.return_previous,
            "filters": list(request.filters),
            "fragment": True,
        }
        following.begin(
            self._transport.stream(
                _PREFIX + "/watch", orjson.dumps({"create_request": options}), following.received, _refused_response
            )
        )
        return following

    def _call(
        self, path: str, data: dict[str, Any], timeout: float, parse: Callable[[dict[str, Any]], T]
    ) -> Deferred[T]:
        """
        Send a request.

        @param path: The path below the prefix.
        @param data: The request.
        @param timeout: In seconds.
        @param parse: Converts the response.
        """
        return _readable(Deferred.fromCoroutine(self._request(path, data, timeout)).addCallback(parse))
