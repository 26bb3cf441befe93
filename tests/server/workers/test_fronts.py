"""Tests for L{kubetwist.server.workers.fronts}, with processes in memory."""

from __future__ import annotations

import errno
import socket
from typing import Any

from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.error import ProcessDone, ProcessTerminated
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.connection.connectionlimit import ConnectionLimiter
from kubetwist.server.errors import StartError
from kubetwist.server.workers.description import VARIABLE, FrontDescription
from kubetwist.server.workers.fronts import (
    CALL_TIMEOUT,
    FIRST_DELAY,
    MAX_DELAY,
    STABLE_SECONDS,
    Front,
    FrontCommand,
    Fronts,
    front_command,
)
from kubetwist.server.workers.passing import ConnectionAcceptor

from .descriptorreactor import DescriptorReactor


class SpawnedProcess:
    """A process that was started."""

    def __init__(self, protocol: Any, arguments: list[str], environment: dict[str, str], pid: int) -> None:
        self.protocol = protocol
        self.arguments = arguments
        self.environment = environment
        self.pid = pid

    def end(self, code: int | None = 0, signal: int | None = None) -> None:
        """End with a code, or by a signal."""
        error = ProcessTerminated(code, signal, None) if code or signal else ProcessDone(0)
        self.protocol.processEnded(Failure(error))


class ProcessReactor(DescriptorReactor):
    """A reactor that starts processes in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[SpawnedProcess] = []

    def spawnProcess(self, protocol: Any, program: str, arguments: Any, environment: Any, **options: Any) -> Any:
        """Start a process."""
        process = SpawnedProcess(protocol, arguments, environment, 100 + len(self.processes))
        self.processes.append(process)
        return process

    def adoptStreamConnection(self, descriptor: int, family: int, factory: Any) -> None:
        """Connect a protocol in memory."""
        factory.buildProtocol(None).makeConnection(StringTransport())


class FrontsTests(SynchronousTestCase):
    """Tests for L{Fronts}."""

    def setUp(self) -> None:
        """Start two fronts."""
        self.reactor = ProcessReactor()
        self.acceptor = ConnectionAcceptor(socket.socket(), self.reactor, ConnectionLimiter())  # type: ignore[arg-type]
        self.addCleanup(self.acceptor.close)
        self.created: list[Front] = []
        self.fronts = Fronts(
            2,
            FrontCommand(["python", "-m", "twisted"], {"PATH": "/bin"}),
            lambda number: FrontDescription(number, 2, 6443, "/data"),
            self.handlers,
            self.acceptor,
            self.reactor,
        )
        self.fronts.start()
        self.addCleanup(self.end_all)

    def handlers(self, front: Front) -> dict[str, Any]:
        """Return no functions."""
        self.created.append(front)
        return {}

    def end_all(self) -> None:
        """End all processes, which closes their sockets."""
        self.fronts.stopping = True
        for front in self.created:
            if front.ended is not None and not front.ended.called:
                front.processEnded(Failure(ProcessDone(0)))

    def sent(self, front: Front) -> bytes:
        """Return what was sent to a front since the last call."""
        assert front.control is not None
        transport: Any = front.control.transport
        data: bytes = transport.value()
        transport.clear()
        return data

    def ready(self) -> None:
        """Let both fronts become ready."""
        begun = self.fronts.begin()
        for front in self.created:
            self.assertIn(b'"begin"', self.sent(front))
            front._ready()
        self.successResultOf(begun)

    def test_start(self) -> None:
        """Each front has the command line of the storage process, and its description in the environment."""
        for number, process in enumerate(self.reactor.processes, 1):
            self.assertEqual(process.arguments, ["python", "-m", "twisted"])
            description = FrontDescription(number, 2, 6443, "/data")
            self.assertEqual(process.environment, {"PATH": "/bin", VARIABLE: description.encode()})
        self.assertEqual([self.sent(front) for front in self.created], [b"", b""])

    def test_ready(self) -> None:
        """The server is ready when all fronts are; connections are passed to fronts that are ready."""
        begun = self.fronts.begin()
        self.created[0]._ready()
        self.assertEqual(len(self.acceptor.fronts), 1)
        self.assertNoResult(begun)
        self.created[1]._ready()
        self.successResultOf(begun)
        self.assertEqual(len(self.acceptor.fronts), 2)

    def test_failed_start(self) -> None:
        """The start fails if a front ends before all are ready."""
        begun = self.fronts.begin()
        self.created[0]._ready()
        self.reactor.processes[1].end(1)
        error = self.failureResultOf(begun, StartError).value
        self.assertEqual(str(error), "worker 2 has not started: exit code 1")

    def test_failed_early(self) -> None:
        """The start fails, too, if a front has ended before it may open the storage."""
        self.reactor.processes[0].end(None, 9)
        error = self.failureResultOf(self.fronts.begin(), StartError).value
        self.assertEqual(str(error), "worker 1 has not started: SIGKILL")

    def test_restart(self) -> None:
        """A front that ends is started again, begins at once, and gets connections again."""
        self.ready()
        self.reactor.processes[0].end(None, 9)
        self.assertEqual(len(self.acceptor.fronts), 1)
        self.reactor.advance(FIRST_DELAY)
        self.assertEqual(len(self.reactor.processes), 3)
        self.assertIn(b'"begin"', self.sent(self.created[0]))
        self.assertEqual(self.metrics(), {"workers": 2, "workers_ready": 1, "worker_restarts_total": 1})
        self.created[0]._ready()
        self.assertEqual(len(self.acceptor.fronts), 2)
        self.assertEqual(self.metrics(), {"workers": 2, "workers_ready": 2, "worker_restarts_total": 1})

    def metrics(self) -> dict[str, object]:
        """Return the metrics of the fronts."""
        return {one.name.removeprefix("kubetwist_"): dict(one.values)[()] for one in self.fronts.collect()}

    def test_backoff(self) -> None:
        """The delay doubles up to a maximum, and is short again after a front has run for a while."""
        self.ready()
        delay = FIRST_DELAY
        for _ in range(10):
            self.reactor.processes[-1].end(1)
            count = len(self.reactor.processes)
            self.reactor.advance(delay * 0.99)
            self.assertEqual(len(self.reactor.processes), count)
            self.reactor.advance(delay * 0.02)
            self.assertEqual(len(self.reactor.processes), count + 1)
            delay = min(2 * delay, MAX_DELAY)
        front = self.reactor.processes[-1].protocol
        front._ready()
        self.reactor.advance(STABLE_SECONDS)
        self.reactor.processes[-1].end(1)
        count = len(self.reactor.processes)
        self.reactor.advance(FIRST_DELAY)
        self.assertEqual(len(self.reactor.processes), count + 1)

    def test_failed_restart(self) -> None:
        """A restart that fails, for example without memory for a process, is tried again."""
        self.ready()
        real, self.reactor.spawnProcess = self.reactor.spawnProcess, self.fail_spawn  # type: ignore[method-assign]
        self.reactor.processes[0].end(1)
        self.reactor.advance(FIRST_DELAY)
        self.assertEqual(len(self.reactor.processes), 2)
        self.reactor.spawnProcess = real  # type: ignore[method-assign]
        self.reactor.advance(2 * FIRST_DELAY)
        self.assertEqual(len(self.reactor.processes), 3)

    def test_no_process(self) -> None:
        """The start of the server fails if the system cannot start a process."""
        self.reactor.spawnProcess = self.fail_spawn  # type: ignore[method-assign]
        fronts = Fronts(1, self.fronts.command, self.fronts.describe, lambda front: {}, self.acceptor, self.reactor)
        error = self.assertRaises(StartError, fronts.start)
        self.assertEqual(str(error), "cannot start worker 1: no more processes")
        self.successResultOf(self.deferred(fronts.stop()))

    def fail_spawn(self, *arguments: Any, **options: Any) -> Any:
        """Fail as the system does."""
        raise OSError(errno.EAGAIN, "no more processes")

    def test_stop(self) -> None:
        """A stop stops all fronts, and waits for their end; none is started again."""
        self.ready()
        stopped = self.deferred(self.fronts.stop())
        for front in self.created:
            self.assertIn(b'"stop"', self.sent(front))
        self.reactor.processes[0].end()
        self.assertNoResult(stopped)
        self.reactor.processes[1].end()
        self.successResultOf(stopped)
        self.reactor.advance(MAX_DELAY)
        self.assertEqual(len(self.reactor.processes), 2)

    def test_stop_before_begin(self) -> None:
        """Fronts that have not begun end because their connection is closed."""
        stopped = self.deferred(self.fronts.stop())
        for front in self.created:
            assert front.control is not None
            transport: Any = front.control.transport
            self.assertTrue(transport.disconnecting)
        for process in self.reactor.processes:
            process.end(1)
        self.successResultOf(stopped)

    def test_stop_during_restart(self) -> None:
        """A front that waits for its restart is not started."""
        self.ready()
        self.reactor.processes[0].end(1)
        stopped = self.deferred(self.fronts.stop())
        self.reactor.processes[1].end()
        self.successResultOf(stopped)
        self.reactor.advance(MAX_DELAY)
        self.assertEqual(len(self.reactor.processes), 2)

    def test_call_peers(self) -> None:
        """A function is called in all ready fronts but the caller."""
        self.ready()
        calls = self.fronts.call_peers(self.created[0], "verbosity", 3)
        self.assertEqual(len(calls), 1)
        self.assertIn(b'"verbosity",[3]', self.sent(self.created[1]))
        self.assertNoResult(calls[0])
        # A front that does not answer does not delay its peers for long.
        self.reactor.advance(CALL_TIMEOUT)
        self.failureResultOf(calls[0], TimeoutError)

    def deferred(self, coroutine: Any) -> Any:
        """Run a coroutine."""
        return Deferred.fromCoroutine(coroutine)


class CommandTests(SynchronousTestCase):
    """Tests for L{front_command}."""

    def test_command(self) -> None:
        """A front is started like its parent, and does not notify the service manager."""
        command = front_command(
            "/bin/python3",
            ["python", "-X", "dev", "/bin/twist", "kubeapi"],
            {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7", "HOME": "/"},
        )
        self.assertEqual(command.arguments, ["/bin/python3", "-X", "dev", "/bin/twist", "kubeapi"])
        self.assertEqual(command.environment, {"HOME": "/"})
