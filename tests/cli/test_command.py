# mypy: allow-untyped-calls
"""Tests for L{kubetwist.cli.command}."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli import backup
from kubetwist.cli.command import FAILED, CommandError, CommandService
from kubetwist.storage.errors import StorageUnavailable


class FakeReactor:
    """A reactor that runs until it is stopped."""

    running = True

    def callWhenRunning(self, call: Callable[..., object], *args: object) -> None:
        """Call the function immediately."""
        call(*args)

    def callFromThread(self, call: Callable[..., object], *args: object) -> None:
        """Call the function immediately."""
        call(*args)

    def stop(self) -> None:
        """Stop running."""
        self.running = False


class CommandServiceTests(SynchronousTestCase):
    """Exit codes and output of commands."""

    def setUp(self) -> None:
        """Capture the output."""
        self.reactor = FakeReactor()
        self.out, self.err = io.StringIO(), io.StringIO()
        self.patch(sys, "__stdout__", self.out)
        self.patch(sys, "__stderr__", self.err)
        self.options = backup.Options()

    def run_command(self, work: Callable[[CommandService], Any]) -> CommandService:
        """Run a command."""
        service = CommandService(self.options, self.reactor, work)
        service.startService()
        return service

    def test_done(self) -> None:
        """A successful command exits with 0."""

        async def work(service: CommandService) -> None:
            service.print_line("done")

        service = self.run_command(work)
        self.assertEqual((service.code, self.reactor.running), (0, False))
        self.assertEqual((self.out.getvalue(), self.err.getvalue()), ("done\n", ""))

    def test_failed(self) -> None:
        """An expected error is printed in one line."""
        for error in (CommandError("no way"), StorageUnavailable("no way")):
            self.setUp()

            async def work(service: CommandService, error: Exception = error) -> None:
                raise error

            service = self.run_command(work)
            self.assertEqual((service.code, self.reactor.running), (FAILED, False))
            self.assertEqual(self.err.getvalue(), "twist kubeapi-backup: no way\n")

    def test_bug(self) -> None:
        """A bug is printed in one line, and logged."""

        async def work(service: CommandService) -> None:
            raise ZeroDivisionError("oops")

        service = self.run_command(work)
        self.assertEqual(service.code, FAILED)
        self.assertEqual(self.err.getvalue(), "twist kubeapi-backup: failed: ZeroDivisionError('oops')\n")
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

    def test_interrupted(self) -> None:
        """A signal cancels the command, including work in threads. The exit code is 128 plus the signal number."""
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            self.setUp()
            cleaned: list[bool] = []

            async def work(service: CommandService, cleaned: list[bool] = cleaned) -> None:
                try:
                    await Deferred()
                finally:
                    cleaned.append(service.cancelled.is_set())

            service = self.run_command(work)
            self.assertTrue(self.reactor.running)
            service._handle_signal(number, None)
            self.assertEqual((service.code, self.reactor.running, cleaned), (code, False, [True]))
            self.assertEqual(self.err.getvalue(), "")
