"""
Measure the time from the answer to a write until watches receive its event.

One connection patches a ConfigMap repeatedly; others watch it. For each number of watches, the script prints the median
and the 5th and 95th percentile of (event received - answer received) in microseconds; negative values mean that the
event came first. One thread reads all connections in the order in which the system reports them.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import statistics
import sys
import time
from urllib.parse import urlsplit

from load import Target, arguments, target, trusting

#: Seconds without received data after which a measurement is aborted.
PATIENCE = 20.0
_VALUE = re.compile(rb'"count":"(\d+)"')


class Connection:
    """
    A TLS connection with non-blocking reads.

    @ivar buffer: Received data that are not processed yet.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        plain = socket.create_connection((parts.hostname, parts.port or 443))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = trusting().wrap_socket(plain)
        self.socket.setblocking(False)
        self.buffer = b""

    def send(self, data: bytes) -> None:
        """Send a short message."""
        self.socket.sendall(data)

    def receive(self) -> None:
        """Read all available data."""
        try:
            while data := self.socket.recv(1 << 16):
                self.buffer += data
        except ssl.SSLWantReadError:
            return
        raise SystemExit("the server closed a connection")


def measure(server: Target, path: str, watchers: int, writes: int) -> list[float]:
    """
    Write and watch.

    @return: Seconds from an answer to an event, for each write and watch.
    """
    poll = select.epoll()
    version = server.call("GET", f"{path}/one")["metadata"]["resourceVersion"]
    watches = [Connection(server.url) for _ in range(watchers)]
    by_number: dict[int, Connection] = {}
    for watch in watches:
        query = f"?watch=1&resourceVersion={version}&timeoutSeconds=600"
        watch.send(server.request("GET", path + query, Accept="application/json"))
        by_number[watch.socket.fileno()] = watch
    writer = Connection(server.url)
    by_number[writer.socket.fileno()] = writer
    for number in by_number:
        poll.register(number, select.EPOLLIN | select.EPOLLET)
    time.sleep(1)
    differences: list[float] = []
    for count in range(writes):
        body = {"data": {"count": str(count)}}
        answered = 0.0
        events: dict[object, float] = {}
        writer.send(server.request("PATCH", f"{path}/one", body, Content_Type="application/merge-patch+json"))
        while not answered or len(events) < watchers:
            ready = poll.poll(PATIENCE)
            if not ready:
                raise SystemExit(f"write {count}: {len(events)} of {watchers} events came")
            for number, _ in ready:
                connection = by_number[number]
                connection.receive()
                now = time.perf_counter()
                found = _VALUE.findall(connection.buffer)
                if not found or int(found[-1]) != count:
                    continue
                connection.buffer = b""
                if connection is writer:
                    answered = now
                else:
                    events[number] = now
        differences += [moment - answered for moment in events.values()]
    for connection in by_number.values():
        connection.socket.close()
    poll.close()
    return differences


def main() -> int:
    """Measure."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--watchers", default="1,10,100", help="numbers of watchers, comma-separated")
    parser.add_argument("--writes", type=int, default=300)
    options = parser.parse_args()
    with target(options) as server:
        path = f"/api/v1/namespaces/order-{time.time_ns()}/configmaps"
        server.call("POST", "/api/v1/namespaces", {"metadata": {"name": path.split("/")[4]}})
        server.call("POST", path, {"metadata": {"name": "one"}, "data": {"count": "-", "filling": "x" * 1000}})
        print(f"{'watchers':>8} {'p5':>10} {'median':>10} {'p95':>10}   us from answer to event")
        for watchers in map(int, options.watchers.split(",")):
            found = [1e6 * one for one in measure(server, path, watchers, options.writes)]
            cuts = statistics.quantiles(found, n=20)
            print(f"{watchers:8} {cuts[0]:10.0f} {statistics.median(found):10.0f} {cuts[-1]:10.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
