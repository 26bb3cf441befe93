"""
Tests for full and read-only disks: writes fail with the reason, everything else continues, and recovery is automatic.

The disk is a small file system if one can be mounted; a limit on the file size, which needs no privileges, makes SQLite
fail at the same places. Tests cannot make a disk read-only under open files: for this case the error of SQLite is
injected into a real server.
"""

from __future__ import annotations

import json
import os
import random
import resource
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer
from kubetwist.testing.historycheck import violations
from tests.e2e.historyclients import Clients

PATH = "/api/v1/namespaces/default/configmaps"
FLAGS = ("--storage-backend=sqlite", "--controllers=", "--authorization-mode=AlwaysAllow")


class SmallDisk:
    """A file system of a few megabytes, mounted for a test."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            pytest.skip(f"no file system can be mounted here: {error}")
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, server: SubprocessServer) -> None:
        """Fill the disk."""
        with self._filler.open("ab", buffering=0) as filler:
            for size in (65536, 4096):
                try:
                    while True:
                        filler.write(bytes(size))
                except OSError:
                    pass

    def free(self, server: SubprocessServer) -> None:
        """Free the space again."""
        self._filler.unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it."""
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


class SmallFiles:
    """A limit on the size of a server's files."""

    def __init__(self, folder: Path) -> None:
        if not hasattr(resource, "prlimit"):
            pytest.skip("this system cannot set the limits of another process")
        folder.mkdir()
        self.folder = folder
        self._limited = 0

    def fill(self, server: SubprocessServer) -> None:
        """Limit the file size to the largest existing one."""
        size = max(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
        self._limited = server.pid
        resource.prlimit(self._limited, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def free(self, server: SubprocessServer) -> None:
        """Remove the limit; it affects only the process that was limited."""
        with suppress(ProcessLookupError):
            resource.prlimit(self._limited, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture(params=[SmallDisk, SmallFiles])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A disk that can be filled."""
    created = request.param(tmp_path / "disk")
    yield created
    created.close()


@pytest.fixture
def server(disk: Any) -> Iterator[SubprocessServer]:
    """A server on that disk."""
    with SubprocessServer(*FLAGS, data_dir=disk.folder / "data") as server:
        yield server


def put(server: SubprocessServer, name: str, size: int) -> tuple[int, Any]:
    """Create an object, or replace its content."""
    content = {"metadata": {"name": name}, "data": {"text": os.urandom(size // 2).hex()}}
    code, answer = server.request("POST", PATH, content)
    return server.request("PUT", f"{PATH}/{name}", content) if code == 409 else (code, answer)


def exhaust(server: SubprocessServer) -> Any:
    """Write ever smaller objects until no write succeeds; return the last response."""
    # An event of a watch is one chunk up to 64,000 bytes, and Watch reads chunks by lines.
    for size in (50_000, 10_000, 10):
        for _ in range(1000):
            code, answer = put(server, "filling", size)
            if code == 500:
                break
            assert code in (200, 201), answer
    while server.request("GET", "/readyz")[0] == 200:
        # What failed may have left some room for less.
        code, answer = put(server, "filling", 10)
    return answer


class Watch:
    """A watch whose events are read one by one."""

    def __init__(self, server: SubprocessServer, revision: str) -> None:
        plain = socket.create_connection(("127.0.0.1", server.connection.port), timeout=30)
        context = server.connection.ssl_context()
        self._socket: ssl.SSLSocket = context.wrap_socket(plain, server_hostname="127.0.0.1")
        request = f"GET {PATH}?watch=1&resourceVersion={revision} HTTP/1.1\r\nHost: k\r\n"
        self._socket.sendall(f"{request}Authorization: Bearer {server.token}\r\n\r\n".encode())
        self._lines = self._socket.makefile("rb")

    def until(self, name: str) -> None:
        """Read up to the ADDED event of an object."""
        for line in self._lines:
            if line.startswith(b"{"):
                event = json.loads(line)
                assert event["type"] in ("ADDED", "MODIFIED"), event
                if event["object"]["metadata"]["name"] == name:
                    self._socket.close()
                    return
        raise AssertionError("the watch ended")


def test_full(disk: Any, server: SubprocessServer) -> None:
    """
    On a full disk writes fail with 500 and the reason; reads, watches and /livez work.

    /readyz fails. After space is freed, writes work immediately without a restart; rejected writes do not exist, and no
    acknowledged write is lost.
    """
    assert put(server, "kept", 1000)[0] == 201
    watch = Watch(server, server.request("GET", PATH)[1]["metadata"]["resourceVersion"])
    disk.fill(server)
    refused = exhaust(server)
    assert (refused["kind"], refused["status"], refused["code"]) == ("Status", "Failure", 500)
    assert refused["message"].startswith("storage cannot be written at present: ")
    assert str(disk.folder) not in refused["message"]
    code, kept = server.request("GET", f"{PATH}/kept")
    assert (code, len(kept["data"]["text"])) == (200, 1000)
    for query in ("", "?resourceVersion=0", "?limit=1"):
        assert server.request("GET", f"{PATH}{query}")[0] == 200
    for path in ("/livez", "/healthz"):
        assert server.request("GET", path)[0] == 200
    code, text = server.request("GET", "/readyz")
    assert code == 500 and "[-]etcd-readiness failed" in text
    disk.free(server)
    assert server.request("GET", "/readyz") == (200, "ok")
    code, created = put(server, "after", 50_000)
    assert code == 201, created
    watch.until("after")
    assert server.request("GET", f"{PATH}/kept")[1] == kept
    # One line for the beginning and one for the end, however many were refused.
    assert 1 <= server.output().count("writes fail, and are refused") <= server.output().count("writes work again") + 1
    assert "Traceback" not in server.output(), server.output()


def test_killed(disk: Any, server: SubprocessServer) -> None:
    """
    A server that is killed while its disk is full, and restarted with or without space, has lost no acknowledged write.
    """
    dice = random.Random(7)
    clients = Clients(lambda: server.connection, "default", writers=4, watchers=1)
    clients.start()
    for number in range(4):
        expected = clients.acknowledged + dice.randrange(20, 100)
        while clients.acknowledged < expected:
            time.sleep(0.002)
        disk.fill(server)
        exhaust(server)
        server.kill()
        if number % 2:
            disk.free(server)
        server.start()
        assert server.request("GET", PATH)[0] == 200
        disk.free(server)
    history = clients.finish()
    assert violations(history) == []
    assert not clients.problems, clients.problems
    assert "Traceback" not in server.output(), server.output()


INJECTED = """
import os
import sqlite3

from twisted.plugin import IPlugin
from zope.interface import implementer

from kubetwist.interfaces import IStorageBackendFactory
from kubetwist.storage.sqlite import SQLiteStorage

SWITCH = os.environ["KUBETWIST_TEST_READ_ONLY"]


class ReadOnlyAtTimes(sqlite3.Connection):
    def execute(self, sql, *args):
        if os.path.exists(SWITCH):
            super().execute("PRAGMA query_only = 1")
        else:
            super().execute("PRAGMA query_only = 0")
        return super().execute(sql, *args)


@implementer(IPlugin, IStorageBackendFactory)
class Factory:
    name = "sqlite-read-only-at-times"

    def make(self, options, reactor):
        def connect(*args, **how):
            return sqlite3.connect(*args, factory=ReadOnlyAtTimes, **how)

        return SQLiteStorage(os.path.join(options["data-dir"], "store.sqlite"), reactor, connect)


factory = Factory()
"""


def test_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that becomes read-only is handled like a full one, and is used again when it becomes writable."""
    plugins = tmp_path / "path" / "twisted" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "readonlyattimes.py").write_text(INJECTED)
    switch = tmp_path / "read-only"
    monkeypatch.setenv("KUBETWIST_TEST_READ_ONLY", str(switch))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"), prepend=os.pathsep)
    with SubprocessServer("--storage-backend=sqlite-read-only-at-times", *FLAGS[1:]) as server:
        assert put(server, "kept", 10)[0] == 201
        switch.touch()
        code, refused = put(server, "kept", 20)
        message = "storage cannot be written at present: attempt to write a readonly database"
        assert (code, refused["message"]) == (500, message)
        assert server.request("DELETE", f"{PATH}/kept")[0] == 500
        assert server.request("GET", f"{PATH}/kept")[0] == 200
        assert [server.request("GET", path)[0] for path in ("/livez", "/readyz")] == [200, 500]
        switch.unlink()
        assert server.request("GET", "/readyz")[0] == 200
        assert put(server, "kept", 20)[0] == 200


def test_start_on_read_only_disk(tmp_path: Path) -> None:
    """A server on a read-only disk fails to start with a one-line error."""
    disk = SmallDisk(tmp_path / "disk")
    try:
        server = SubprocessServer(*FLAGS, data_dir=disk.folder / "data")
        with server:
            pass
        subprocess.run(["mount", "-o", "remount,ro", str(disk.folder)], check=True)
        command = [sys.executable, "-m", "twisted", "kubeapi", f"--data-dir={disk.folder}/data", "--secure-port=0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        (line,) = [line for line in done.stderr.splitlines() if line.startswith("twist kubeapi: ")]
        assert "Read-only file system" in line
    finally:
        disk.close()
