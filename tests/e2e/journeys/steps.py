"""What the scripts of the journeys share: an environment of Python, a running server, and steps with their times."""

from __future__ import annotations

import base64
import http.client
import json
import os
import resource
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.checkout import CHECKOUT

#: Seconds for a command, and for a server to be ready.
TIMEOUT = 300
#: What a wheel is built from.
SOURCES = ("kubetwist", "twisted", "pyproject.toml", "README.md", "LICENSE", "NOTICE")


class Steps:
    """
    Runs commands in a folder, and measures them.

    @ivar folder: The folder of the project of the newcomer.
    @ivar python: The Python of the environment with kubetwist.
    @ivar taken: The name of each step with its seconds: wall time, and CPU time of the commands.
    """

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder = folder
        self.python = python
        self.taken: list[tuple[str, float, float]] = []

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure a step."""
        began, used = time.monotonic(), _cpu_of_commands()
        yield
        self.taken.append((name, time.monotonic() - began, _cpu_of_commands() - used))

    def run(self, *command: str | Path, folder: Path | None = None) -> str:
        """
        Run a command to its end; return what it prints.

        @raise AssertionError: The command fails; the message is its output.
        """
        done = subprocess.run(
            command,
            cwd=folder or self.folder,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
        )
        assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-6000:]}"
        return done.stdout

    def pip(self, *arguments: str | Path, folder: Path | None = None) -> None:
        """Run pip of the environment."""
        self.run(self.python, "-m", "pip", "--disable-pip-version-check", *arguments, folder=folder)

    @contextmanager
    def server(self, *flags: str) -> Iterator[Server]:
        """Run C{twist kubeapi} in the folder; the context begins when it is ready."""
        command = [self.python, "-m", "twisted", "kubeapi", "--secure-port=0", *flags]
        with open(self.folder / "server.log", "w+") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, env=clean_environment(), stdout=log, stderr=subprocess.STDOUT
            )
            try:
                yield _wait_for_server(process, self.folder)
            finally:
                process.terminate()
                process.wait(TIMEOUT)
        assert process.returncode == 0, (self.folder / "server.log").read_text()


class Server:
    """A running server, as clients with the administrator's kubeconfig see it."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        config = yaml.safe_load(kubeconfig.read_text())
        self.url = config["clusters"][0]["cluster"]["server"]
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._files = {
            name: _file_of(part, name, kubeconfig.parent)
            for part, name in (
                (cluster, "certificate-authority"),
                (user, "client-certificate"),
                (user, "client-key"),
            )
        }

    def request(self, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
        """
        Send a request; return the status code and the decoded body.

        @param token: Authenticates the request; without it, the administrator's certificate does.
        """
        context = ssl.create_default_context(cafile=self._files["certificate-authority"])
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        else:
            context.load_cert_chain(self._files["client-certificate"], self._files["client-key"])
        address = urlsplit(self.url)
        connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=context, timeout=30)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            content = response.read()
            return response.status, json.loads(content) if content[:1] == b"{" else content.decode()
        finally:
            connection.close()

    def create(self, path: str, body: Any) -> Any:
        """Create an object; return it."""
        status, created = self.request("POST", path, body)
        assert status == 201, created
        return created


def clean_environment() -> dict[str, str]:
    """Return the variables of this process without those that change how Python or pytest run."""
    changing = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHOME", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "KUBECONFIG")
    return {
        name: value
        for name, value in os.environ.items()
        if name not in changing and not name.startswith(("PYTEST_", "COVERAGE_", "COV_CORE_"))
    }


def kubectl() -> str | None:
    """Return the path of kubectl, if there is one."""
    return os.environ.get("KUBETWIST_TEST_KUBECTL") or shutil.which("kubectl")


def new_environment(folder: Path) -> Path:
    """Create an environment with pip only; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, env=clean_environment(), timeout=TIMEOUT)
    return folder / "bin" / "python"


def has_index(python: Path) -> bool:
    """Return whether pip of an environment finds packages to install."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "pip", "download", "-q", "--no-deps", "--retries=0", "--timeout=10", "-d", folder]
        return not subprocess.run(
            [*command, "constantly"], capture_output=True, env=clean_environment(), timeout=TIMEOUT
        ).returncode


def build_wheel(python: Path, folder: Path) -> Path:
    """
    Return the wheel that C{KUBETWIST_TEST_WHEEL} names; without it, build one from the sources.

    @param folder: Where the wheel is built. The sources are copied, because setuptools writes into their folder.
    """
    named = os.environ.get("KUBETWIST_TEST_WHEEL")
    if named:
        return Path(named)
    sources = folder / "sources"
    sources.mkdir(parents=True)
    for name in SOURCES:
        path = CHECKOUT / name
        if path.is_dir():
            shutil.copytree(path, sources / name, ignore=shutil.ignore_patterns("__pycache__", "dropin.cache"))
        else:
            shutil.copy(path, sources)
    Steps(folder, python).pip("wheel", "--quiet", "--no-deps", "--wheel-dir=wheels", sources)
    (wheel,) = (folder / "wheels").glob("*.whl")
    return wheel


def run_alone(walk: Callable[[Steps], None], installed: bool = True) -> None:
    """
    Run a journey as a script: in a new environment, in a temporary folder; print the times of its steps.

    @param installed: Whether kubetwist is installed before.
    """
    with tempfile.TemporaryDirectory(prefix="kubetwist-journey-") as temporary:
        folder = Path(temporary)
        python = new_environment(folder / "environment")
        wheel = build_wheel(python, folder / "build")
        steps = Steps(folder / "project", python)
        steps.folder.mkdir()
        os.environ["KUBETWIST_TEST_WHEEL"] = str(wheel)
        if installed:
            steps.pip("install", "--quiet", wheel)
        walk(steps)
    for name, wall, cpu in steps.taken:
        print(f"{wall:6.1f} s  {cpu:6.1f} s CPU  {name}")


def _cpu_of_commands() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _file_of(part: dict[str, str], name: str, folder: Path) -> str:
    """Return the path of a file of a kubeconfig, which has its path relative to itself, or its content."""
    if name in part:
        return str(folder / part[name])
    path = folder / f"journey.{name}"
    path.write_bytes(base64.b64decode(part[f"{name}-data"]))
    return str(path)


def _wait_for_server(process: subprocess.Popen[bytes], folder: Path) -> Server:
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            server = Server(folder / "kubetwist-data" / "admin.kubeconfig")
            if server.request("GET", "/readyz") == (200, "ok"):
                return server
        except (OSError, http.client.HTTPException, yaml.YAMLError, TypeError) as error:
            last: object = error
        else:
            last = "not ready"
        if process.poll() is not None or time.monotonic() > deadline:
            log = (folder / "server.log").read_text()
            raise AssertionError(f"no server: {last}, exit code {process.poll()}\n{log[-4000:]}")
        time.sleep(0.02)
