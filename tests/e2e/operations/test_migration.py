"""Tests for interrupted migrations between SQLite and etcd, and for the comparison of stores."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from kubetwist.api.storage import Write
from kubetwist.server.datadir import DataDirectory
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason
from kubetwist.testing.storage import StorageReactor

from .commands import block, command, fail, run_block, succeed

NO_ETCD = pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason() or "")
KEYS = 20_000
PREFIX = "/registry/configmaps/default"


def fill(data: Path, keys: int) -> None:
    """Create a data directory with objects, one of which expires after many years."""
    directory = DataDirectory(data)
    directory.lock()
    reactor = StorageReactor()
    storage = SQLiteStorage(data / "store.sqlite", reactor, synced=False)
    reactor.run(storage.open())
    for first in range(0, keys, 500):
        writes = [Write(f"{PREFIX}/{number:06}", b"%d" % number * 10, 0) for number in range(first, first + 500)]
        reactor.run(storage.commit(writes))
    reactor.run(storage.commit([Write("/registry/events/default/e", b"e", 0, 3e9)]))
    reactor.run(storage.close())
    reactor.close()
    directory.close()


def interrupt(*flags: str) -> None:
    """Kill a migration after it has copied half of the keys."""
    process = subprocess.Popen(command("migrate", *flags), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            if line == f"copied {KEYS // 2} keys\n":
                process.kill()
                break
    assert process.returncode == -signal.SIGKILL


def migrate_twice(report: Path, *flags: str) -> None:
    """Interrupt a migration, continue it, and compare the stores."""
    interrupt(*flags)
    assert "keys differ" in fail("migrate", *flags, "--verify-only")
    output = succeed("migrate", *flags, f"--report={report}")
    assert "continued an interrupted migration after configmaps/default/0" in output
    assert f"{KEYS + 1} keys with " in output
    result = json.loads(report.read_text())
    assert result["resources"] == {"configmaps": KEYS, "events": 1}
    assert (result["keys"], result["expiring"]) == (KEYS + 1, 1)
    assert result["size"] == 1 + sum(len(str(number)) * 10 for number in range(KEYS))
    assert 0 < result["written"] <= KEYS // 2 + 5001
    output = succeed("migrate", *flags, "--verify-only")
    assert f"{KEYS + 1} keys with {result['size']} bytes are equal in source and target; 0 were written" in output


@NO_ETCD
def test_interrupted(tmp_path: Path) -> None:
    """A killed migration continues where it was, in both directions; no server starts on an incomplete store."""
    data, again = tmp_path / "data", tmp_path / "again"
    fill(data, KEYS)
    with EtcdServer() as etcd:
        servers = ",".join(etcd.urls)
        migrate_twice(tmp_path / "there.json", f"--from-data-dir={data}", f"--to-etcd-servers={servers}")
        flags = (f"--from-etcd-servers={servers}", f"--to-data-dir={again}")
        interrupt(*flags)
        refused = fail("serve", f"--data-dir={again}", "--secure-port=0")
        assert f"the store is incomplete: a migration from {servers} (/registry/) into it was interrupted" in refused
        other = fail("migrate", f"--from-data-dir={data}", f"--to-data-dir={again}")
        assert f"the target has an incomplete migration from {servers} (/registry/)" in other
        migrate_twice(tmp_path / "back.json", *flags)
    succeed("migrate", f"--from-data-dir={data}", f"--to-data-dir={again}", "--verify-only")


@NO_ETCD
def test_page(tmp_path: Path) -> None:
    """The blocks of the page work, except for the server that they start."""
    data = tmp_path / "data"
    fill(data, 500)
    with EtcdServer() as etcd:
        replaced = {"/var/lib/kubetwist": str(data), "https://10.0.0.1:2379,https://10.0.0.2:2379": ",".join(etcd.urls)}
        for first, text in (
            ("kubetwist migrate --from-data-dir=/var/lib/kubetwist --to", "501 keys"),
            ("kubetwist migrate --verify-only", "0 were written"),
        ):
            assert block("operations.md", first, replaced)
            assert text in run_block(tmp_path, "operations.md", first, replaced)


def test_downgrade(tmp_path: Path) -> None:
    """The commands of the page restore a backup in the format of an older release."""
    data = tmp_path / "data"
    fill(data, 500)
    (data / "pki").mkdir()
    replaced = {
        "/var/lib/kubetwist": str(data),
        "/backups/downgrade": str(tmp_path / "backup"),
        "/srv/downgrade": str(tmp_path / "older"),
    }
    first = "kubetwist backup --data-dir=/var/lib/kubetwist --to=/backups/downgrade\n"
    output = run_block(tmp_path, "operations.md", first, replaced)
    assert "501 objects" in output
    connection = sqlite3.connect(tmp_path / "older" / "store.sqlite")
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert [row[1] for row in connection.execute("PRAGMA table_info(log)")] == [
        "id",
        "key",
        "previous",
        "expires",
        "value",
    ]
    connection.close()
