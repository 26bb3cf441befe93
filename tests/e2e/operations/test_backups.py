"""Tests for scheduled backups and the restore of any revision, with the command-line tools."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubetwist.testing import SubprocessServer

from .commands import block, command, fail, kubetwist, run_block, start_server, succeed

FLAGS = ("--controllers=", "--authorization-mode=AlwaysAllow")
PATH = "/api/v1/namespaces/default/configmaps"


def put(server: SubprocessServer, name: str, text: str) -> int:
    """Create or update an object; return its revision."""
    body = {"metadata": {"name": name}, "data": {"text": text}}
    code, written = server.request("PUT", f"{PATH}/{name}", body)
    if code == 404:
        code, written = server.request("POST", PATH, body)
    assert code in (200, 201), written
    return int(written["metadata"]["resourceVersion"])


def texts(server: SubprocessServer) -> dict[str, str]:
    """Return all objects."""
    code, listed = server.request("GET", PATH)
    assert code == 200
    return {item["metadata"]["name"]: item["data"]["text"] for item in listed["items"]}


def restored(folder: Path, *flags: str) -> dict[str, str]:
    """Restore, and return the objects of a server on the result."""
    data = folder / f"restored-{len(list(folder.iterdir()))}"
    succeed("restore", f"--data-dir={data}", *flags)
    with start_server(data, *FLAGS) as server:
        return texts(server)


@contextmanager
def scheduled(*flags: str) -> Iterator[subprocess.Popen[str]]:
    """Run scheduled backups; they must end with code 0 when they are stopped, if they have not ended before."""
    process = subprocess.Popen(command("backup", *flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            output, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors
            assert output.splitlines()[-1] == "stopped"
    finally:
        process.kill()
        process.communicate()


def wait_for_status(archive: Path, reached: Callable[[dict[str, Any]], bool], process: subprocess.Popen[str]) -> None:
    """Wait until the status file meets a condition, or the process ends."""
    while process.poll() is None:
        try:
            if reached(json.loads((archive / "status.json").read_text())):
                return
        except FileNotFoundError:
            continue
    raise AssertionError(process.communicate())


def test_schedule(tmp_path: Path) -> None:
    """
    Scheduled backups of a running server allow the restore of any revision.

    They run until SIGTERM, exclude a second process, and report their state in a file of metrics.
    """
    archive, metrics = tmp_path / "archive", tmp_path / "kubetwist.prom"
    states: dict[int, dict[str, str]] = {}
    with start_server(tmp_path / "data", *FLAGS) as server:
        put(server, "kept", "before")
        flags = (f"--data-dir={server.data_dir}", f"--into={archive}")
        with scheduled(*flags, "--schedule=@every 6h", "--changes-interval=1s", f"--metrics-file={metrics}") as process:
            assert process.stdout is not None
            assert "1 backups kept, 0 removed" in process.stdout.readline()
            for number in range(3):
                put(server, f"new-{number}", "x")
                newest = put(server, "kept", str(number))
                states[newest] = texts(server)
                wait_for_status(archive, lambda status: status["archived_revision"] >= newest, process)  # noqa: B023
            assert f"another backup into {archive} is running (process {process.pid})" in fail("backup", *flags)
        # The server itself writes, too.
        last = json.loads((archive / "status.json").read_text())["archived_revision"]
        assert f"\nkubetwist_backup_archived_revision {last}\n" in metrics.read_text()
        output = succeed("backup", *flags, "--verify-only")
        assert "1 backups and " in output
    for revision, state in states.items():
        assert restored(tmp_path, f"--from={archive}", f"--to-revision={revision}") == state
    assert restored(tmp_path, f"--from={archive}") == states[newest]
    data = f"--data-dir={tmp_path}/never"
    refused = fail("restore", data, f"--from={archive}", f"--to-revision={last + 1}")
    assert f"revision {last + 1} is not in the archive: its newest revision is {last}" in refused
    refused = fail("restore", data, f"--from={archive}", "--to-time=2001-01-01T00:00:00Z")
    assert "the archive begins after 2001-01-01T00:00:00Z" in refused
    assert not (tmp_path / "never").exists()


def test_killed(tmp_path: Path) -> None:
    """kill -9 in the midst of a backup leaves no backup, and the next one succeeds and cleans up."""
    archive = tmp_path / "archive"
    with start_server(tmp_path / "data", *FLAGS) as server:
        for number in range(3):
            put(server, f"large-{number}", "x" * 900_000)
        flags = (f"--data-dir={server.data_dir}", f"--into={archive}")
        with scheduled(*flags, "--schedule=@hourly", "--rate-limit=1Ki") as process:
            while not list(archive.glob(f".backup-*.{process.pid}/store.sqlite")):
                assert process.poll() is None
            process.kill()
            process.wait()
        assert list(archive.glob("backup-*")) == []
        assert "there is no backup" in fail("backup", *flags, "--verify-only")
        with scheduled(*flags, "--schedule=@hourly", "--rate-limit=1Ki") as process:
            while not list(archive.glob(f".backup-*.{process.pid}/store.sqlite")):
                assert process.poll() is None
        assert list(archive.glob(".backup-*")) == list(archive.glob("backup-*")) == []
        for _ in range(3):
            succeed("backup", *flags, "--keep-last=2")
        assert len(list(archive.glob("backup-*"))) == 2
    assert set(restored(tmp_path, f"--from={archive}")) == {f"large-{number}" for number in range(3)}


def test_damage(tmp_path: Path) -> None:
    """Damage is found by --verify-only, with one line for each damaged file and exit code 1."""
    with start_server(tmp_path / "data", *FLAGS) as server:
        archive = tmp_path / "archive"
        flags = (f"--data-dir={server.data_dir}", f"--into={archive}")
        succeed("backup", *flags)
        (backup,) = archive.glob("backup-*")
        assert "is intact" in succeed("backup", f"--to={backup}", "--verify-only")
        store = backup / "store.sqlite"
        store.write_bytes(store.read_bytes()[:-1] + b"!")
        for where in (f"--to={backup}", f"--into={archive}"):
            assert "is damaged: store.sqlite has changed" in fail("backup", where, "--verify-only")
        assert "is damaged" in fail("restore", f"--from={archive}", f"--data-dir={tmp_path}/other")
        assert (status := json.loads((archive / "status.json").read_text()))["failures_total"] == 0
        assert status["backups"] == 1


def test_etcd(tmp_path: Path) -> None:
    """A data directory without an embedded store is refused, with the command for etcd; the failure is recorded."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "kubetwist.json").write_text('{"format": 1}')
    archive = tmp_path / "archive"
    refused = fail("backup", f"--data-dir={tmp_path}/data", f"--into={archive}")
    assert "use etcdctl snapshot save" in refused
    assert "etcdctl" in json.loads((archive / "status.json").read_text())["last_error"]


def test_page(tmp_path: Path) -> None:
    """The blocks of the page work."""
    with start_server(tmp_path / "data", *FLAGS) as server:
        put(server, "kept", "1")
        replaced = {
            "/var/lib/kubetwist": str(server.data_dir),
            "/var/lib/node_exporter": str(tmp_path),
            "/backups": str(tmp_path / "backups"),
            "/srv": str(tmp_path / "srv"),
            "2026-11-29T08:00:00Z": "2999-01-01T00:00:00Z",
        }

        def run(first: str) -> str:
            return run_block(tmp_path, "backup.md", first, replaced)

        assert "backup of" in run("kubetwist backup --data-dir=/var/lib/kubetwist --to=")
        assert "1 backups kept" in run("kubetwist backup --data-dir=/var/lib/kubetwist --into=/backups/archive --keep")
        status = json.loads((tmp_path / "backups" / "archive" / "status.json").read_text())
        replaced["123456"] = str(status["last_revision"])
        assert "are intact" in run("kubetwist backup --into=/backups/archive --verify-only")
        assert kubetwist("backup", f"--into={tmp_path}/backups/archive", "--verify-only").returncode == 0
        assert "restored" in run("kubetwist restore --from=/backups/monday")
        output = run("kubetwist restore --from=/backups/archive --data-dir=/srv/revision")
        assert output.count("restored") == 3


def test_page_schedule(tmp_path: Path) -> None:
    """The command of the page for scheduled backups works, and ends with SIGTERM."""
    with start_server(tmp_path / "data", *FLAGS) as server:
        replaced = {
            "/var/lib/kubetwist": str(server.data_dir),
            "/var/lib/node_exporter": str(tmp_path),
            "/backups": str(tmp_path / "backups"),
        }
        line = shlex.split(block("backup.md", "kubetwist backup --schedule=", replaced).replace("\\\n", ""))
        assert line[:2] == ["kubetwist", "backup"]
        with scheduled(*line[2:]) as process:
            assert process.stdout is not None
            assert "1 backups kept, 0 removed" in process.stdout.readline()
        assert "kubetwist_backup_backups 1" in (tmp_path / "kubetwist.prom").read_text()
