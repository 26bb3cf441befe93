"""
HTTP/1.1 as a connection speaks it: heads, bodies, limits and patience.

Twisted's own channel parses a head line by line and sets a timer for every request. This one takes a head apart at
once, and one clock of the site watches over all connections. It also is where too much is turned away while it arrives.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from OpenSSL import SSL

from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel, _ChunkedTransferDecoder, _MalformedChunkedDataError

from ..api.users import UNAUTHENTICATED
from ..outgoing.flow import RawTransport, bound_unsent, has_hung_up, is_left, keep_alive
from .bodyshares import SMALL_BODY
from .neighbours import place_of
from .streaming import StreamedBody

if TYPE_CHECKING:
    from .request import KubeRequest
    from .site import KubeSite

#: The longest request line; longer ones are 414.
MAX_LINE: Final = 64 * 1024
#: The largest head, request line included; larger ones are 431.
MAX_HEAD: Final = 128 * 1024
#: The most header fields of a request; more are 431.
MAX_FIELDS: Final = 500
#: The largest body, as in the reference.
MAX_BODY: Final = 3 * 1024 * 1024
#: How much a client may send ahead while its request is answered before it is read from no more.
MAX_AHEAD: Final = 64 * 1024
#: How much of a refused body is read and thrown away, so that its sender gets to read the answer.
MAX_DISCARDED: Final = 32 * 1024 * 1024

#: Seconds between requests; the reference's IdleTimeout.
IDLE_TIMEOUT: Final = 90.0
#: Seconds from the first byte of a head to its last; the reference's ReadHeaderTimeout.
HEAD_TIMEOUT: Final = 32.0
#: Seconds from the end of a head to the end of the body.
BODY_TIMEOUT: Final = 60.0
#: Bytes of a body that must arrive in a second, counted from L{BODY_GRACE} seconds after its start.
BODY_RATE: Final = 16 * 1024
BODY_GRACE: Final = 20.0
#: Seconds that a connection which is to be closed is given to read its answer.
LINGER: Final = 5.0
#: The same for what another protocol has written.
PARTING: Final = 20.0

# What a connection waits for.
_HEAD, _BODY, _ANSWER, _DISCARD, _STREAM, _SWITCHED = range(6)

_TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TARGET: Final = re.compile(rb"[!-~\x80-\xff]+")
_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_VERSION: Final = re.compile(rb"HTTP/[0-9]\.[0-9]")
_METHODS: Final = frozenset((b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS"))

#: Field names as sent, and in lower case; clients use few.
_NAMES: dict[bytes, bytes] = {}
_NAMES_KEPT: Final = 2048

_REASONS: Final = {
    400: b"Bad Request",
    408: b"Request Timeout",
    414: b"URI Too Long",
    417: b"Expectation Failed",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    501: b"Not Implemented",
    505: b"HTTP Version Not Supported",
}


class Malformed(Exception):
    """What arrives is no request that we take; the connection ends with C{code}."""

    def __init__(self, code: int, why: str = "") -> None:
        super().__init__(why)
        self.code = code


class KubeChannel(HTTPChannel):
    """
    One connection.

    @ivar remembered: What filters know of this connection whatever the request, such as the owner of its certificate.
    @ivar deadline: When patience ends, in the site's time; L{None} while a request is answered.
    """

    timeOut = None
    factory: Any
    transport: Any
    site: KubeSite
    deadline: float | None = None

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.remembered: dict[object, Any] = {}
        self._state = _HEAD
        self._buffer = b""
        self._parsing = False
        self._paused = False
        self._decoder: Any = None
        self._body = bytearray()
        self._missing: int | None = 0
        self._body_since = 0.0
        #: Whether the request is served already, while its body is still to come.
        self._early = False
        #: Whether its body is wanted by now, and whether its client waits to be told so.
        self._wanted = False
        self._expected = False
        #: For whom how many bytes of bodies are reserved.
        self._share: tuple[tuple[str, str], bool] | None = None
        self._reserved = 0
        self._discarded = 0
        self._streamed: StreamedBody | None = None
        self._lasting = 0
        self._switched: Any = None

    # What arrives.

    def connectionMade(self) -> None:
        """A client has connected."""
        super().connectionMade()  # type: ignore[no-untyped-call]
        keep_alive(self.transport)
        bound_unsent(self.transport)
        if not self.site.connected(self):
            self._state = _DISCARD
            self.transport.abortConnection()
            return
        self.deadline = self.site.now() + HEAD_TIMEOUT

    def dataReceived(self, data: bytes) -> None:
        """Take what arrives."""
        state = self._state
        if state == _HEAD:
            if not self._buffer:
                self._buffer = data
                self.deadline = self.site.now() + HEAD_TIMEOUT
            else:
                self._buffer += data
            self._parse()
        elif state == _BODY:
            self._guarded(self._body_received, data)
            if self._state == _HEAD:
                self._parse()
        elif state == _STREAM:
            self._guarded(self._stream_received, data)
        elif state == _SWITCHED:
            self._switched.dataReceived(data)
        elif state == _ANSWER:
            self._buffer += data
            if len(self._buffer) > MAX_AHEAD:
                self.read_no_further()
        else:
            self._discard(len(data))

    def _parse(self) -> None:
        """Serve the next request, if it has arrived whole; one behind it takes turns with other connections."""
        if self._parsing:
            return
        self._parsing = True
        try:
            # A client that does not read its answers gets no more of them.
            if self._state == _HEAD and self._buffer and not self._waitingForTransport:
                buffer = self._buffer
                end = buffer.find(b"\r\n\r\n")
                if end < 0:
                    self._guarded(self._check_unfinished, buffer)
                    return
                self._buffer = b""
                self._guarded(self._head_received, buffer[:end], buffer[end + 4 :])
        finally:
            self._parsing = False
        if self._buffer and self._state == _HEAD and not self._waitingForTransport:
            self.site.take_turn(self)

    def go_on(self) -> None:
        """It is this connection's turn: serve the next of the requests that have arrived."""
        if self in self.site.channels:
            self._parse()

    def _guarded(self, step: Any, *arguments: Any) -> None:
        try:
            step(*arguments)
        except Malformed as error:
            self.refuse(error.code, str(error))
        except _MalformedChunkedDataError:
            self.refuse(400)

    def _check_unfinished(self, head: bytes) -> None:
        if head.startswith(b"\r\n"):
            # Some clients end a body with a line break too many.
            self._buffer = head[2:]
        elif len(head) > MAX_LINE and b"\r\n" not in head:
            raise Malformed(414)
        elif len(head) > MAX_HEAD:
            raise Malformed(431)

    # Heads.

    def _head_received(self, head: bytes, rest: bytes) -> None:
        if head.startswith(b"\r\n"):
            head = head[2:]
        if len(head) > MAX_HEAD:
            raise Malformed(414 if head.find(b"\r\n", 0, MAX_LINE) < 0 else 431)
        lines = head.split(b"\r\n")
        line_breaks = len(lines) - 1
        if head.count(b"\n") != line_breaks or head.count(b"\r") != line_breaks or b"\0" in head:
            raise Malformed(400)
        method, target, version = self._request_line(lines[0])
        if line_breaks > MAX_FIELDS:
            raise Malformed(431)
        fields: dict[bytes, list[bytes]] = {}
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            known = _NAMES.get(name)
            if known is None:
                known = _field_name(name, colon)
            elif not colon:
                raise Malformed(400)
            value = value.strip(b" \t")
            if known in fields:
                fields[known].append(value)
            else:
                fields[known] = [value]
        hosts = fields.get(b"host", ())
        if not hosts:
            if version == b"HTTP/1.1":
                raise Malformed(400, "missing required Host header")
        elif len(hosts) > 1:
            raise Malformed(400)
        elif hosts[0] not in _HOSTS and not _known_host(hosts[0]):
            raise Malformed(400, "malformed Host header")

        length = self._body_length(fields)
        connection = fields.get(b"connection")
        close = version != b"HTTP/1.1" or (connection is not None and b"close" in connection[0].lower())
        self.persistent = 0 if close else 1
        request: KubeRequest = self.site.requestFactory(self)
        request.begin(method, target, version, fields)
        self.requests.append(request)
        expected = False
        if b"expect" in fields and fields[b"expect"][0]:
            if b"100-continue" not in re.split(rb"[ \t,]+", fields[b"expect"][0].lower()):
                raise Malformed(417)
            expected = version == b"HTTP/1.1"
        if length == 0:
            self._serve(request, b"", rest)
            return
        for wanted in self.site.streams:
            if wanted(request):
                self._stream(request, length, rest, expected)
                return
        if length is not None and length > MAX_BODY:
            self._too_large(request, len(rest), length)
            return
        self._state = _BODY
        self._missing = length or 0
        if length is None:
            self._decoder = _ChunkedTransferDecoder(self._chunk_received, self._chunks_finished)
        self._begin_body()
        if self.site.heads_first and (expected or (length is not None and length > max(SMALL_BODY, len(rest)))):
            self._serve_head(request, expected)
        elif expected:
            self.tell_to_send()
        if rest:
            if self._state == _BODY:
                self._body_received(rest)
            elif self._state == _DISCARD:
                self._discard(len(rest))

    def _request_line(self, line: bytes) -> tuple[bytes, bytes, bytes]:
        if len(line) > MAX_LINE:
            raise Malformed(414)
        parts = line.split(b" ")
        if len(parts) != 3:
            raise Malformed(400)
        method, target, version = parts
        if version not in (b"HTTP/1.1", b"HTTP/1.0"):
            raise Malformed(505 if _VERSION.fullmatch(version) else 400)
        if method not in _METHODS and not _TOKEN.fullmatch(method):
            raise Malformed(400)
        if not _TARGET.fullmatch(target):
            raise Malformed(400)
        if not target.startswith(b"/") and target != b"*":
            # The absolute form, which proxies are sent.
            scheme, separator, rest = target.partition(b"://")
            if not separator or scheme.lower() not in (b"http", b"https"):
                raise Malformed(400)
            authority_end = min((at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0), default=len(rest))
            target = rest[authority_end:]
            if not target.startswith(b"/"):
                target = b"/" + target
        if b"%" in target and _ESCAPE.search(target.partition(b"?")[0]):
            raise Malformed(400)
        return method, target, version

    def _body_length(self, fields: dict[bytes, list[bytes]]) -> int | None:
        """The length of the body; L{None} when it comes in chunks."""
        lengths = fields.get(b"content-length")
        codings = fields.get(b"transfer-encoding")
        if codings is not None:
            # Both at once, or several, is how requests are smuggled past proxies.
            if lengths is not None or len(codings) != 1:
                raise Malformed(400)
            if codings[0].lower() != b"chunked":
                raise Malformed(501, "unsupported transfer encoding")
            return None
        if lengths is None:
            return 0
        length = lengths[0]
        if len(lengths) != 1 or not length.isdigit() or len(length) > 18:
            raise Malformed(400)
        return int(length)

    # Bodies.

    def _begin_body(self) -> None:
        self._body_since = now = self.site.now()
        self.deadline = now + BODY_GRACE

    def _body_received(self, data: bytes) -> None:
        if self.deadline is not None:
            patience = BODY_GRACE + (len(self._body) + len(data)) / BODY_RATE
            self.deadline = self._body_since + min(patience, BODY_TIMEOUT)
        if self._decoder is not None:
            self._decoder.dataReceived(data)
            return
        missing = self._missing or 0
        if len(data) < missing:
            self._missing = missing - len(data)
            self._keep(data)
            return
        if self._body or self._early:
            self._missing = 0
            self._keep(data[:missing])
            self._finish_body(data[missing:])
        else:
            request = self.requests[-1]
            body, rest = (data, b"") if len(data) == missing else (data[:missing], data[missing:])
            self._serve(request, body, rest)

    def _chunk_received(self, data: bytes) -> None:
        if self._state != _BODY:
            return
        size = len(self._body) + len(data)
        if size > MAX_BODY:
            self._too_large(self.requests[-1], len(data), None)
            return
        if size > SMALL_BODY and self.site.heads_first and not self._early:
            self._serve_head(self.requests[-1], False)
            if self._state != _BODY:
                return
        self._keep(data)

    def _chunks_finished(self, rest: bytes) -> None:
        if self._state == _BODY:
            self._finish_body(rest)

    def _keep(self, data: bytes) -> None:
        size = len(self._body) + len(data)
        if self._wanted and size > max(SMALL_BODY, self._reserved) and not self._reserve(size - self._reserved):
            raise Malformed(429)
        self._body += data

    def _finish_body(self, rest: bytes) -> None:
        body = bytes(self._body)
        self._body = bytearray()
        self._decoder = None
        request = self.requests[-1]
        if not self._early:
            self._serve(request, body, rest)
            return
        self._early = False
        self._state = _ANSWER
        self._buffer = rest
        self.deadline = None
        self.persistent = self._lasting
        request.body_arrived(body)

    def _drop_body(self) -> None:
        self._body = bytearray()
        self._decoder = None
        self._early = False
        self._release()

    # Bodies whose request is judged by its head.

    def _serve_head(self, request: KubeRequest, expected: bool) -> None:
        """Serve a request whose body is still to come; the rest of that is left in the network until it is wanted."""
        self._early = True
        self._wanted = False
        self._expected = expected
        self._handlingRequest = True
        self.deadline = None
        # An answer that begins before the body is through ends the connection, and has to say so.
        self._lasting, self.persistent = self.persistent, 0
        request.body_pending = True
        request.serve(b"")
        if self._state == _BODY and not self._wanted:
            self.read_no_further()

    def collect(self, request: KubeRequest) -> bool:
        """
        Go on to read the body of a request that L{_serve_head} serves.

        @return: Whether there is room for it.
        """
        user = request.user
        anonymous = user is None or UNAUTHENTICATED in user.groups
        place = place_of(getattr(self.transport.getPeer(), "host", ""))
        self._share = (("" if user is None or anonymous else user.name, place), anonymous)
        size = len(self._body) + (self._missing or 0)
        if size > SMALL_BODY and not self._reserve(size):
            return False
        self._wanted = True
        self._begin_body()
        if self._expected:
            self.tell_to_send()
        self.read_on()
        return True

    def _reserve(self, size: int) -> bool:
        assert self._share is not None, "it is known whose body it is"
        client, anonymous = self._share
        if not self.site.bodies.reserve(client, size, anonymous=anonymous):
            return False
        self._reserved += size
        return True

    def _release(self) -> None:
        """The bodies for which something is reserved are needed no more."""
        if self._reserved:
            assert self._share is not None, "something is reserved"
            client, anonymous = self._share
            self.site.bodies.release(client, self._reserved, anonymous=anonymous)
            self._reserved = 0
        self._wanted = False

    def _too_large(self, request: KubeRequest, arrived: int, length: int | None) -> None:
        """Answer without the body; what still comes of it is thrown away, and the connection ends."""
        early = self._early
        self._drop_body()
        self.persistent = 0
        self._state = _DISCARD
        self._missing = None if length is None else length - arrived
        self._discarded = 0
        self.deadline = None
        self._handlingRequest = True
        request.body_too_large = True
        if early:
            request.body_arrived(b"")
        else:
            request.serve(b"")

    def _discard(self, arrived: int) -> None:
        self._discarded += arrived
        if self._discarded > MAX_DISCARDED:
            self.abort()
        elif self._missing is not None:
            self._missing -= arrived
            if self._missing <= 0 and self.idle:
                self.loseConnection()  # type: ignore[no-untyped-call]

    # Bodies that are passed on.

    def _stream(self, request: KubeRequest, length: int | None, rest: bytes, expected: bool) -> None:
        """Serve a request whose body arrives while it is answered."""
        body = request.streamed = self._streamed = StreamedBody(self, length, expected)
        self._state = _STREAM
        self._handlingRequest = True
        self.deadline = None
        self._missing = length
        if length is None:
            self._decoder = _ChunkedTransferDecoder(body.received, self._stream_finished)
        # An answer that begins before the body is through ends the connection, and has to say so.
        self._lasting, self.persistent = self.persistent, 0
        if rest:
            self._stream_received(rest)
        request.serve(b"")
        if self._state == _STREAM and not body.taken:
            self.read_no_further()

    def _stream_received(self, data: bytes) -> None:
        if self._decoder is not None:
            self._decoder.dataReceived(data)
            return
        missing = self._missing or 0
        body = self._streamed
        assert body is not None, "a body is streamed"
        self._missing = max(missing - len(data), 0)
        body.received(data if len(data) <= missing else data[:missing])
        if len(data) >= missing:
            self._stream_finished(data[missing:])

    def _stream_finished(self, rest: bytes) -> None:
        body = self._streamed
        if self._state != _STREAM or body is None:
            return
        self._streamed = self._decoder = None
        self._state = _ANSWER
        self._buffer = rest
        if not self.requests[0].startedWriting:
            self.persistent = self._lasting
        body.finish()
        if self._state == _ANSWER:
            self.read_on()

    def tell_to_send(self) -> None:
        """The client waits for a word before it sends its body."""
        if not (self.requests and self.requests[0].startedWriting):
            self._send100Continue()  # type: ignore[no-untyped-call]

    def read_no_further(self) -> None:
        """Leave what the client sends in the network."""
        if not self._paused:
            self._paused = True
            self._networkProducer.pauseProducing()
            self.site.stalled[self] = self.site.now()

    def read_on(self) -> None:
        """Read what the client sends."""
        if self._paused:
            self._paused = False
            self.site.stalled.pop(self, None)
            self._networkProducer.resumeProducing()

    # Other protocols.

    def switch(self, protocol: Any) -> RawTransport:
        """Let C{protocol} have the connection; C{101} is written already."""
        ahead, self._buffer = self._buffer, b""
        self._state = _SWITCHED
        self._switched = protocol
        self.deadline = None
        self.persistent = 0
        self.transport.unregisterProducer()
        self.read_on()
        transport = RawTransport(self)
        protocol.makeConnection(transport)
        if ahead:
            protocol.dataReceived(ahead)
        return transport

    def part(self) -> None:
        """Another protocol is done: end the connection when the client has what was written, or does not take it."""
        self.deadline = self.site.now() + PARTING
        self.transport.loseConnection()

    # Answers.

    def _serve(self, request: KubeRequest, body: bytes, rest: bytes) -> None:
        self._buffer = rest
        self._state = _ANSWER
        self._handlingRequest = True
        self.deadline = None
        request.serve(body)

    def requestDone(self, request: Any) -> None:
        """The request is answered: go on with the next, or close."""
        del self.requests[0]
        if self._state == _STREAM:
            self._stop_streaming()
        elif self._state == _BODY:
            self._stop_collecting()
        elif self._reserved:
            self._release()
        if not self.persistent:
            if self._state == _DISCARD and (self._missing is None or self._missing > 0):
                # The client still sends; closed now, the connection would be reset before it has read the answer.
                self.deadline = self.site.now() + LINGER
            else:
                self.loseConnection()  # type: ignore[no-untyped-call]
            return
        self._handlingRequest = False
        self._state = _HEAD
        if not self._waitingForTransport:
            self.read_on()
        self.deadline = self.site.now() + (HEAD_TIMEOUT if self._buffer else IDLE_TIMEOUT)
        if self._buffer and not self._parsing:
            self._parse()

    def _stop_collecting(self) -> None:
        """The request is answered before its body has arrived."""
        self._stop_streaming()
        self._drop_body()

    def _stop_streaming(self) -> None:
        """The request is answered before its body was through."""
        if self._decoder is not None:
            self._missing = None
        self._streamed = self._decoder = None
        self._state = _DISCARD
        self._discarded = 0
        self.read_on()

    def cut(self) -> None:
        """End the connection in the middle of an answer, when what was written is sent."""
        if self._state == _STREAM:
            self._stop_streaming()
        elif self._state == _BODY:
            self._stop_collecting()
        self._state = _DISCARD
        self._missing = None
        self.persistent = 0
        self.deadline = self.site.now() + LINGER
        self.read_on()
        self.loseConnection()  # type: ignore[no-untyped-call]

    def refuse(self, code: int, why: str = "") -> None:
        """End the connection over something that is no request, in plain text as the reference does."""
        if self.requests and self.requests[0].startedWriting:
            # The end of a body is malformed whose request is being answered already.
            self.abort()
            return
        reason = b"%d %b" % (code, _REASONS[code])
        text = reason + (b": " + why.encode() if why else b"")
        retry = b"Retry-After: 1\r\n" if code == 429 else b""
        self.transport.write(
            b"HTTP/1.1 %b\r\n%bContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n" % (reason, retry)
            + b"Content-Length: %d\r\n\r\n%b" % (len(text), text)
        )
        self._drop_body()
        self._buffer = b""
        self._state = _DISCARD
        self._missing = None
        self._discarded = 0
        self.persistent = 0
        pending, self.requests = self.requests, []
        for request in pending:
            request.connectionLost(Failure(ConnectionDone()))
        self.deadline = self.site.now() + LINGER
        self.loseConnection()  # type: ignore[no-untyped-call]

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """As L{twisted.internet.interfaces.IConsumer}; who comes while the client does not read has to wait at once."""
        super().registerProducer(producer, streaming)  # type: ignore[no-untyped-call]
        if streaming and self._waitingForTransport:
            producer.pauseProducing()

    def resumeProducing(self) -> None:
        """The transport takes more."""
        if is_left(self.transport):
            # TLS closes what is below it, which waits for its producer, and is not read meanwhile.
            self.transport.unregisterProducer()
            return
        super().resumeProducing()  # type: ignore[no-untyped-call]
        if not self._handlingRequest:
            self.read_on()
            self._parse()

    # Patience.

    def look_whether_gone(self) -> None:
        """End a connection whose client has gone while nobody took what it sent; for long, or it will be taken yet."""
        if has_hung_up(self.transport):
            self.abort()

    def patience_over(self) -> None:
        """The deadline has passed."""
        self.deadline = None
        if self._state == _DISCARD or (self._state == _HEAD and not self._buffer):
            self.close()
        elif self._state in (_HEAD, _BODY):
            self.refuse(408)
        elif self._state == _SWITCHED:
            self.abort()

    def close(self) -> None:
        """End a connection that has no request open; abruptly if the client does not go along."""
        if self._state == _DISCARD:
            self.abort()
        else:
            self._state = _DISCARD
            self.deadline = self.site.now() + LINGER
            self.loseConnection()  # type: ignore[no-untyped-call]

    def abort(self) -> None:
        """End the connection now."""
        # Twisted's TLS can not do it twice.
        if self in self.site.channels:
            self.transport.abortConnection()

    def connectionLost(self, reason: Any) -> None:  # type: ignore[override]
        """The client is gone."""
        self.site.disconnected(self)
        if not self.remembered and isinstance(reason, Failure) and reason.check(SSL.Error):
            # Nothing was ever asked on it: it did not come to a connection.
            self.site.failed_handshakes += 1
        self.deadline = None
        self._buffer = b""
        self._drop_body()
        switched, self._switched = self._switched, None
        try:
            if switched is not None:
                switched.connectionLost(reason)
        finally:
            super().connectionLost(reason)  # type: ignore[no-untyped-call]
            self.requests = []
            self._requestProducer = None

    def finish_with_this(self) -> None:
        """Take no more requests than the one that is open, if there is one."""
        self.persistent = self._lasting = 0

    @property
    def unflushed(self) -> bool:
        """Whether much is written that the client has not taken yet."""
        return self._waitingForTransport

    @property
    def idle(self) -> bool:
        """Whether no request is open."""
        return not self.requests


#: Values of Host headers that are well-formed; clients use few.
_HOSTS: Final[set[bytes]] = set()
#: As C{ValidHostHeader} of golang.org/x/net/http/httpguts has it.
_HOST: Final = re.compile(rb"[!$%&'()*+,.:;=\[\]_~0-9A-Za-z-]*")


def _known_host(host: bytes) -> bool:
    if not _HOST.fullmatch(host):
        return False
    if len(_HOSTS) < _NAMES_KEPT and len(host) < 256:
        _HOSTS.add(host)
    return True


def _field_name(name: bytes, colon: bytes) -> bytes:
    """A field's name in lower case, checked and remembered."""
    if not colon or not _TOKEN.fullmatch(name):
        raise Malformed(400)
    known = name.lower()
    if len(_NAMES) < _NAMES_KEPT and len(name) < 64:
        _NAMES[name] = known
    return known
