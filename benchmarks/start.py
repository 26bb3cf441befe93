"""
Seconds from C{twist kubeapi} to a /readyz that says ok: in a new data directory, and in one that is there.

Over the network, as a client waits for it; the process' own start is part of it. C{in process} is C{KubeAPI().start()}
in a Python that has imported nothing of us yet, C{again} a second one in the same process.
"""

from __future__ import annotations

import argparse
import http.client
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml


def ready(kubeconfig: Path, context: ssl.SSLContext) -> bool:
    """Whether the server that the kubeconfig names says ok."""
    try:
        url = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        connection = http.client.HTTPSConnection(url.removeprefix("https://"), context=context, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, yaml.YAMLError, TypeError):
        return False


def start(folder: Path, port: int) -> float:
    """Start, wait, stop; how long it took to be ready."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    kubeconfig = folder / "admin.kubeconfig"
    command = [sys.executable, "-m", "twisted", "kubeapi", f"--data-dir={folder}", f"--secure-port={port}"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        while not ready(kubeconfig, context):
            if process.poll() is not None or time.perf_counter() - began > 60:
                raise SystemExit(f"start: no server, exit code {process.poll()}")
            time.sleep(0.005)
        return time.perf_counter() - began
    finally:
        process.terminate()
        process.communicate()


IN_PROCESS = """
import time
began = time.perf_counter()
from kubetwist.testing import KubeAPI
with KubeAPI():
    first = time.perf_counter()
    with KubeAPI():
        print(first - began, time.perf_counter() - first)
"""


def in_process() -> tuple[float, float]:
    """How long the first and the second server in a new process take."""
    done = subprocess.run([sys.executable, "-c", IN_PROCESS], capture_output=True, text=True, check=True)
    first, second = map(float, done.stdout.split())
    return first, second


def free_port() -> int:
    """A port that nothing listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    """Measure several starts of both kinds; the middle ones and all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    first, later, inside, again = [], [], [], []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as parent:
            folder, port = Path(parent, "data"), free_port()
            first.append(start(folder, port))
            later.append(start(folder, port))
        for times, took in zip((inside, again), in_process(), strict=True):
            times.append(took)
    print(f"on {os.cpu_count()} CPUs, Python {sys.version.split()[0]}")
    for name, times in (("first", first), ("second", later), ("in process", inside), ("again", again)):
        print(f"{name:10} {statistics.median(times):.2f} s   ({' '.join(f'{took:.2f}' for took in times)})")


if __name__ == "__main__":
    main()
