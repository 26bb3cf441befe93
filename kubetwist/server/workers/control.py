"""
The control connection between the storage process and a front: calls in both directions, as JSON.

It is a pair of sockets that the front inherits. It ends when one of the processes ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import Any, Final

import orjson

from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory, connectionDone
from twisted.logger import Logger
from twisted.protocols.basic import Int32StringReceiver
from twisted.python.failure import Failure

#: Maximum size of a message in bytes. The metrics of a process are the largest ones.
MAX_MESSAGE: Final = 128 << 20
_CALL: Final = 0
_RESULT: Final = 1
_ERROR: Final = 2


class ControlError(Exception):
    """The other process cannot be called, or its handler has failed."""


#: The functions that the other process may call, by name. Arguments and results are JSON values.
Handlers = Mapping[str, Callable[..., object]]


class ControlConnection(Int32StringReceiver):
    """One end of the connection."""

    MAX_LENGTH = MAX_MESSAGE
    _log = Logger()

    def __init__(self, handlers: Handlers, on_lost: Callable[[], object]) -> None:
        """
        @param handlers: The functions that the other process may call.
        @param on_lost: Called when the connection has ended.
        """
        self._handlers = handlers
        self._on_lost = on_lost
        self._calls: dict[int, Deferred[Any]] = {}
        self._last = 0

    def call(self, name: str, *arguments: object) -> Deferred[Any]:
        """
        Call a function of the other process.

        @param arguments: JSON values.
        @return: Fires with the result, a JSON value; fails with L{ControlError}.
        """
        if not self.connected:
            return fail(ControlError("the connection is closed"))
        self._last += 1
        result = self._calls[self._last] = Deferred()
        self._send(_CALL, self._last, name, arguments)
        return result

    def close(self) -> None:
        """Close the connection after everything that was written."""
        if self.connected:
            assert self.transport is not None
            self.transport.loseConnection()

    def _send(self, *message: object) -> None:
        if self.connected:
            self.sendString(orjson.dumps(message))  # type: ignore[no-untyped-call] # Twisted has no annotations

    def stringReceived(self, string: bytes) -> None:
        """See L{Int32StringReceiver.stringReceived}: run a function, or finish a call."""
        kind, number, value, *arguments = orjson.loads(string)
        if kind == _CALL:
            running = Deferred.fromCoroutine(self._run(value, arguments[0]))
            running.addCallbacks(
                lambda result: self._send(_RESULT, number, result), lambda failure: self._failed(number, value, failure)
            )
            return
        call = self._calls.pop(number)
        if kind == _RESULT:
            call.callback(value)
        else:
            call.errback(ControlError(value))

    async def _run(self, name: str, arguments: list[Any]) -> object:
        result = self._handlers[name](*arguments)
        return await result if isawaitable(result) else result

    def _failed(self, number: int, name: str, failure: Failure) -> None:
        if not failure.check(ControlError):
            self._log.failure("a call of the other process failed: name={name}", failure, name=name)
        self._send(_ERROR, number, failure.getErrorMessage())

    def lengthLimitExceeded(self, length: int) -> None:
        """See L{Int32StringReceiver.lengthLimitExceeded}: end the connection."""
        self._log.error("a message of another process has {length} bytes", length=length)
        super().lengthLimitExceeded(length)  # type: ignore[no-untyped-call] # Twisted has no annotations

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See L{Int32StringReceiver.connectionLost}: fail all calls."""
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.errback(ControlError("the other process has ended"))
        self._on_lost()


class SingleConnectionFactory(Factory):
    """Passes one existing protocol to a connection that exists already."""

    noisy = False

    def __init__(self, protocol: ControlConnection) -> None:
        self._protocol = protocol

    def buildProtocol(self, addr: IAddress | None) -> ControlConnection:
        """See L{Factory.buildProtocol}."""
        return self._protocol
