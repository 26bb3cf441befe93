"""
Measure the seconds from C{twist kubeapi} to a successful /readyz, in a new and in an existing data directory.

A client polls over the network; the start of the process is included. C{in process} is C{KubeAPI().start()} in a
Python process without imports of kubetwist, C{again} a second server in the same process. Then, for that server: a
C{reset} of objects of a test (a namespace, 50 objects, a definition with one object), one of an unchanged server, a
C{stop} with 100 open watches, and the memory of a process with an idle server.

Python must be able to write bytecode: do not set PYTHONDONTWRITEBYTECODE.
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
    """Return whether the server of the kubeconfig is ready."""
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
    """Start and stop a server; return the seconds until it was ready."""
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
import sys, time
began = time.perf_counter()
from kubetwist.testing import KubeAPI
server = KubeAPI().start()
first = time.perf_counter()
with KubeAPI():
    again = time.perf_counter()
server.settle()
status = open("/proc/self/status").read()
memory = int(status.partition("VmRSS:")[2].split()[0]) / 1024

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "foos.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "foos", "kind": "Foo"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}
server.reset()
resets, idle = [], []
for _ in range(10):
    server.load(
        [
            DEFINITION,
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}},
            {"apiVersion": "example.org/v1", "kind": "Foo", "metadata": {"name": "foo"}},
            *({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{n}"}} for n in range(50)),
        ],
    )
    for times in (resets, idle):
        begun = time.perf_counter()
        server.reset()
        times.append(time.perf_counter() - begun)

import http.client
watches = []
for _ in range(100):
    watch = http.client.HTTPSConnection(
        "127.0.0.1", server.connection.port, context=server.connection.ssl_context(), timeout=30
    )
    watch.request("GET", "/api/v1/pods?watch=1", headers={"Authorization": "Bearer " + server.token})
    watches.append((watch, watch.getresponse()))
begun = time.perf_counter()
server.stop()
stop = time.perf_counter() - begun
print(first - began, again - first, sorted(resets)[5], sorted(idle)[5], stop, memory)
"""
#: What that prints, and its unit: the name, what a number is multiplied by, and what it is then.
INSIDE = (
    ("in process", 1, "s"),
    ("again", 1, "s"),
    ("reset", 1000, "ms"),
    ("reset, idle", 1000, "ms"),
    ("stop", 1000, "ms"),
    ("memory", 1, "MiB"),
)


def in_process() -> list[float]:
    """Measure the steps of L{INSIDE} in a new process."""
    done = subprocess.run([sys.executable, "-c", IN_PROCESS], capture_output=True, text=True, check=True)
    return list(map(float, done.stdout.split()))


def free_port() -> int:
    """Return a port that is not in use."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    """Measure several starts of both kinds; print the medians and all values."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    first, later, inside = [], [], []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as parent:
            folder, port = Path(parent, "data"), free_port()
            first.append(start(folder, port))
            later.append(start(folder, port))
        inside.append(in_process())
    print(f"on {os.cpu_count()} CPUs, Python {sys.version.split()[0]}")
    rows = [("first", 1, "s", first), ("second", 1, "s", later)]
    rows += [(*row, [each[index] for each in inside]) for index, row in enumerate(INSIDE)]
    for name, factor, unit, taken in rows:
        shown = [f"{value * factor:.{2 if unit == 's' else 1}f}" for value in (statistics.median(taken), *taken)]
        print(f"{name:12} {shown[0]:>6} {unit:3}  ({' '.join(shown[1:])})")


if __name__ == "__main__":
    main()
