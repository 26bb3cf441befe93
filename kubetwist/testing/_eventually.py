"""
C{eventually}: evaluate a function of a test after each change in a server, until it passes.

Servers whose storage can be observed notify of all changes. For a server in another process that is not controlled by
the test, named resources are watched.
"""

from __future__ import annotations

import inspect
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..api.jsontypes import JSONObject
from ._connection import Connection
from ._waiting import DEFAULT_TIMEOUT, WaitTimeout

if TYPE_CHECKING:
    from ..server.service import KubeAPIService
    from ._changes import ChangeServer
    from ._inprocess import InProcessServer
    from ._objectwatch import ObjectClient, ObjectWatch

_CHUNK: Final = 64 * 1024
#: Names of exceptions of client libraries for objects that do not exist.
_NOT_FOUND: Final = frozenset({"NotFoundError", "ObjectDoesNotExist"})
#: Resources that change by themselves; they are not shown as the last change.
_QUIET: Final = ("leases", "events", "masterleases")


class Attempts:
    """
    Evaluates a function of a test.

    @ivar error: The last error that means "not yet"; L{None} if there was none.
    """

    def __init__(self, function: Callable[[], Any], timeout: float) -> None:
        """
        @raise ValueError: The timeout is negative.
        """
        if timeout < 0:
            raise ValueError(f"timeout is {timeout}, must not be negative")
        self.error: BaseException | None = None
        self._function = function
        self._timeout = timeout
        self._count = 0
        self._problem = ""

    def evaluate(self) -> Any:
        """
        Call the function.

        @raise Exception: What the function raised.
        """
        self._count += 1
        return self._function()

    def passes(self, result: Any) -> bool:
        """Return whether a result passes: L{None}, or a true value."""
        self.error = None
        self._problem = f"it returned {result!r}"[:500]
        return result is None or bool(result)

    def is_not_yet(self, error: Exception) -> bool:
        """Return whether an exception means "not yet": an assertion, or an object that does not exist."""
        self.error = error
        self._problem = f"{type(error).__name__}: {error}"
        return isinstance(error, AssertionError) or _is_not_found(error)

    def timed_out(self, last_change: str) -> WaitTimeout:
        """
        Return the error after the timeout.

        @param last_change: The last object that was seen, as text.
        """
        name = getattr(self._function, "__qualname__", None) or repr(self._function)
        lines = [f"{name} did not pass within {self._timeout:g} s, evaluated {self._count} times: {self._problem}"]
        lines.append(last_change or "no change was seen")
        return WaitTimeout("\n".join(lines))


def _is_not_found(error: BaseException) -> bool:
    """Return whether an exception of a client library means that an object does not exist."""
    if type(error).__name__ in _NOT_FOUND:
        return True
    status, response = getattr(error, "status", None), getattr(error, "response", None)
    codes = (status, getattr(status, "code", None), getattr(response, "status_code", None))
    return 404 in codes


class Changes(Protocol):
    """Changes in a server, as they arrive."""

    def wait(self, deadline: float) -> bool:
        """
        Wait for a change since the last call; return whether there was one before the deadline.

        @param deadline: By L{time.monotonic}.
        """

    def describe(self) -> str:
        """Return the last object that was seen as text; C{""} if there was none."""

    def close(self) -> None:
        """Stop."""


class StorageFeed:
    """All changes in a server, from the socket of L{kubetwist.testing._changes}."""

    def __init__(self, path: str) -> None:
        self._last: JSONObject | None = None
        self._buffer = b""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)

    def wait(self, deadline: float) -> bool:
        """See L{Changes.wait}."""
        if not self._receive(deadline - time.monotonic()):
            return False
        # What has arrived until now is one change for the test.
        while self._receive(0):
            pass
        return True

    def _receive(self, seconds: float) -> bool:
        if seconds < 0:
            return False
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(_CHUNK)
        except (TimeoutError, BlockingIOError):
            return False
        if not data:
            raise ConnectionError("the server stopped")
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            change = json.loads(line)
            if change and not is_quiet(change["key"]):
                self._last = change
        return bool(lines) or self._receive(1)

    def describe(self) -> str:
        """See L{Changes.describe}."""
        return "" if self._last is None else describe_change(self._last)

    def close(self) -> None:
        """See L{Changes.close}."""
        self._socket.close()


def is_quiet(key: str) -> bool:
    """Return whether a key belongs to a resource that changes by itself."""
    return any(f"/{resource}/" in key for resource in _QUIET)


def describe_change(change: JSONObject) -> str:
    """Return a change as text: its key, and the object if it is part of the change."""
    from ._describing import to_yaml

    kind = "deletion" if change.get("deleted") else "change"
    text = f"last {kind}: {change['key']} at revision {change['revision']}"
    return f"{text}\n{_indent(to_yaml(change['object']))}" if "object" in change else text


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


class WatchedChanges:
    """The changes of named resources, each watched by a thread."""

    def __init__(self, connection: Connection, resources: Iterable[object], deadline: float) -> None:
        """
        @param resources: References to resources, perhaps with the name of one object.
        @param deadline: When the watches end.
        @raise kubetwist.testing._references.UnknownResourceError: The server does not have a resource.
        """
        from ._objectwatch import ObjectClient, ObjectWatch
        from ._references import Reference, ResourceTable

        self._condition = threading.Condition()
        self._changes = 0
        self._seen = 0
        self._last: JSONObject | None = None
        self._error: Exception | None = None
        self._clients: list[ObjectClient] = []
        client = ObjectClient(connection, deadline)
        try:
            table = ResourceTable.fetch(client.discover)
        finally:
            client.disconnect()
        found = []
        for reference in map(Reference.of, resources):
            resource = table.find(reference)
            selection = {"fieldSelector": f"metadata.name={reference.name}"} if reference.name else {}
            client = ObjectClient(connection, deadline)
            self._clients.append(client)
            found.append(ObjectWatch(client, resource, resource.path(), selection))
        for watch in found:
            threading.Thread(target=self._follow, args=[watch], name="kubetwist watch", daemon=True).start()
        with self._condition:
            self._condition.wait_for(
                lambda: self._error is not None or all(watch.synced for watch in found),
                max(deadline - time.monotonic(), 0),
            )
            self._raise()
            self._seen = self._changes

    def _follow(self, watch: ObjectWatch) -> None:
        from ._objectwatch import DeadlineError

        try:
            for _ in watch.changes():
                with self._condition:
                    self._changes += 1
                    self._last = watch.last or self._last
                    self._condition.notify_all()
        except DeadlineError:
            pass
        except Exception as error:
            with self._condition:
                self._error = error
                self._condition.notify_all()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def wait(self, deadline: float) -> bool:
        """See L{Changes.wait}."""
        with self._condition:
            self._condition.wait_for(
                lambda: self._error is not None or self._changes != self._seen, max(deadline - time.monotonic(), 0)
            )
            self._raise()
            changed, self._seen = self._changes != self._seen, self._changes
            return changed

    def describe(self) -> str:
        """See L{Changes.describe}."""
        from ._describing import to_yaml

        return "" if self._last is None else f"last object seen:\n{_indent(to_yaml(self._last))}"

    def close(self) -> None:
        """See L{Changes.close}."""
        for client in self._clients:
            client.cancel()


def evaluate_until_passed(attempts: Attempts, changes: Changes, deadline: float) -> Any:
    """
    Evaluate a function now, after each change, and once more at the deadline.

    @return: The result that passed.
    @raise WaitTimeout: None passed.
    """
    over = False
    while True:
        try:
            result = attempts.evaluate()
        except Exception as error:
            if not attempts.is_not_yet(error):
                raise
        else:
            if inspect.isawaitable(result):
                if inspect.iscoroutine(result):
                    result.close()
                raise TypeError("eventually() of this server takes functions that block, not async functions")
            if attempts.passes(result):
                return result
        if over:
            raise attempts.timed_out(changes.describe()) from attempts.error
        over = not changes.wait(deadline)


class EventuallyMixin:
    """Adds C{eventually} to servers whose methods block."""

    if TYPE_CHECKING:

        @property
        def connection(self) -> Connection:
            """Return the connection data."""
            raise NotImplementedError

    def eventually(
        self, function: Callable[[], Any], *, watching: Iterable[object] = (), timeout: float = DEFAULT_TIMEOUT
    ) -> Any:
        """
        Evaluate a function after each change in the server, until it passes.

        It passes if it returns L{None} or a true value. It does not pass if it raises an C{AssertionError}, or an error
        of a client library for an object that does not exist; other exceptions are raised.

        @param function: A function without parameters, such as one with assertions.
        @param watching: The resources whose changes count: C{"pods"}, C{"deployments.apps/web"}. By default all changes
            count; C{SubprocessServer} requires names.
        @param timeout: Seconds of real time. At their end the function is evaluated once more.
        @return: What the function returned.
        @raise WaitTimeout: It did not pass in time.
        """
        attempts = Attempts(function, timeout)
        deadline = time.monotonic() + timeout
        changes = self._changes(tuple(watching), deadline)
        try:
            return evaluate_until_passed(attempts, changes, deadline)
        finally:
            changes.close()

    def _changes(self, watching: tuple[object, ...], deadline: float) -> Changes:
        if watching:
            return WatchedChanges(self.connection, watching, deadline)
        change_socket = getattr(self, "change_socket", None)
        if change_socket is None:
            raise ValueError("name the resources whose changes count for this server: watching=['pods']")
        feed = StorageFeed(change_socket())
        # The first line arrives when the storage is observed.
        feed.wait(deadline)
        return feed


class BlockingChangesMixin:
    """Adds the socket with changes to servers whose reactor runs in another thread."""

    _server: InProcessServer

    if TYPE_CHECKING:

        def _do(self, function: Any, *arguments: Any, **more: Any) -> Any:
            """Call a function in the thread of the reactor."""

    def change_socket(self) -> str:
        """Return the path of a socket with the changes in the storage."""
        path: str = self._do(self._server.change_socket)
        return path


class AsyncEventuallyMixin:
    """Adds C{eventually} to servers on the reactor, where it is awaited."""

    _reactor: Any
    _service: KubeAPIService | None
    _temporary: Any
    _change_server: ChangeServer | None = None

    @property
    def _change_source(self) -> ChangeServer:
        if self._change_server is None:
            assert self._service is not None and self._service.server is not None, "the server does not run"
            from ._changes import ChangeServer

            config = self._service.server.config
            prefix = config.options["etcd-prefix"].rstrip("/") + "/"
            self._change_server = ChangeServer(config.backend, prefix, Path(self._temporary.name), self._reactor)
        return self._change_server

    def change_socket(self) -> str:
        """Return the path of a socket with the changes in the storage."""
        return self._change_source.listen()

    async def _stop_changes(self) -> None:
        server, self._change_server = self._change_server, None
        if server is not None:
            await server.stop()

    async def eventually(self, function: Callable[[], Any], *, timeout: float = DEFAULT_TIMEOUT) -> Any:
        """
        As L{EventuallyMixin.eventually}; the function is called in the reactor's thread, and may return an awaitable.

        @param function: A function without parameters.
        @param timeout: Seconds of real time.
        """
        from twisted.internet.defer import Deferred

        attempts = Attempts(function, timeout)
        changes = self._change_source.changes
        changed: Deferred[bool] = Deferred()
        last: JSONObject | None = None

        def observe(event: Any) -> None:
            from ._changes import change_line

            nonlocal last
            if not is_quiet(event.key):
                last = json.loads(change_line(event))
            if not changed.called:
                # After the other observers of this change, such as caches.
                self._reactor.callLater(0, fire, changed, True)

        def fire(waiting: Deferred[bool], value: bool) -> None:
            if not waiting.called:
                waiting.callback(value)

        await changes.subscribe(observe)
        timer = self._reactor.callLater(timeout, lambda: fire(changed, False))
        over = timeout == 0
        try:
            while True:
                changed = Deferred()
                try:
                    result = attempts.evaluate()
                    if inspect.isawaitable(result):
                        result = await result
                except Exception as error:
                    if not attempts.is_not_yet(error):
                        raise
                else:
                    if attempts.passes(result):
                        return result
                if over:
                    raise attempts.timed_out("" if last is None else describe_change(last)) from attempts.error
                if not timer.active():
                    over = True
                    continue
                over = not await changed
        finally:
            changes.unsubscribe(observe)
            with suppress(Exception):
                timer.cancel()
