"""Commands that run through a translator."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kubetwist.streams.channels import V1, V4
from kubetwist.streams.commands import Command
from kubetwist.streams.kubeletserver import Session, spdy_head, spdy_session
from kubetwist.streams.translator import StreamTranslator
from kubetwist.streams.websocket import WebSocketConnection
from tests.streams.wires import Wire, pump

TARGET = b"/exec/default/web/main?command=sh"


ALL = Command(stdin=True, stdout=True, stderr=True)


class _Response:
    """The response of a kubelet."""

    def __init__(self, code: int = 101, fields: Sequence[tuple[bytes, bytes]] = (), body: bytes | Exception = b""):
        self.code = code
        self.switched = code == 101
        self.fields = [(name.lower(), value) for name, value in fields]
        self.body = body
        self.aborted = False
        self.taken: list[Any] = []

    def field(self, name: bytes) -> bytes | None:
        return next((value for one, value in self.fields if one == name), None)

    def abort(self) -> None:
        self.aborted = True

    async def collect(self, limit: int) -> bytes:
        if isinstance(self.body, Exception):
            raise self.body
        return self.body

    def hijack(self, protocol: Any) -> None:
        self.taken.append(protocol)


class _Run:
    """A running command with its client, the translator and a kubelet."""

    def __init__(self, command: Command = ALL, version: str | None = V4) -> None:
        self.clock = Clock()
        self.command = command
        self.version = version
        self.calls: list[tuple[bytes, bytes, list[tuple[bytes, bytes]]]] = []
        self.sessions: list[Session] = []
        self.wires: list[Wire] = []
        self.messages: list[bytes] = []
        self.ends: list[bool] = []
        self.answer: Any = None
        self.on_start: Callable[[Session], object] = lambda session: None
        self.settings = SimpleNamespace(url="https://10.0.0.1:10250/")
        self.translator = StreamTranslator(self.clock, command)
        self.client = WebSocketConnection(self.clock, self, client=True)
        self.front = Wire(self.translator.websocket, self.client)
        self.wires.append(self.front)
        self.done: Any = None

    # Events of the client.

    def message_received(self, data: bytes, finished: bool) -> None:
        if self.messages and self.partial:
            self.messages[-1] += data
        else:
            self.messages.append(data)
        self.partial = not finished

    partial = False

    def closed(self, clean: bool) -> None:
        self.ends.append(clean)

    # The connection to the kubelet.

    async def upgrade(self, method: bytes, target: bytes, fields: list[tuple[bytes, bytes]]) -> Any:
        self.calls.append((method, target, fields))
        if isinstance(self.answer, Exception):
            raise self.answer
        if isinstance(self.answer, Deferred):
            return await self.answer
        return self.answer if self.answer is not None else self.kubelet()

    def kubelet(self) -> Any:
        """Return the response of a kubelet that runs the command."""
        version = self.version
        head = spdy_head(version or "")[: None if version else 2]
        answer = _Response(101, head)
        backend = spdy_session(self.command, version or V1, self.start, self.clock)
        answer.hijack = lambda protocol: self.wires.append(Wire(protocol, backend))  # type: ignore[method-assign]
        return answer

    def ready(self) -> None:
        """Let the kubelet respond, if it has not."""
        if isinstance(self.answer, Deferred) and not self.answer.called:
            self.answer.callback(self.kubelet())

    def start(self, session: Session) -> None:
        self.sessions.append(session)
        self.on_start(session)

    # Actions of tests.

    def begin(self) -> None:
        self.done = Deferred.fromCoroutine(self.translator.run(self, TARGET, [(b"x-more", b"1")]))  # type: ignore[arg-type]
        self.pump()

    def pump(self, size: int = 1 << 16) -> None:
        pump(self.clock, *self.wires, size=size)

    def send(self, channel: int, data: bytes) -> None:
        self.client.send(bytes((channel,)) + data)
        self.pump()

    @property
    def session(self) -> Session:
        (session,) = self.sessions
        return session

    def channel(self, number: int) -> bytes:
        """Return all data that the client received on a channel."""
        return b"".join(message[1:] for message in self.messages if message[0] == number)

    def status(self) -> dict[str, Any]:
        """Return the status of the command that the client received."""
        status: dict[str, Any] = json.loads(self.channel(3))
        return status


def running(command: Command = ALL, version: str | None = V4) -> _Run:
    """Return a started command."""
    run = _Run(command, version)
    run.begin()
    return run
