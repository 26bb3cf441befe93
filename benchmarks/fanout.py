"""
Measure the server's CPU time for sending events to watches.

    python benchmarks/fanout.py [--watchers 100,1000] [--writers 1,8] [--protocols http1,http2] [--formats json]

In each round, some writers change one ConfigMap each at the same time, and all watches receive all events. The script
prints the CPU time of the server (user and system) per event and watch, without the time of the same writes without
watches, and the median and the 99th percentile of the time from a round's first request to its last event. HTTP/2 has
100 watches per connection, HTTP/1.1 one; C{floor} is what encryption and the system call cost for one (F{tlsfloor.py}).
"""

from __future__ import annotations

import os
import re
import select
import socket
import statistics
import sys
import time
from pathlib import Path
from struct import pack
from typing import NamedTuple
from urllib.parse import urlsplit

import tlsfloor
from http2attacks import HEADERS, PREFACE, SETTINGS, WINDOW_UPDATE, field, frame
from load import Target, arguments, target, trusting

#: Seconds without received data after which a measurement is aborted.
PATIENCE = 60.0
#: Streams of one connection.
STREAMS = 100
#: The value that a write sets; it is in its event once.
_MARK = re.compile(rb"beat-\d{6}")
_MARK_LENGTH = 11
#: The largest window, for a client that never waits for one.
_WINDOW = 2**31 - 1
_CONTENT = {"json": "application/json", "protobuf": "application/vnd.kubernetes.protobuf"}


class Connection:
    """
    A TLS connection with non-blocking reads.

    @ivar received: The number of received events.
    @ivar answers: The number of received responses to writes.
    """

    def __init__(self, url: str, protocols: list[str]) -> None:
        parts = urlsplit(url)
        plain = socket.create_connection((parts.hostname, parts.port or 443))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        context = trusting()
        context.set_alpn_protocols(protocols)
        self.socket = context.wrap_socket(plain)
        self.received = self.answers = 0
        self._tail = b""

    def receive(self) -> None:
        """Read all available data, and count the events and responses in them."""
        pieces = [self._tail]
        try:
            while data := self.socket.recv(1 << 16):
                pieces.append(data)
            raise SystemExit("the server closed a connection")
        except OSError as error:
            if not isinstance(error, (BlockingIOError,)) and error.errno != 2:
                raise
        data = b"".join(pieces)
        end = 0
        for match in _MARK.finditer(data):
            self.received += 1
            end = match.end()
        self.answers += data.count(b"HTTP/1.1 200", len(self._tail))
        self._tail = data[max(end, len(data) - _MARK_LENGTH + 1) :]


class Setting(NamedTuple):
    """
    One measurement: the number of watches and of writers, the protocol and the format of the watches.

    C{streams} is the number of watches of one connection of HTTP/2.
    """

    watchers: int
    writers: int
    protocol: str
    format: str
    streams: int = STREAMS


def open_watches(server: Target, path: str, version: str, setting: Setting) -> list[Connection]:
    """Open the watches of a measurement; returns their connections."""
    query = f"{path}?watch=1&resourceVersion={version}&timeoutSeconds=3000"
    accept = _CONTENT[setting.format]
    if setting.protocol == "http1":
        connections = []
        for _ in range(setting.watchers):
            connection = Connection(server.url, ["http/1.1"])
            # Connections without requests have a limit.
            connection.socket.sendall(server.request("GET", query, Accept=accept))
            connections.append(connection)
    else:
        block = b"".join(
            (
                field(b":method", b"GET"),
                field(b":scheme", b"https"),
                b"\x00\x05:path" + _length(len(query)) + query.encode(),
                field(b":authority", b"x"),
                field(b"authorization", b"Bearer " + server.token.encode()),
                field(b"accept", accept.encode()),
            )
        )
        start = PREFACE + frame(SETTINGS, payload=b"\0\4" + pack(">I", _WINDOW)) + frame(SETTINGS, 1)
        start += frame(WINDOW_UPDATE, payload=pack(">I", _WINDOW - 65535))
        connections = []
        for first in range(0, setting.watchers, setting.streams):
            connection = Connection(server.url, ["h2"])
            connection.socket.sendall(start)
            for number in range(min(setting.streams, setting.watchers - first)):
                connection.socket.sendall(frame(HEADERS, 5, 2 * number + 1, block))
            connections.append(connection)
    return connections


def _length(size: int) -> bytes:
    """Return the length of a string in a header block."""
    return bytes((size,)) if size < 127 else bytes((127, (size - 127) & 127 | 128, (size - 127) >> 7))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Rounds:
    """Writers, watches, and the rounds of a measurement."""

    def __init__(self, server: Target, path: str, version: str, setting: Setting) -> None:
        self._server = server
        self._path = path
        self._watchers = setting.watchers
        self._watches = open_watches(server, path, version, setting)
        self._writers = [Connection(server.url, ["http/1.1"]) for _ in range(setting.writers)]
        self._count = 0
        self._poll = select.epoll()
        self._by_number: dict[int, Connection] = {}
        for connection in (*self._watches, *self._writers):
            connection.socket.setblocking(False)
            self._by_number[connection.socket.fileno()] = connection
            self._poll.register(connection.socket.fileno(), select.EPOLLIN | select.EPOLLET)

    def one(self) -> float:
        """Run a round; returns its time in seconds."""
        began = time.perf_counter()
        for number, writer in enumerate(self._writers):
            self._count += 1
            body = {"data": {"count": f"beat-{self._count:06}"}}
            writer.socket.setblocking(True)
            writer.socket.sendall(
                self._server.request(
                    "PATCH", f"{self._path}/one-{number}", body, Content_Type="application/merge-patch+json"
                )
            )
            writer.socket.setblocking(False)
        events = self._watchers * self._count
        while sum(one.received for one in self._watches) < events or (
            sum(one.answers for one in self._writers) < self._count
        ):
            ready = self._poll.poll(PATIENCE)
            if not ready:
                raise SystemExit(f"{sum(one.received for one in self._watches)} of {events} events were received")
            for number, _ in ready:
                self._by_number[number].receive()
        return time.perf_counter() - began

    def close(self) -> None:
        """Close all connections."""
        for connection in self._by_number.values():
            connection.socket.close()
        self._poll.close()


def measure(server: Target, path: str, setting: Setting, rounds: int) -> tuple[float, list[float]]:
    """
    Run some rounds.

    @param server: The server.
    @param path: The path of the ConfigMaps.
    @param setting: What is measured.
    @param rounds: The number of rounds.
    @return: The CPU time of the server, and the time of each round, in seconds.
    """
    assert server.pid is not None, "the process of the server is known"
    version = server.call("GET", f"{path}?limit=1")["metadata"]["resourceVersion"]
    run = Rounds(server, path, version, setting)
    time.sleep(1 + setting.watchers / 1000)
    for _ in range(5):
        run.one()
    before = cpu_seconds(server.pid)
    times = [run.one() for _ in range(rounds)]
    used = cpu_seconds(server.pid) - before
    run.close()
    time.sleep(0.5)
    return used, times


def main() -> int:
    """Measure."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--watchers", default="100,1000", help="numbers of watches, comma-separated")
    parser.add_argument("--writers", default="1,8", help="numbers of writers, comma-separated")
    parser.add_argument("--protocols", default="http1,http2")
    parser.add_argument("--formats", default="json,protobuf")
    parser.add_argument("--events", type=int, default=60_000, help="events of a measurement, of all watches together")
    options = parser.parse_args()
    with target(options) as server:
        path = f"/api/v1/namespaces/fanout-{time.time_ns()}/configmaps"
        server.call("POST", "/api/v1/namespaces", {"metadata": {"name": path.split("/")[4]}})
        writers = [int(one) for one in options.writers.split(",")]
        for number in range(max(writers)):
            data = {"count": "-", "filling": "x" * 1000}
            server.call("POST", path, {"metadata": {"name": f"one-{number}"}, "data": data})
        names = ("watches", "writers", "protocol", "format", "us/event", "floor", "median ms", "p99 ms")
        print("{:>8} {:>8} {:>9} {:>9} {:>9} {:>6} {:>10} {:>8}".format(*names))
        for writing in writers:
            rounds = max(options.events // 100 // writing, 20)
            alone = measure(server, path, Setting(0, writing, "http1", "json"), rounds)[0] / rounds
            for watchers in map(int, options.watchers.split(",")):
                floor = f"{tlsfloor.measure(watchers, 1500)['encryptor']:.1f}" if "http1" in options.protocols else ""
                for protocol in options.protocols.split(","):
                    for form in options.formats.split(","):
                        rounds = max(options.events // watchers // writing, 20)
                        used, times = measure(server, path, Setting(watchers, writing, protocol, form), rounds)
                        micro = 1e6 * (used - alone * rounds) / (rounds * writing * watchers)
                        median, p99 = (1000 * one for one in statistics.quantiles(times, n=100)[49::49])
                        print(
                            f"{watchers:8} {writing:8} {protocol:>9} {form:>9} {micro:9.1f}"
                            f" {floor if protocol == 'http1' else '':>6} {median:10.1f} {p99:8.1f}",
                            flush=True,
                        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
