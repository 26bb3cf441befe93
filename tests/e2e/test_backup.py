"""Tests for backups of running servers, with the command-line tools."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubetwist.testing import SubprocessServer
from kubetwist.testing.history import History
from kubetwist.testing.historycheck import violations
from tests.e2e.historyclients import Clients

FLAGS = ("--storage-backend=sqlite", "--controllers=", "--authorization-mode=AlwaysAllow")
PATH = "/api/v1/namespaces/default/configmaps"
#: Taken in the midst of writes.
BACKUPS = 2


def twist(command: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run a tool."""
    line = [sys.executable, "-m", "twisted", command, *flags]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


def succeed(command: str, *flags: str) -> str:
    """Return the output of a tool that must succeed."""
    done = twist(command, *flags)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def make(server: SubprocessServer, name: str) -> dict[str, Any]:
    """Create an object."""
    code, created = server.request("POST", PATH, {"metadata": {"name": name}})
    assert code == 201, created
    return created


def test_backup_under_load(tmp_path: Path) -> None:
    """
    Backups during writes are consistent snapshots and do not delay the clients.

    A server that is started from a backup has exactly the state at its revision, which is consistent with the history
    of the clients.
    """
    with SubprocessServer(*FLAGS, data_dir=tmp_path / "data") as server:
        clients = Clients(lambda: server.connection, "default", writers=4, watchers=1)
        clients.start()
        before = clients.acknowledged
        for number in range(BACKUPS):
            succeed("kubeapi-backup", f"--data-dir={server.data_dir}", f"--to={tmp_path}/backup-{number}")
            assert clients.acknowledged > before, "no write was done while the backup was taken"
            before = clients.acknowledged
        history = clients.finish()
        assert not clients.problems, clients.problems
        assert violations(history) == []
    for number in range(BACKUPS):
        check_restored(tmp_path, number, history)


def check_restored(folder: Path, number: int, history: History) -> None:
    """Check that a restored backup has the recorded objects."""
    data = folder / f"restored-{number}"
    output = succeed("kubeapi-restore", f"--from={folder}/backup-{number}", f"--data-dir={data}", "--bump-revision=0")
    revision = int(output.rpartition(" ")[2])
    with SubprocessServer(*FLAGS, data_dir=data) as server:
        code, listed = server.request("GET", PATH)
        assert code == 200
    found = {
        f"default/{item['metadata']['name']}": (int(item["metadata"]["resourceVersion"]), item["data"]["value"])
        for item in listed["items"]
    }
    again = History.loaded(history.dumped().splitlines())
    again.begin(again.operations[0].action.LIST, "default/", consistent=False).listed(revision, found)
    assert violations(again) == []


def test_restore(tmp_path: Path) -> None:
    """
    A restored server has the state of the backup, the same authorities and tokens, and a new identity.

    A request with a resourceVersion from after the backup gets 410; a write with one gets a conflict.
    """
    backup = tmp_path / "backup"
    with SubprocessServer(*FLAGS, data_dir=tmp_path / "data") as server:
        kept = make(server, "kept")
        account = "/api/v1/namespaces/default/serviceaccounts"
        assert server.request("POST", account, {"metadata": {"name": "robot"}})[0] == 201
        code, issued = server.request("POST", f"{account}/robot/token", {"spec": {}})
        assert code == 201
        output = succeed("kubeapi-backup", f"--data-dir={server.data_dir}", f"--to={backup}")
        assert str(backup) in output and "keys and certificates" in output
        lost = make(server, "lost")
        changed = server.request("PUT", f"{PATH}/kept", kept | {"data": {"k": "v"}})[1]
        refused = twist("kubeapi-restore", f"--from={backup}", f"--data-dir={server.data_dir}", "--replace")
        assert refused.returncode == 1
        assert f"is in use by another server (process {server.pid})" in refused.stderr
        authority = (server.data_dir / "pki" / "ca.crt").read_bytes()
    shutil.rmtree(tmp_path / "data")
    output = succeed("kubeapi-restore", f"--from={backup}", f"--data-dir={tmp_path}/data")
    with SubprocessServer(*FLAGS, data_dir=tmp_path / "data") as server:
        assert (server.data_dir / "pki" / "ca.crt").read_bytes() == authority
        assert server.request("GET", f"{PATH}/kept") == (200, kept)
        assert server.request("GET", f"{PATH}/lost")[0] == 404
        review = {"spec": {"token": issued["status"]["token"]}}
        code, reviewed = server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        assert reviewed["status"]["authenticated"] is True
        for known in (kept, lost, changed):
            version = known["metadata"]["resourceVersion"]
            code, answer = server.request("GET", f"{PATH}?watch=1&resourceVersion={version}&timeoutSeconds=5")
            assert (answer["type"], answer["object"]["code"]) == ("ERROR", 410)
            code, answer = server.request("GET", f"{PATH}?resourceVersion={version}&resourceVersionMatch=Exact")
            assert (code, answer["reason"]) == (410, "Expired")
        assert server.request("PUT", f"{PATH}/kept", changed)[0] == 409
        assert int(make(server, "new")["metadata"]["resourceVersion"]) > 1_000_000_000


def test_mistakes(tmp_path: Path, start_server: Callable[..., SubprocessServer]) -> None:
    """Usage errors are reported in one line, and nothing is written."""
    server = start_server(*FLAGS[:2])
    for command, flags, text in (
        ("kubeapi-backup", (), "--to or --into is required"),
        ("kubeapi-backup", (f"--data-dir={tmp_path}", f"--to={tmp_path}/b"), "is not a data directory of kubetwist"),
        ("kubeapi-backup", (f"--data-dir={server.data_dir}", f"--to={tmp_path}"), "already exists"),
        ("kubeapi-backup", (f"--data-dir={server.data_dir}", "--to=/proc/b"), "cannot write /proc/b"),
        ("kubeapi-restore", (f"--data-dir={tmp_path}/d",), "--from is required"),
        ("kubeapi-restore", (f"--from={tmp_path}", f"--data-dir={tmp_path}/d"), "is not a backup"),
        ("kubeapi-restore", ("--bump-revision=-1",), "must not be negative"),
    ):
        done = twist(command, *flags)
        assert done.returncode > 0
        (line,) = [line for line in done.stderr.splitlines() if line.startswith(f"twist {command}: ")]
        assert text in line
        assert "Traceback" not in done.stderr + done.stdout
    assert list(tmp_path.iterdir()) == []


def test_help() -> None:
    """The help of each tool describes its purpose and the handling of keys."""
    for command in ("kubeapi-backup", "kubeapi-restore", "kubeapi-migrate"):
        done = twist(command, "--help")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"Usage: twist {command} [flags]")
