"""
Random clients of HTTP/2: frames that are legal, nearly legal, changed, or no frames at all.

L{Fuzzer.run} sends a number of frames on as many connections as it takes, and checks now and then that the server holds
little, and after each connection that nothing is left of it. The same seed sends the same frames.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from twisted.internet.interfaces import IConsumer
from twisted.internet.task import Clock
from zope.interface import implementer

from kubetwist.http.request import KubeRequest

from . import frames as h2
from .client import Client, Http2Case, get
from .endless import Endless

PATHS = (b"/a", b"/wait", b"/large", b"/stream", b"/unique", b"/endless", b"/pieces", b"/failure")
METHODS = (b"GET", b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"CONNECT")
NAMES = (b"x-a", b"accept", b"cookie", b"content-length", b"te", b"host", b"expect", b"Upper", b"connection", b":path")
VALUES = (b"", b"v", b"4", b"trailers", b"x", b"100-continue", b"a\r\nb", b"v" * 300, b"v" * 5000)
SETTINGS = tuple(range(10))
NUMBERS = (0, 1, 2, 5, 100, 16_383, 16_384, 65_535, 65_536, 1_000_000, h2.MAX_WINDOW, 2**31, 2**32 - 1)
#: Bytes that a connection may hold at any time, with its requests and responses.
MAX_HELD = 12 * 1024 * 1024


class Fuzzer:
    """
    Sends random frames to the site of a test.

    @ivar sent: The number of frames by type.
    @ivar ends: The number of connections by the code of the server's GOAWAY.
    @ivar most: The most bytes that a connection has held.
    """

    def __init__(self, case: Http2Case, seed: int) -> None:
        self._case = case
        self._random = Random(seed)
        self._client: Client | None = None
        legal = (
            (30, self._request),
            (25, self._data),
            (14, self._window_update),
            (6, self._reset),
            (5, self._ping),
            (5, self._priority),
            (4, self._settings),
            (3, self._trailers),
            (3, self._split_request),
            (2, self._unknown),
        )
        self._legal = tuple(step for _, step in legal)
        self._weights = tuple(weight for weight, _ in legal)
        self._illegal = (self._stray, self._changed, self._changed, self._garbage, self._goaway)
        #: The chance of a frame that is not legal, or a field of it; each connection has another one.
        self._wildness = 0.0
        #: Seconds that the server has needed so far, and what each look at its clock adds.
        self._elapsed = 0.0
        self._pace = 0.0
        case.site.connections.now = self._now
        self._next = 1
        #: The bytes that are missing of incomplete bodies, by stream; L{None} if no length was announced.
        self._bodies: dict[int, int | None] = {}
        self.sent: Counter[int] = Counter()
        self.ends: Counter[int | None] = Counter()
        self.most = 0

    def run(self, count: int) -> None:
        """Send this number of frames."""
        while self.sent.total() < count:
            self.step()
        self.end()

    def step(self) -> None:
        """Send a frame, or do what else happens."""
        client = self._client
        if client is None or client.closed or self._random.random() < 0.002:
            self.end()
            client = self._begin()
        if self._is_wild():
            data = self._random.choice(self._illegal)()
        else:
            data = self._random.choices(self._legal, self._weights)[0]()
        self.sent[data[3] if len(data) > 3 else -1] += 1
        if self._random.random() < 0.1:
            client.send_in_pieces(data, self._random.randrange(1, 40))
        else:
            client.send(data)
        self._happen(client)

    def end(self) -> None:
        """End the connection, and check that nothing is left of it."""
        client, self._client = self._client, None
        if client is None:
            return
        client.read()
        client.transport.hang_up()
        self._case.clock.advance(0)
        self.ends[None if client.goaway is None else client.goaway[1]] += 1
        ends = client.received(h2.GOAWAY)
        assert self._wildness or all(one.payload[7] in (h2.NO_ERROR, h2.ENHANCE_YOUR_CALM) for one in ends), ends
        case = self._case
        assert not case.site.open_requests, case.site.open_requests
        assert not case.site.long_running_requests
        assert not case.site.connections.channels
        assert not case.site.connections.stalled
        for request in case.waiting:
            # Answers that are too late have no effect.
            request.respond(200, b"late", b"text/plain")
        for each in (case.waiting, case.requests, case.served):
            each.clear()
        for failure in case.flushLoggedErrors():
            assert failure.check(FuzzedFailure), failure.getTraceback()

    def _begin(self) -> Client:
        self._wildness = self._random.choice((0.0, 0.002, 0.01, 0.05))
        self._pace = self._random.choice((0.0, 0.0, 0.0005, 0.002))
        settings = [self._setting() for _ in range(self._random.randrange(3))] if self._random.random() < 0.5 else []
        client = self._client = Client(self._case.site, *settings)
        client.keeps_data = False
        self._next = 1
        self._bodies.clear()
        return client

    def _now(self) -> float:
        self._elapsed += self._pace
        return self._case.clock.seconds() + self._elapsed

    def _is_wild(self) -> bool:
        return self._random.random() < self._wildness

    def _happen(self, client: Client) -> None:
        """Let handlers answer, clients read or stop reading, time pass; and check what is held."""
        case, random = self._case, self._random
        if case.waiting and random.random() < 0.2:
            self._answer(case.waiting.pop(random.randrange(len(case.waiting))))
        chance = random.random()
        if chance < 0.02:
            client.reading = not client.reading
            client.read(random.choice((0, 100, 100_000, None)))
        elif chance < 0.04:
            client.opens_windows = random.choice((0, 30_000))
        elif chance < 0.05:
            case.clock.advance(random.choice((0.1, 1, 1, 5, 40)))
        elif chance < 0.06:
            held = case.held(client)
            self.most = max(self.most, held)
            assert held < MAX_HELD, f"{held} bytes are held"
            assert len(case.site.open_requests) <= client.server_settings.get(h2.MAX_CONCURRENT_STREAMS, 1000)
        case.clock.advance(0)

    def _answer(self, request: KubeRequest) -> None:
        chance = self._random.random()
        body = request.streamed
        if body is not None and not body.consumed and not request.disconnected and chance < 0.7:
            reader = PausingReader(self._case.clock)
            request.deliver_body(reader).addCallbacks(
                lambda _: request.respond(200, b"read", b"text/plain"), lambda _: None
            )
            return
        if chance < 0.5:
            request.respond(self._random.choice((200, 201, 204, 304, 404)), b"", b"text/plain")
        elif chance < 0.7:
            request.respond(200, b"x" * self._random.choice((1, 100, 20_000, 200_000)), b"text/plain")
        elif chance < 0.8:
            request.write(b"some")
            request.truncate_response()
        elif chance < 0.85:
            request.abort()
        elif chance < 0.9:
            request.loseConnection()
        else:
            request.write(b"pieces")
            request.write(b"of a response")
            request.finish()

    # Frames.

    def _stream(self) -> int:
        """Return a stream: mostly one that was opened lately, and seldom any other."""
        if self._is_wild() or self._next == 1:
            return self._random.choice((0, 1, 2, self._next, self._next + 8, h2.MAX_WINDOW, 2**32 - 1))
        return max(1, self._next - 2 - 2 * int(self._random.expovariate(0.3)))

    def _body(self) -> int | None:
        """Return a stream whose body is not complete; mostly L{None} if there is none."""
        if self._is_wild():
            return self._stream()
        assert self._client is not None
        streams = self._client.streams
        # A client stops to send when it receives RST_STREAM.
        for number in [one for one in self._bodies if one in streams and streams[one].code is not None]:
            del self._bodies[number]
        if not self._bodies:
            return None
        return self._random.choice(list(self._bodies))

    def _fields(self) -> bytes:
        random = self._random
        fields = list(get(random.choice(PATHS), method=random.choices(METHODS, (40, 20, 5, 5, 5, 1, 1))[0]))
        while random.random() < 0.4:
            fields.append((random.choice(NAMES[:3]), random.choice(VALUES[:2])))
        if self._is_wild():
            fields.append((random.choice(NAMES), random.choice(VALUES)))
        if self._is_wild():
            random.shuffle(fields)
        if self._is_wild():
            del fields[random.randrange(len(fields))]
        block = b"".join(h2.literal(name, value, random.choice((0x00, 0x10, 0x40))) for name, value in fields)
        if random.random() < 0.1:
            block += h2.indexed(random.choice((16, 17, 19, 50, 58)))
        if self._is_wild():
            block += h2.indexed(random.randrange(130))
        if random.random() < 0.05:
            block = h2.table_size(random.choice((0, 60, 4096))) + block
        if self._is_wild():
            block = self._change(block)
        return block

    def _open(self, end: bool) -> int:
        if self._is_wild():
            return self._stream()
        number = self._next + 2 * self._random.choice((0, 0, 0, 0, 2))
        self._next = number + 2
        if not end:
            self._bodies[number] = None
        return number

    def _request(self) -> bytes:
        block, end = self._fields(), self._random.random() < 0.6
        number = self._open(end)
        if not end and self._random.random() < 0.4:
            length = self._bodies[number] = self._random.choice((0, 5, 3000, 70_000, 200_000, 4_000_000))
            block += h2.literal(b"content-length", b"%d" % length)
        if self._random.random() < 0.1:
            padding = self._random.randrange(20)
            return h2.headers(number, bytes((padding,)) + block + bytes(padding), end_stream=end, flags=h2.PADDED)
        if self._random.random() < 0.1:
            return h2.headers(number, b"\x00\x00\x00\x00\x0f" + block, end_stream=end, flags=h2.PRIORITIZED)
        return h2.headers(number, block, end_stream=end)

    def _split_request(self) -> bytes:
        block, end = self._fields(), self._random.random() < 0.6
        number, at = self._open(end), self._random.randrange(len(block) + 1)
        first = h2.headers(number, block[:at], end_headers=False, end_stream=end)
        return first + h2.continuation(number, block[at:], end_headers=not self._is_wild())

    def _data(self) -> bytes:
        number = self._body()
        if number is None:
            return self._request()
        payload = bytes(self._random.choice((0, 1, 4, 100, 3000, 16_000, 16_000)))
        missing = self._bodies.get(number)
        if missing is None:
            end = self._random.random() < 0.25
        else:
            payload = payload[:missing]
            end = len(payload) == missing or self._is_wild()
            self._bodies[number] = missing - len(payload)
        if end:
            self._bodies.pop(number, None)
        padding = self._random.randrange(256) if self._random.random() < 0.1 else None
        return h2.data(number, payload, end_stream=end, padding=padding)

    def _trailers(self) -> bytes:
        end = not self._is_wild()
        number = self._body()
        if number is None or (self._bodies.get(number) and not self._is_wild()):
            return self._request()
        if end:
            self._bodies.pop(number, None)
        wild = self._is_wild()
        fields = [
            (self._random.choice(NAMES if wild else NAMES[:1]), self._random.choice(VALUES if wild else VALUES[:2]))
        ]
        return h2.headers(number, fields, end_stream=end)

    def _window_update(self) -> bytes:
        increment = self._random.choice((1, 100, 10_000, 50_000))
        if self._is_wild():
            increment = self._random.choice(NUMBERS)
        return h2.window_update(self._random.choice((0, self._stream() if self._next > 1 else 0)), increment)

    def _setting(self) -> tuple[int, int]:
        name = self._random.choice(SETTINGS)
        usual = {h2.ENABLE_PUSH: (0, 1), h2.MAX_FRAME_SIZE: (16_384, 40_000, 2**24 - 1)}
        value = self._random.choice(usual.get(name, NUMBERS[:10]))
        return name, self._random.choice(NUMBERS) if self._is_wild() else value

    def _settings(self) -> bytes:
        if self._random.random() < 0.2:
            return h2.settings(flags=h2.ACK)
        return h2.settings(*(self._setting() for _ in range(self._random.randrange(4))))

    def _ping(self) -> bytes:
        return h2.ping(self._random.randbytes(8), self._random.choice((0, 0, h2.ACK, 0xFE)))

    def _priority(self) -> bytes:
        return h2.priority(self._stream() or 1, self._next + 20)

    def _reset(self) -> bytes:
        if self._next == 1:
            return self._request()
        number = self._stream()
        self._bodies.pop(number, None)
        return h2.reset(number, self._random.choice((0, 8, 0xFFFF)))

    def _goaway(self) -> bytes:
        return h2.goaway(self._random.choice(NUMBERS), self._random.randrange(16), b"debug")

    def _unknown(self) -> bytes:
        return h2.frame(self._random.randrange(10, 256), self._random.randrange(256), self._stream(), bytes(20))

    def _stray(self) -> bytes:
        """Return a frame of a known type with a random content."""
        size = self._random.choice((0, 1, 4, 5, 6, 8, 9, 200))
        return h2.frame(
            self._random.randrange(10), self._random.randrange(256), self._stream(), self._random.randbytes(size)
        )

    def _changed(self) -> bytes:
        return self._change(self._random.choice(self._legal)())

    def _garbage(self) -> bytes:
        return self._random.randbytes(self._random.randrange(1, 60))

    def _change(self, data: bytes) -> bytes:
        """Change, remove or add some bytes."""
        changed = bytearray(data)
        for _ in range(self._random.randrange(1, 4)):
            at = self._random.randrange(len(changed) + 1)
            action = self._random.randrange(4)
            if action == 0:
                changed[at:at] = self._random.randbytes(1)
            elif action == 1:
                del changed[at : at + self._random.randrange(4)]
            elif at < len(changed):
                changed[at] ^= 1 << self._random.randrange(8)
        return bytes(changed)


@implementer(IConsumer)
class PausingReader:
    """Reads a streamed body, with a pause after each piece."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._producer: Any = None

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Keep the producer."""
        self._producer = producer

    def unregisterProducer(self) -> None:
        """Drop the producer."""
        self._producer = None

    def write(self, data: bytes) -> None:
        """Drop the data, and pause."""
        if self._producer is not None:
            self._producer.pauseProducing()
            self._clock.callLater(0.1, self._resume)

    def _resume(self) -> None:
        if self._producer is not None:
            self._producer.resumeProducing()


class FuzzCase(Http2Case):
    """Base of tests with the fuzzer, whose site has handlers that write pieces, fail, or never end."""

    def handle(self, request: KubeRequest) -> None:
        """Answer by the path."""
        if request.path == b"/endless":
            Endless(request, 300_000)
        elif request.path == b"/pieces":
            request.write(b"one")
            request.write(b"two")
            request.finish()
        elif request.path == b"/failure":
            raise FuzzedFailure
        else:
            super().handle(request)


class FuzzedFailure(Exception):
    """The failure of a handler."""
