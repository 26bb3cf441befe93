"""
Measure the cost of proxying: milliseconds for a small request, memory for a large body in either direction, open
watches.

A backend in a separate process is called directly, and through the proxy of a pod with its address, with TLS
everywhere. At the end the backend is killed during requests, and the server must release all their resources.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from load import Target, arguments, self_signed, target, trusting

PIECE = b"x" * (1 << 16)
TRUSTING = trusting()
SMALL = b'{"static": "' + b"x" * 1600 + b'"}'


# The backend.


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond on one connection: C{/small}, C{/down/BYTES}, C{/up} and C{/watch}."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1]
            if path.startswith(b"/down/"):
                size = int(path.rpartition(b"/")[2])
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
                for _ in range(size // len(PIECE)):
                    writer.write(PIECE)
                    await writer.drain()
            elif path == b"/up":
                left = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                while left:
                    left -= len(await reader.read(min(left, 1 << 18)))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            elif path == b"/watch":
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
                await asyncio.sleep(3600)
            else:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(SMALL) + SMALL)
    except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
        writer.close()


async def serve(certificate: str, key: str) -> None:
    """Run the backend, and print its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context, limit=1 << 18, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# Those who ask.

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(url: str) -> Stream:
    """Open a separate connection."""
    parts = urlsplit(url)
    return await asyncio.open_connection(parts.hostname, parts.port, ssl=TRUSTING, limit=1 << 18)


async def head_of(reader: asyncio.StreamReader) -> bytes:
    """Return the head of a response, which must be successful."""
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    return head


async def latencies(url: str, message: bytes, seconds: float) -> list[float]:
    """Return the milliseconds of successive small requests on one connection."""
    reader, writer = await connect(url)
    times = []
    until = time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        writer.write(message)
        await head_of(reader)
        await reader.readexactly(len(SMALL))
        times.append((time.perf_counter() - began) * 1000)
    writer.close()
    return times[len(times) // 10 :]


def fast(times: list[float]) -> float:
    """Return the maximum of the fastest tenth."""
    return sorted(times)[len(times) // 10]


async def download(server: Target, message: bytes, size: int) -> tuple[float, float]:
    """Read a large response; return the increase of the memory in MB, and MB per second."""
    reader, writer = await connect(server.url)
    before = peak = server.memory()
    began = time.perf_counter()
    writer.write(message)
    await head_of(reader)
    left = size
    while left:
        data = await reader.read(1 << 18)
        assert data, "the answer broke off"
        left -= len(data)
        peak = max(peak, server.memory())
    took = time.perf_counter() - began
    writer.close()
    return peak - before, size / took / 1_000_000


async def upload(server: Target, head: bytes, size: int) -> tuple[float, float]:
    """Send a large body; see L{download}."""
    reader, writer = await connect(server.url)
    before = peak = server.memory()
    began = time.perf_counter()
    writer.write(head)
    for _ in range(size // len(PIECE)):
        writer.write(PIECE)
        await writer.drain()
        peak = max(peak, server.memory())
    await head_of(reader)
    took = time.perf_counter() - began
    writer.close()
    return peak - before, size / took / 1_000_000


async def watch(url: str, message: bytes, count: int) -> list[Stream]:
    """Open this number of watches, and read the first event of each."""

    async def one() -> Stream:
        reader, writer = await connect(url)
        writer.write(message)
        await head_of(reader)
        assert await reader.readexactly(10) == b"5\r\nfirst\r\n"
        return reader, writer

    opened: list[Stream] = []
    while len(opened) < count:
        opened += await asyncio.gather(*(one() for _ in range(min(50, count - len(opened)))))
    return opened


async def ended(streams: list[Stream]) -> int:
    """Return the number of watches that end, with a truncated response."""

    async def one(stream: Stream) -> int:
        try:
            return int(not (await asyncio.wait_for(stream[0].read(), 30)).endswith(b"0\r\n\r\n"))
        except ConnectionError:
            return 1
        except TimeoutError:
            return 0
        finally:
            stream[1].close()

    return sum(await asyncio.gather(*map(one, streams)))


def seconds_of(server: Target) -> float:
    """Return the CPU seconds of the server."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sockets_of(server: Target) -> int:
    """Return the number of open sockets of the server."""
    links = []
    for descriptor in Path(f"/proc/{server.pid}/fd").iterdir():
        try:
            links.append(str(descriptor.readlink()))
        except OSError:
            continue
    return sum(link.startswith("socket:") for link in links)


async def measure(server: Target, backend: subprocess.Popen[str], port: int, options: argparse.Namespace) -> None:
    """Measure everything."""
    size = options.megabytes * (1 << 20)
    prefix = f"/api/v1/namespaces/default/pods/https:proxied:{port}/proxy"
    direct = f"https://127.0.0.1:{port}"
    aside = Target(direct, server.token)
    alone, through, used = [], [], 0.0
    for _ in range(3):
        alone += await latencies(direct, aside.request("GET", "/small"), options.seconds / 3)
        before = seconds_of(server)
        through += await latencies(server.url, server.request("GET", f"{prefix}/small"), options.seconds / 3)
        used += seconds_of(server) - before
    for name, times in (("directly", alone), ("proxied", through)):
        ordered = sorted(times)
        p99 = ordered[len(ordered) * 99 // 100]
        print(
            f"{name:>10}: {statistics.median(ordered):.3f} ms, fastest tenth {fast(ordered):.3f} ms, p99 {p99:.3f} ms"
        )
    median = statistics.median(through) - statistics.median(alone)
    # What else the machine does is least in the fastest ones.
    print(f"{'added':>10}: {median:.3f} ms, fastest tenth {fast(through) - fast(alone):.3f} ms")
    print(f"{'processor':>10}: {used * 1000 / (len(through) * 10 / 9):.3f} ms of the server's time each")
    idle = sockets_of(server)
    # The first large one may have the allocator grow for good.
    for run in ("first", "second"):
        rose, rate = await download(server, server.request("GET", f"{prefix}/down/{size}"), size)
        print(f"{size >> 20} MiB down, {run}: memory +{rose:.1f} MB, {rate:.0f} MB/s")
    head = server.request("POST", f"{prefix}/up").replace(b"Content-Length: 0", b"Content-Length: %d" % size)
    for run in ("first", "second"):
        rose, rate = await upload(server, head, size)
        print(f"{size >> 20} MiB up, {run}: memory +{rose:.1f} MB, {rate:.0f} MB/s")
    before, began = server.memory(), time.perf_counter()
    count = options.watches
    streams = await watch(server.url, server.request("GET", f"{prefix}/watch"), count)
    took = time.perf_counter() - began
    kilobytes = (server.memory() - before) * 1024 / count
    print(f"{count} watches held open: {took:.1f} s to open, {kilobytes:.0f} kB each")
    backend.kill()
    print(f"backend killed: {await ended(streams)} of them broken off")
    until = time.perf_counter() + 10
    while sockets_of(server) > idle and time.perf_counter() < until:
        await asyncio.sleep(0.1)
    print(f"sockets left over: {max(sockets_of(server) - idle, 0)}")


def main() -> None:
    """Run a backend, or start one and measure."""
    if sys.argv[1:2] == ["--backend"]:
        asyncio.run(serve(*sys.argv[2:4]))
        return
    assert __doc__
    parser = arguments(__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--watches", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=6)
    options = parser.parse_args()
    options.flag += ["--allow-loopback-proxy=true", "--disable-admission-plugins=ServiceAccount"]
    with tempfile.TemporaryDirectory() as folder, target(options) as server:
        if server.pid is None:
            parser.error("--server needs --pid: whose memory?")
        certificate, key = str(Path(folder, "cert.pem")), str(Path(folder, "key.pem"))
        self_signed(certificate, key)
        command = [sys.executable, __file__, "--backend", certificate, key]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as backend:
            try:
                assert backend.stdout is not None
                port = int(backend.stdout.readline())
                pods = "/api/v1/namespaces/default/pods"
                pod = {"metadata": {"name": "proxied"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
                created = server.call("POST", pods, pod)
                created["status"] = {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
                server.call("PUT", f"{pods}/proxied/status", created)
                asyncio.run(measure(server, backend, port, options))
            finally:
                backend.kill()


if __name__ == "__main__":
    main()
