"""The server under a service manager: readiness, reloads, a stop, and the watchdog, in real processes."""

from __future__ import annotations

import http.client
import json
import os
import signal
import time
from pathlib import Path

import pytest

from kubetwist.testing import Connection

from .servicemanager import TIMEOUT, managed

MAPS = "/api/v1/namespaces/default/configmaps"
#: A plugin that blocks the reactor, as a bug does.
DROP_IN = """
from kubetwist.admission.factory import AdmissionPluginFactory

blocking = AdmissionPluginFactory("Blocking", "blockingplugin:Blocking", default=False)
"""
PLUGIN = """
import time

from zope.interface import implementer

from kubetwist.interfaces import IValidatingAdmission


@implementer(IValidatingAdmission)
class Blocking:
    name = "Blocking"
    resources = ("configmaps",)

    @classmethod
    def configured(cls, server, configuration):
        return cls()

    def handles(self, operation):
        return operation == "CREATE"

    async def validate(self, attributes):
        if attributes.name == "block":
            block_the_reactor()


def block_the_reactor():
    time.sleep(3600)
"""


def connect(folder: Path) -> Connection:
    """Return a connection as the administrator."""
    return Connection.from_kubeconfig(folder / "data" / "admin.kubeconfig")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_messages(tmp_path: Path, workers: str) -> None:
    """
    A start, a reload and a stop are reported by the process that was started, also with workers.

    The server is ready, as /readyz reports, when it notifies the service manager.
    """
    with managed(tmp_path, f"--workers={workers}", WATCHDOG_USEC="20000000") as server:
        assert server.message() == {"STATUS": "starting"}
        ready = server.message()
        assert ready["READY"] == "1"
        connection = connect(tmp_path)
        assert ready["STATUS"] == f"serving on https://127.0.0.1:{connection.port}"
        assert server.message() == {"WATCHDOG": "1"}
        code, text = connection.request("GET", "/readyz")
        assert (code, text) == (200, "ok")
        server.process.send_signal(signal.SIGHUP)
        reloading = server.until("RELOADING")
        assert 0 < int(reloading["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
        assert server.until("READY")["STATUS"] == ready["STATUS"]
        server.process.send_signal(signal.SIGTERM)
        assert server.until("STOPPING") == {"STOPPING": "1", "STATUS": "stopping"}
        assert server.process.wait(TIMEOUT) == 0


def test_failed_start(tmp_path: Path) -> None:
    """A failed start is reported with the reason, and never as ready."""
    with managed(tmp_path, "--client-ca-file=/nowhere/ca.crt") as server:
        assert server.process.wait(TIMEOUT) == 1
        assert server.message() == {"STATUS": "starting"}
        assert "/nowhere/ca.crt" in server.message()["STATUS"]
        with pytest.raises(BlockingIOError):
            server.message(0)


def test_stopped_process(tmp_path: Path) -> None:
    """A process that does not run does not ping; it pings again when it runs."""
    with managed(tmp_path, WATCHDOG_USEC="200000") as server:
        server.until("WATCHDOG")
        server.until("WATCHDOG")
        server.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)
        server.drain()
        with pytest.raises(TimeoutError):
            server.message(1)
        server.process.send_signal(signal.SIGCONT)
        server.until("WATCHDOG")


def test_stopped_worker(tmp_path: Path) -> None:
    """A worker that does not answer stops the pings of the process that was started."""
    with managed(tmp_path, "--workers=1", WATCHDOG_USEC="2000000") as server:
        server.until("WATCHDOG")
        children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        (worker,) = map(int, children.read_text().split())
        os.kill(worker, signal.SIGSTOP)
        try:
            deadline = time.monotonic() + TIMEOUT
            while "not notifying the watchdog: a worker does not answer" not in server.output():
                assert time.monotonic() < deadline, server.output()
                time.sleep(0.1)
        finally:
            os.kill(worker, signal.SIGCONT)
        server.drain()
        server.until("WATCHDOG")


def test_blocked_reactor(tmp_path: Path) -> None:
    """A server whose reactor is blocked is ended by the watchdog; its last lines show where it was blocked."""
    plugins = tmp_path / "site" / "twisted" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "blocking_plugin.py").write_text(DROP_IN)
    (tmp_path / "site" / "blockingplugin.py").write_text(PLUGIN)
    path = os.pathsep.join(filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    flags = ("--enable-admission-plugins=Blocking",)
    with managed(tmp_path, *flags, WATCHDOG_USEC="2000000", PYTHONPATH=path) as server:
        server.until("READY")
        server.until("WATCHDOG")
        connection = connect(tmp_path)
        client = http.client.HTTPSConnection(
            "127.0.0.1", connection.port, context=connection.credentials_context(), timeout=TIMEOUT
        )
        client.request("POST", MAPS, json.dumps({"metadata": {"name": "block"}}), {"Content-Type": "application/json"})
        server.watch(2.0)
        client.close()
        assert server.process.wait(TIMEOUT) == -signal.SIGABRT
        assert "Fatal Python error: Aborted" in server.output()
        assert "in block_the_reactor" in server.output()
