"""Tests of C{kubetwist doctor} with real directories, servers, disks and an etcd."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from kubetwist.server.credentials.certificates import CertKeyPair, private_pem
from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason

from .commands import run_block

#: Seconds for a run; checks have a timeout themselves.
TIMEOUT = 120


def doctor(*arguments: str) -> tuple[int, dict[str, str], str]:
    """Run the command; return the exit code, the worst severity by identifier, and the output."""
    done = subprocess.run(
        [sys.executable, "-m", "kubetwist", "doctor", "-o", "json", "--timeout=1m", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert "Traceback" not in done.stderr, done.stderr
    severities: dict[str, str] = {}
    order = ("ok", "note", "warning", "error")
    for one in json.loads(done.stdout)["findings"]:
        severities[one["id"]] = max(one["severity"], severities.get(one["id"], "ok"), key=order.index)
    return done.returncode, severities, done.stdout + done.stderr


def content(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the files of a directory with their modes."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a server that has stopped."""
    folder = tmp_path_factory.mktemp("doctor") / "data"
    with SubprocessServer("--controllers=", "--storage-backend=sqlite", data_dir=folder, timeout=TIMEOUT) as server:
        status, _ = server.request(
            "POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "stringData": {"p": "topsecret"}}
        )
        assert status == 201
    return folder


@pytest.fixture
def folder(stopped: Path, tmp_path: Path) -> Path:
    """A copy of the directory, to be damaged."""
    copied = tmp_path / "data"
    shutil.copytree(stopped, copied)
    return copied


def test_good(folder: Path) -> None:
    """A good directory has no errors, stays unchanged, and no secret is shown."""
    before = content(folder)
    code, found, output = doctor(f"--data-dir={folder}", "--secure-port=0")
    assert "error" not in found.values() and code == 0, output
    assert found["data-directory/format"] == found["store/mark"] == found["store/structure"] == "ok", output
    assert found["certificates/ca"] == found["certificates/admin"] == found["data-directory/secrets"] == "ok", output
    assert content(folder) == before
    assert "topsecret" not in output
    assert "PRIVATE KEY" not in output


def test_table(folder: Path) -> None:
    """The table for people has the same findings, and the errors first."""
    (folder / "pki" / "sa.key").chmod(0o644)
    done = subprocess.run(
        [sys.executable, "-m", "kubetwist", "doctor", f"--data-dir={folder}", "--secure-port=0", "--timeout=1m"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("error    data-directory/secrets "), done.stdout
    assert f"chmod 0600 {folder}/pki/sa.key" in " ".join(done.stdout.split())


def test_strict(folder: Path) -> None:
    """Warnings fail with --strict only."""
    flags = (f"--data-dir={folder}", "--secure-port=0", "--allow-lost-writes")
    code, found, output = doctor(*flags)
    assert (code, found["weak/lost-writes"]) == (0, "warning"), output
    assert doctor(*flags, "--strict")[0] == 1


def test_expired_certificate(folder: Path) -> None:
    """A certificate of the operator that has expired is an error."""
    pki = folder / "pki"
    authority, _ = CertKeyPair((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes()).parsed()
    key = ec.generate_private_key(ec.SECP256R1())
    end = datetime.now(UTC) - timedelta(days=1)
    certificate = (
        x509.CertificateBuilder(authority.subject, authority.subject, key.public_key(), 1)
        .not_valid_before(end - timedelta(days=1))
        .not_valid_after(end)
        .sign(key, SHA256())
    )
    (folder.parent / "serving.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder.parent / "serving.key").write_bytes(private_pem(key))
    flags = (f"--tls-cert-file={folder.parent}/serving.crt", f"--tls-private-key-file={folder.parent}/serving.key")
    code, found, output = doctor(f"--data-dir={folder}", "--secure-port=0", *flags)
    assert (code, found["certificates/serving"]) == (2, "error"), output
    assert "has expired on" in output


def test_lost_writes(folder: Path) -> None:
    """A database that was replaced by an older one is below its mark."""
    for path in folder.glob("store.sqlite*"):
        if not path.name.endswith("-mark"):
            path.unlink()
    shutil.copy(folder / "store.sqlite-mark", folder.parent / "mark")
    (folder / "store.sqlite-mark").unlink()
    with SubprocessServer("--controllers=", "--storage-backend=sqlite", data_dir=folder, timeout=TIMEOUT):
        pass
    mark = (folder.parent / "mark").read_bytes()
    newer = int(mark.split()[0]) + 1_000_000
    from kubetwist.storage.sqlite._highwater import HighWaterMark

    one = HighWaterMark(str(folder / "store.sqlite-mark"))
    one.open(newer)
    one.close()
    code, found, output = doctor(f"--data-dir={folder}", "--secure-port=0")
    assert (code, found["store/mark"]) == (2, "error"), output


def test_damaged_store(folder: Path) -> None:
    """A database that is garbage is an error, not a failure of the check."""
    (folder / "store.sqlite").write_bytes(b"garbage" * 1000)
    code, found, output = doctor(f"--data-dir={folder}", "--secure-port=0")
    assert code == 2
    assert "error" in (found.get("store/readable"), found.get("store/structure")), output
    assert "store/failed" not in found, output


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A full file system of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True)
    except OSError as problem:
        pytest.skip(f"no file system can be mounted here: {problem}")
    if done.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_full_disk(small_disk: Path) -> None:
    """A disk without space is an error, and nothing is written there."""
    code, found, output = doctor(f"--data-dir={small_disk}/data", "--secure-port=0")
    assert (code, found["disk/space"], found["disk/filesystem"]) == (2, "error", "warning"), output
    assert list(small_disk.iterdir()) == []


def test_running_server(start_server: Callable[..., SubprocessServer]) -> None:
    """A running server is found by its directory, and is not disturbed."""
    server = start_server("--storage-backend=sqlite", "--controllers=", timeout=TIMEOUT)
    for number in range(3):
        path = "/api/v1/namespaces/default/configmaps"
        assert server.request("POST", path, {"metadata": {"name": f"m-{number}"}})[0] == 201
    code, found, output = doctor(f"--data-dir={server.data_dir}")
    assert found["server/ready"] == found["clock/skew"] == found["store/mark"] == found["store/structure"] == "ok", (
        output
    )
    assert (code, found["data-directory/lock"]) == (0, "ok"), output
    assert f"process {server.pid} uses" in output
    assert server.request("POST", path, {"metadata": {"name": "later"}})[0] == 201
    assert server.stop() == 0
    server.start()
    assert server.request("GET", f"{path}/later")[0] == 200


def test_paused_server(start_server: Callable[..., SubprocessServer]) -> None:
    """A server that does not answer is an error after the timeout of the request."""
    import signal

    server = start_server("--storage-backend=sqlite", "--controllers=", timeout=TIMEOUT)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        code, found, output = doctor(f"--data-dir={server.data_dir}")
        assert (code, found["server/reachable"]) == (2, "error"), output
        assert time.monotonic() - began < TIMEOUT
    finally:
        os.kill(server.pid, signal.SIGCONT)


def test_used_port(start_server: Callable[..., SubprocessServer], tmp_path: Path) -> None:
    """The port of another server is reported."""
    port = start_server("--in-memory", "--controllers=", timeout=TIMEOUT).url.rpartition(":")[2]
    code, found, output = doctor(f"--data-dir={tmp_path}/other", f"--secure-port={port}")
    assert (code, found["server/port"]) == (2, "error"), output


@pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason())
def test_etcd(tmp_path: Path) -> None:
    """The version, the health and the size of a member are read; a member that has ended is an error."""
    with EtcdServer() as etcd:
        (url,) = etcd.urls
        flags = (f"--etcd-servers={url}", f"--data-dir={tmp_path}/data", "--secure-port=0")
        _, found, output = doctor(*flags)
        assert found["etcd/size"] == found["clock/skew"] == "ok", output
        assert "etcd/version" in found, output
        assert found["etcd/quorum"] == "note", output
        assert found["etcd/tls"] == "warning", output
        assert not {"etcd/reachable", "etcd/health", "etcd/leader", "etcd/alarms"} & set(found), output
        user = url.replace("http://", "http://user:topsecret@")
        assert "topsecret" not in doctor(f"--etcd-servers={user}", *flags[1:])[2]
    code, found, output = doctor(*flags)
    assert (code, found["etcd/reachable"], found["etcd/quorum"]) == (2, "error", "error"), output


def test_page(folder: Path) -> None:
    """The command of the page succeeds."""
    replaced = {"/var/lib/kubetwist": str(folder), "--secure-port=6443": "--secure-port=0"}
    assert " data-directory/format " in run_block(folder.parent, "doctor.md", "kubetwist doctor", replaced)


def test_bad_flag() -> None:
    """An invalid flag is one line."""
    done = subprocess.run(
        [sys.executable, "-m", "kubetwist", "doctor", "--nope"], capture_output=True, text=True, timeout=TIMEOUT
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "kubetwist doctor: unknown flag: --nope; see kubetwist doctor --help\n"
