"""The part of a service manager that the server uses: C{sd_notify(3)} and the watchdog."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

#: Seconds that the server has for each step on a busy machine.
TIMEOUT = 60.0


class ManagedProcess:
    """
    A server that is started with the socket of a service manager.

    @ivar process: The process.
    @ivar log: The file of its output.
    """

    def __init__(self, command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
        """
        @param command: The command line.
        @param folder: The current folder of the process, for all files.
        @param environment: Variables beside the inherited ones.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = str(folder / "notify")
        self._socket.bind(path)
        self.log = folder / "server.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | environment | {"NOTIFY_SOCKET": path},
            )

    def message(self, timeout: float = TIMEOUT) -> dict[str, str]:
        """
        Return the next message, as names and values.

        @param timeout: Seconds to wait.
        @raise TimeoutError: There is none.
        """
        self._socket.settimeout(timeout)
        lines = self._socket.recv(4096).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def until(self, name: str) -> dict[str, str]:
        """Return the next message that sets a name."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            try:
                message = self.message()
            except TimeoutError:
                break
            if name in message:
                return message
        raise AssertionError(f"no message with {name}\n{self.output()}")

    def drain(self) -> None:
        """Discard the messages that have arrived."""
        self._socket.setblocking(False)
        try:
            while True:
                self._socket.recv(4096)
        except BlockingIOError:
            pass

    def watch(self, timeout: float) -> None:
        """
        Wait until the process has not pinged for a time, and end it as systemd does: by SIGABRT.

        @param timeout: C{WatchdogSec=} of the unit, in seconds.
        """
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            try:
                self.message(timeout)
            except TimeoutError:
                self.process.send_signal(signal.SIGABRT)
                return
        raise AssertionError(f"the process does not stop to ping\n{self.output()}")

    def output(self) -> str:
        """Return the output of the process so far."""
        return self.log.read_text("utf-8", "replace")

    def end(self) -> None:
        """Kill the process, if it runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._socket.close()


@contextmanager
def managed(folder: Path, *flags: str, **environment: str) -> Iterator[ManagedProcess]:
    """
    Start a server under a service manager; it is killed at the end.

    @param flags: Flags beside the address and the data directory.
    @param environment: Variables beside the inherited ones.
    """
    command = [sys.executable, "-m", "twisted", "kubeapi", "--bind-address=127.0.0.1", "--secure-port=0"]
    running = ManagedProcess([*command, f"--data-dir={folder}/data", *flags], folder, environment)
    try:
        yield running
    finally:
        running.end()
