"""
The image: linted, built step by step without a registry, and run with a read-only root file system as any user.

The base image is empty here. The /usr of this machine and the interpreter of the tests are mounted into it, so that all
instructions of the Containerfile run as with the image of Python.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ..pages import DOCS
from .files import DEPLOY, PROJECT

CONTAINERFILE = DEPLOY / "container" / "Containerfile"
#: Seconds for a build, and for a run, on a busy machine.
TIMEOUT = 1500
#: Where the mounted interpreter is, as in the image of Python.
LIBRARIES = "/usr/local/lib"

#: Runs an image as a container engine does: C{run ROOT USER VOLUME COMMAND...}. The result of the check is on stdout.
RUN = """
set -eu
root=$1 user=$2 volume=$3
shift 3
mount --bind "$root" "$root"
mount --rbind /usr "$root/usr"
[ "$PYTHON" = /usr ] || mount --bind "$PYTHON" "$root/usr/local"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$volume" "$root/var/lib/kubetwist"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -o remount,bind,ro "$root"
inside() { exec chroot --userspec="$user" "$root" "$@"; }
(inside /bin/sh -c 'id -u; touch /usr/x /x /opt/kubetwist/x 2>/dev/null || echo read-only')
(inside "$@") &
server=$!
for i in $(seq 600); do
    if (inside $HEALTH) 2>/dev/null; then break; fi
    kill -0 "$server" || break
    sleep 0.1
done
kill -s "$STOP" "$server"
code=0
wait "$server" || code=$?
echo "exit code $code"
"""


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The flags of buildah and podman for a separate storage."""
    folder = tmp_path_factory.mktemp("storage")
    yield ["--storage-driver=vfs", f"--root={folder}/storage", f"--runroot={folder}/run"]
    # Files of other users would remain otherwise.
    shutil.rmtree(folder, ignore_errors=True)


def volumes() -> list[str]:
    """Return the flags that mount the interpreter of the tests into a build."""
    flags = ["--volume=/usr:/usr:ro"]
    if sys.base_prefix != "/usr":
        flags.append(f"--volume={sys.base_prefix}:/usr/local:ro")
    return flags


@pytest.fixture(scope="module")
def buildah(storage: list[str]) -> Iterator[Callable[..., str]]:
    """Run buildah with a separate storage."""
    program = shutil.which("buildah")
    if program is None or os.geteuid():
        pytest.skip("needs root and buildah")
    command = [program, *storage]

    def run(*arguments: str) -> str:
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=TIMEOUT)
        assert done.returncode == 0, f"buildah {' '.join(arguments)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout.strip()

    with ExitStack() as cleanup:
        cleanup.callback(run, "umount", "--all")
        yield run


@pytest.fixture(scope="module")
def base(buildah: Callable[..., str]) -> str:
    """An image with empty directories, into which directories of this machine are mounted."""
    container = buildah("from", "scratch")
    root = Path(buildah("mount", container))
    for name in ("usr", "etc", "proc", "dev", "sys", "tmp", "var/lib", "run", "opt", "root"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        if Path("/", name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
        else:
            pytest.skip(f"/{name} of this machine is not in /usr")
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\n")
    # How this machine reaches its package index.
    for path in (Path("/etc/ssl"), Path("/etc/pip.conf"), Path("/etc/xdg/pip")):
        if path.is_dir():
            shutil.copytree(path, root / path.relative_to("/"), ignore_dangling_symlinks=True, dirs_exist_ok=True)
        elif path.exists():
            shutil.copy(path, root / path.relative_to("/"))
    settings = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_CERT_"))}
    settings["LD_LIBRARY_PATH"] = LIBRARIES
    for name, value in settings.items():
        buildah("config", f"--env={name}={value}", container)
    buildah("config", "--env=PATH=/usr/local/bin:/usr/bin:/bin", container)
    buildah("umount", container)
    buildah("commit", "--quiet", container, "localhost/base")
    return "localhost/base"


@pytest.fixture(scope="module")
def image(buildah: Callable[..., str], base: str) -> str:
    """The image, built from the Containerfile."""
    flags = ("--isolation=chroot", "--format=docker", f"--build-arg=BASE={base}", *volumes())
    buildah("build", *flags, f"--file={CONTAINERFILE}", "--tag=localhost/kubetwist", str(PROJECT))
    return "localhost/kubetwist"


def test_page(buildah: Callable[..., str], base: str, storage: list[str], tmp_path: Path) -> None:
    """podman builds the image with the command of the page."""
    podman = shutil.which("podman")
    if podman is None:
        pytest.skip("podman is not installed")
    (script,) = re.findall(r"```shell\n(podman build .*?)```", (DOCS / "deployment.md").read_text("utf-8"), re.DOTALL)
    build, run = (shlex.split(line) for line in script.splitlines())
    assert (build[:2], run[:2]) == (["podman", "build"], ["podman", "run"])
    extra = ["--isolation=chroot", "--layers=false", f"--build-arg=BASE={base}", *volumes()]
    done = subprocess.run(
        [podman, *storage, "build", *extra, *build[2:]], cwd=PROJECT, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    inspected = json.loads(buildah("inspect", "--type=image", f"localhost/{run[-1]}"))
    assert inspected["Docker"]["config"]["User"] == "65532:0"


@pytest.fixture(scope="module")
def settings(buildah: Callable[..., str], image: str) -> Any:
    """The configuration of the image."""
    inspected = json.loads(buildah("inspect", "--type=image", image))
    return inspected["Docker"]["config"]


def test_lint() -> None:
    """hadolint finds nothing in the Containerfile."""
    hadolint = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([hadolint, str(CONTAINERFILE)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_settings(settings: Any) -> None:
    """The image runs without root, is stopped gracefully, and has a health check, a volume and a port."""
    assert settings["User"] == "65532:0"
    assert settings["StopSignal"] == "SIGTERM"
    assert settings["Healthcheck"]["Test"][:3] == ["CMD", "kubetwist", "health"]
    assert list(settings["Volumes"]) == ["/var/lib/kubetwist"]
    assert list(settings["ExposedPorts"]) == ["6443/tcp"]
    assert settings["Labels"]["org.opencontainers.image.title"] == "kubetwist"


@pytest.mark.parametrize("user", ["65532:0", "1000660000:0"])
def test_run(buildah: Callable[..., str], image: str, settings: Any, tmp_path: Path, user: str) -> None:
    """The server is healthy and stops gracefully as the default user, and as any user of group 0."""
    container = buildah("from", image)
    root = buildah("mount", container)
    volume = tmp_path / "volume"
    shutil.copytree(Path(root, "var/lib/kubetwist"), volume)
    os.chown(volume, 65532, 0)
    environment = dict(one.split("=", 1) for one in settings["Env"])
    environment |= {
        "PYTHON": sys.base_prefix,
        "HEALTH": " ".join(settings["Healthcheck"]["Test"][1:]),
        "STOP": settings["StopSignal"].removeprefix("SIG"),
    }
    command = [*settings["Entrypoint"], *settings["Cmd"], "--secure-port=0"]
    done = subprocess.run(
        ["unshare", "--mount", "/bin/sh", "-c", RUN, "run", root, user, str(volume), *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    lines = [user.partition(":")[0], "read-only", "ok", "exit code 0"]
    assert done.stdout.splitlines() == lines, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
