"""
Measure the cost of watches that are never read: memory, and the latency of another client with 20 GETs per second.

Objects of a given total size are created. Then connections are opened that request all of them as initial events and
read nothing. The script prints the resident memory of the server before, with and after the watches, and the p99 of the
other client without and with them.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from multiprocessing.queues import Queue
from typing import Any
from urllib.parse import urlsplit

from load import Target, arguments, target, trusting
from mixed import fill

#: GETs per second of the other client.
RATE = 20.0
FORMS = {
    "json": "application/json",
    "table": "application/json;as=Table;v=v1;g=meta.k8s.io",
    "metadata": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "protobuf": "application/vnd.kubernetes.protobuf;stream=watch",
}


CONTEXT = trusting()


def connect(url: str) -> ssl.SSLSocket:
    """Open a connection."""
    parts = urlsplit(url)
    plain = socket.create_connection((parts.hostname, parts.port or 443), 120)
    return CONTEXT.wrap_socket(plain)


def victim(server: Target, path: str, stop: Any, found: Queue[list[float]]) -> None:
    """
    Send GETs until C{stop} is set; append their latencies in seconds, from the time at which each was due, to C{found}.
    """
    connection = connect(server.url)
    message = server.request("GET", path)
    took: list[float] = []
    due = time.perf_counter()
    while not stop.is_set():
        time.sleep(max(0.0, due - time.perf_counter()))
        connection.sendall(message)
        data = b""
        while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < _length(data):
            data += connection.recv(1 << 16)
        took.append(time.perf_counter() - due)
        due += 1 / RATE
    found.put(took)


def _length(data: bytes) -> int:
    for line in data.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    raise SystemExit(f"an answer without a length: {data[:300]!r}")


@contextlib.contextmanager
def measured(server: Target, path: str, name: str) -> Iterator[None]:
    """Print the latency of the other client during the block."""
    stop = multiprocessing.Event()
    found: Queue[list[float]] = multiprocessing.Queue()
    process = multiprocessing.Process(target=victim, args=(server, path, stop, found))
    process.start()
    time.sleep(0.5)
    yield
    stop.set()
    took = sorted(found.get(timeout=120))
    process.join()
    p99 = took[int(len(took) * 0.99)]
    print(f"{name}: {len(took)} GETs, p50 {took[len(took) // 2] * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms", flush=True)


def main() -> int:
    """Measure."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--watches", type=int, default=1000)
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--size", type=int, default=50_000, help="bytes of an object")
    parser.add_argument("--form", choices=FORMS, default="json")
    options = parser.parse_args()
    with target(options) as server:
        path = f"/api/v1/namespaces/unread-{time.time_ns()}/configmaps"
        server.call("POST", "/api/v1/namespaces", {"metadata": {"name": path.split("/")[4]}})
        count = round(options.megabytes * 1e6 / options.size)
        note = {"note": "n" * min(options.size // 2, 200_000)}
        data = {"x": "x" * (options.size - len(note["note"]))}
        fill(
            server,
            [
                server.request(
                    "POST",
                    path,
                    {"metadata": {"name": f"o-{n}", "annotations": note}, "data": data},
                    Content_Type="application/json",
                )
                for n in range(count)
            ],
        )
        server.call("POST", path, {"metadata": {"name": "victim"}})
        with measured(server, f"{path}/victim", "before"):
            time.sleep(5)
        before = server.memory()
        query = "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        watches = []
        with measured(server, f"{path}/victim", "under attack"):
            for _ in range(options.watches):
                watch = connect(server.url)
                watch.sendall(server.request("GET", f"{path}{query}&timeoutSeconds=900", Accept=FORMS[options.form]))
                watches.append(watch)
            time.sleep(10)
        during = server.memory()
        for watch in watches:
            watch.close()
        time.sleep(30)
        print(f"resident: before {before:.0f} MB, with watches {during:.0f} MB, 30 s after {server.memory():.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
