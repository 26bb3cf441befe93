"""
Measure latency at a constant rate of mixed requests: by default 200 per second on 5,000 Secrets, for 30 s.

Of a hundred requests 60 are GET, 15 LIST with limit=50, 10 merge PATCH, 8 create and 7 delete created objects.
Requests are sent when they are due, also if earlier ones are not answered yet. Anything that is not 2xx is a failure,
and one failure makes the exit code 1.
"""

from __future__ import annotations

import asyncio
import base64
import random
import statistics
import sys
import time
from collections import defaultdict, deque
from urllib.parse import urlsplit

from load import Target, arguments, send_here, target, trusting

MIX = {"get": 60, "list": 15, "patch": 10, "create": 8, "delete": 7}


class Client:
    """A few connections that take requests from one queue."""

    def __init__(self, server: Target) -> None:
        self.server = server
        self.queue: asyncio.Queue[tuple[str, bytes, float]] = asyncio.Queue()
        self.took: dict[str, list[float]] = defaultdict(list)
        self.failures: list[str] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection for L{work}."""
        parts = urlsplit(self.server.url)
        return await asyncio.open_connection(parts.hostname, parts.port, ssl=trusting(), limit=1 << 24)

    async def work(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send a request and record its latency from the time at which it was due."""
        while True:
            verb, message, due = await self.queue.get()
            writer.write(message)
            head = await reader.readuntil(b"\r\n\r\n")
            body = await self._body(reader, head.lower())
            self.took[verb].append(time.perf_counter() - due)
            if head[9:10] != b"2":
                self.failures.append(f"{verb}: {head[:30]!r} {body[:200]!r}")
            self.queue.task_done()

    @staticmethod
    async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
        for line in head.split(b"\r\n"):
            if line.startswith(b"content-length:"):
                return await reader.readexactly(int(line[15:]))
        body = b""
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
        return body


async def run(server: Target, path: str, objects: int, rate: float, seconds: float) -> Client:
    """Send at C{rate} for C{seconds}."""
    client = Client(server)
    connections = [await client.connect() for _ in range(16)]
    workers = [asyncio.create_task(client.work(*connection)) for connection in connections]
    chance = random.Random(1)
    created: deque[tuple[str, float]] = deque()
    json = {"Content_Type": "application/json"}
    value = base64.b64encode(b"x" * 300).decode()
    began = time.perf_counter()
    for number in range(round(rate * seconds)):
        due = began + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        (verb,) = chance.choices(list(MIX), list(MIX.values()))
        name = f"s-{chance.randrange(objects)}"
        # Delete an object that was created a second ago, so that it exists.
        if verb == "delete" and not (created and created[0][1] < due - 1):
            verb = "get"
        if verb == "get":
            message = server.request("GET", f"{path}/{name}")
        elif verb == "list":
            message = server.request("GET", f"{path}?limit=50")
        elif verb == "patch":
            body = {"stringData": {"changed": str(number)}}
            message = server.request("PATCH", f"{path}/{name}", body, Content_Type="application/merge-patch+json")
        elif verb == "create":
            created.append((f"new-{number}", due))
            message = server.request(
                "POST", path, {"metadata": {"name": f"new-{number}"}, "data": {"value": value}}, **json
            )
        else:
            message = server.request("DELETE", f"{path}/{created.popleft()[0]}")
        client.queue.put_nowait((verb, message, due))
    finished = asyncio.create_task(client.queue.join())
    await asyncio.wait([finished, *workers], timeout=60, return_when=asyncio.FIRST_COMPLETED)
    for worker in workers:
        if worker.done():
            client.failures.append(f"connection: {worker.exception()!r}")
        worker.cancel()
    if not finished.done():
        client.failures.append(f"{client.queue.qsize()} requests were never answered")
    return client


def main() -> int:
    """Fill, run, print."""
    assert __doc__
    parser = arguments(__doc__)
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    with target(options) as server:
        namespace = f"mixed-{random.randrange(1 << 32):08x}"
        server.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        path = f"/api/v1/namespaces/{namespace}/secrets"
        value = base64.b64encode(b"x" * 300).decode()
        posts = [
            server.request(
                "POST",
                path,
                {"metadata": {"name": f"s-{n}"}, "data": {"value": value}},
                Content_Type="application/json",
            )
            for n in range(options.objects)
        ]
        fill(server, posts)
        client = asyncio.run(run(server, path, options.objects, options.rate, options.seconds))
        print(f"{'verb':8} {'count':>6} {'mean ms':>8} {'p99 ms':>8} {'max ms':>8}")
        everything = [took for times in client.took.values() for took in times]
        for verb, times in [*sorted(client.took.items()), ("all", everything)]:
            times = sorted(took * 1000 for took in times)
            p99 = times[int(len(times) * 0.99)]
            print(f"{verb:8} {len(times):6} {statistics.fmean(times):8.1f} {p99:8.1f} {times[-1]:8.1f}")
        print(f"failures: {len(client.failures)}", *client.failures[:5], sep="\n  ")
        print(f"resident: {server.memory():.0f} MB")
    return 1 if client.failures else 0


def fill(server: Target, posts: list[bytes]) -> None:
    """Send each request once, on 16 connections."""
    answers: list[bytes] = []
    load = asyncio.run(send_here(server.url, posts, 16, float("inf"), once=answers))
    if load.failed or len(answers) != len(posts):
        raise SystemExit(f"mixed: {load.failed} of {len(posts)} creates failed")


if __name__ == "__main__":
    sys.exit(main())
