"""Tests of C{twist kubeapi} as a process: exit codes, output, signals, the service manager."""

from __future__ import annotations

import os
import resource
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

#: Seconds until a process is taken to hang.
PROCESS_TIMEOUT = 60


class ProcessTests(SynchronousTestCase):
    """The server as a process."""

    def setUp(self) -> None:
        """Create a folder with a short path, for sockets."""
        temporary = tempfile.TemporaryDirectory(prefix="kubetwist-")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def spawn(self, *flags: str, soft_limit: int = 0, **more: Any) -> subprocess.Popen[bytes]:
        """
        Start a server; it is killed at the end of the test.

        @param soft_limit: Limit of open files, unless it is 0.
        """

        def limit() -> None:
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, hard))

        process = subprocess.Popen(
            [sys.executable, "-m", "twisted", "kubeapi", *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | more,
            cwd=self.folder,
            preexec_fn=limit if soft_limit else None,
        )

        def end() -> None:
            if process.poll() is None:
                process.kill()
            process.communicate()

        self.addCleanup(end)
        return process

    def ready(self, *flags: str, **more: Any) -> subprocess.Popen[bytes]:
        """Start a server, and wait until it notifies the service manager."""
        path = self.folder / "notify"
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
            notified.bind(str(path))
            notified.settimeout(PROCESS_TIMEOUT)
            process = self.spawn("--secure-port=0", *flags, NOTIFY_SOCKET=str(path), **more)
            self.assertEqual(notified.recv(100), b"STATUS=starting")
            self.assertTrue(notified.recv(100).startswith(b"READY=1\nSTATUS=serving on https://"))
        return process

    def assert_refused(self, message: str, *flags: str) -> None:
        """Assert that the start fails with a one-line error, without a traceback."""
        process = self.spawn(*flags)
        _, printed = process.communicate(timeout=PROCESS_TIMEOUT)
        reason = printed.decode().splitlines()[-1]
        self.assertTrue(reason.startswith("twist kubeapi: "), reason)
        self.assertIn(message, reason)
        self.assertNotIn(b"Traceback", printed)
        self.assertGreater(process.returncode, 0)

    def test_bad_options(self) -> None:
        """An error on the command line is one line."""
        self.assert_refused("unknown flag: --nope", "--nope")
        self.assert_refused('invalid argument "x" for "--secure-port"', "--secure-port=x")

    def test_bad_data_directory(self) -> None:
        """An unusable data directory is reported in one line."""
        (self.folder / "precious").write_text("mine")
        self.assert_refused("is not a data directory of kubetwist", "--data-dir=.")
        self.assert_refused("cannot use the data directory", "--data-dir=/proc/kubetwist")

    def test_corrupt_store(self) -> None:
        """A damaged store is reported in one line."""
        process = self.ready()
        process.send_signal(signal.SIGTERM)
        process.wait(PROCESS_TIMEOUT)
        for path in (self.folder / "kubetwist-data").glob("store.sqlite*"):
            path.unlink()
        (self.folder / "kubetwist-data" / "store.sqlite").write_bytes(b"garbage" * 1000)
        self.assert_refused("cannot use the store", "--secure-port=0")

    def test_port_in_use(self) -> None:
        """A port in use ends the start before a certificate is issued or reissued."""
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            self.assert_refused(f"cannot listen on 127.0.0.1 port {port}", f"--secure-port={port}")
        self.assertFalse((self.folder / "kubetwist-data" / "pki" / "apiserver.crt").exists())

    def test_help(self) -> None:
        """The help is printed with exit code 0."""
        process = self.spawn("--help")
        printed, _ = process.communicate(timeout=PROCESS_TIMEOUT)
        self.assertEqual(process.returncode, 0)
        self.assertIn(b"--secure-port int", printed)

    def test_life(self) -> None:
        """The path of the kubeconfig is logged to stderr; SIGTERM and SIGINT end the server with exit code 0."""
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.ready()
            process.send_signal(number)
            out, printed = process.communicate(timeout=PROCESS_TIMEOUT)
            self.assertEqual((process.returncode, out), (0, b""))
            path = self.folder / "kubetwist-data" / "admin.kubeconfig"
            (line,) = [line for line in printed.decode().splitlines() if "kubeconfig" in line]
            self.assertTrue(line.endswith(f"the admin's kubeconfig is {path}"), line)

    def test_other_signals(self) -> None:
        """SIGHUP checks files for changes; neither it nor SIGUSR1 or SIGUSR2 ends the server."""
        process = self.ready("--in-memory")
        numbers = (signal.SIGUSR1, signal.SIGHUP, signal.SIGUSR2, signal.SIGHUP)
        assert process.stderr is not None
        for number in numbers:
            process.send_signal(number)
            while (name := number.name.encode()) not in (line := process.stderr.readline()):
                self.assertTrue(line, f"it ended after {name!r}")
        self.assertIn(b"checking all files for changes", line)
        process.terminate()
        process.communicate(timeout=PROCESS_TIMEOUT)
        self.assertEqual(process.returncode, 0)

    def test_files(self) -> None:
        """The limit of open files is raised to its maximum."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        process = self.ready("--in-memory", soft_limit=256)
        self.assertEqual(resource.prlimit(process.pid, resource.RLIMIT_NOFILE), (hard, hard))

    def test_in_memory(self) -> None:
        """With C{--in-memory} no files remain, unless a data directory is given."""
        temporary = self.folder / "tmp"
        temporary.mkdir()
        process = self.ready("--in-memory", TMPDIR=str(temporary))
        (folder,) = temporary.glob("kubetwist-*")
        self.assertTrue((folder / "data" / "admin.kubeconfig").is_file())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PROCESS_TIMEOUT)
        self.assertEqual((process.returncode, list(temporary.iterdir())), (0, []))
        self.assertFalse((self.folder / "kubetwist-data").exists())
        process = self.ready("--in-memory", "--data-dir=mine")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PROCESS_TIMEOUT)
        self.assertTrue((self.folder / "mine" / "admin.kubeconfig").is_file())
        self.assertEqual(list((self.folder / "mine").glob("store*")), [])

    def test_second_signal(self) -> None:
        """A second signal ends a stopping server at once."""
        process = self.ready("--shutdown-delay-duration=10m")
        until = time.monotonic() + PROCESS_TIMEOUT
        # Two at once would be one, so the second one is sent until it is seen.
        while process.poll() is None and time.monotonic() < until:
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
        self.assertEqual(process.poll(), 1)

    def test_open_watch(self) -> None:
        """An open watch is ended when the server stops."""
        process = self.ready("--authorization-mode=AlwaysAllow")
        kubeconfig = (self.folder / "kubetwist-data" / "admin.kubeconfig").read_text()
        port = int(kubeconfig.partition("https://127.0.0.1:")[2].split()[0])
        context = ssl.create_default_context(cafile=self.folder / "kubetwist-data" / "pki" / "ca.crt")
        pki = self.folder / "kubetwist-data" / "pki"
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        with socket.create_connection(("127.0.0.1", port), PROCESS_TIMEOUT) as plain:
            secure = context.wrap_socket(plain, server_hostname="localhost")
            secure.sendall(b"GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n")
            received = secure.recv(65536)
            begun = time.monotonic()
            process.send_signal(signal.SIGTERM)
            while piece := secure.recv(65536):
                received += piece
            self.assertTrue(received.endswith(b"\r\n0\r\n\r\n"), received[-100:])
        self.assertEqual(process.wait(PROCESS_TIMEOUT), 0)
        self.assertLess(time.monotonic() - begun, 5)
