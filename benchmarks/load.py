"""
Shared code of the benchmarks: encoded requests, a load generator, and a reference measurement.

Machines differ, and their speed changes. Therefore each rate is also printed as a ratio to that of a twisted.web site
with a static response over TLS, measured by the same generator in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import json
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attrs import define, frozen
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kubetwist.testing import SubprocessServer

REPLAY = r"""
local requests, last = {}, 0
function init(arguments)
  local file = io.open(arguments[1], "rb")
  while true do
    local size = file:read(8)
    if not size then break end
    requests[#requests + 1] = file:read(tonumber(size))
  end
  file:close()
end
function request()
  last = last % #requests + 1
  return requests[last]
end
"""

YARDSTICK = r"""
import sys
from twisted.internet import reactor, ssl
from twisted.web import resource, server
class Static(resource.Resource):
    isLeaf = True
    def render(self, request):
        request.setHeader(b"content-type", b"application/json")
        return b'{"static": "' + b"x" * 1600 + b'"}'
contexts = ssl.DefaultOpenSSLContextFactory(sys.argv[2], sys.argv[1])
site = server.Site(Static())
site.noisy = False
port = reactor.listenSSL(0, site, contexts, interface="127.0.0.1")
print(port.getHost().port, flush=True)
reactor.run()
"""


@frozen
class Target:
    """A server to measure."""

    url: str
    token: str
    pid: int | None = None

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> bytes:
        """Return one HTTP/1.1 request as bytes; underscores in names of headers become dashes."""
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {urlsplit(self.url).netloc}",
            f"Authorization: Bearer {self.token}",
            f"Content-Length: {len(content)}",
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode() + content

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send one request without measuring it; return the decoded response."""
        answers: list[bytes] = []
        message = self.request(method, path, body, Content_Type="application/json", Accept="application/json")
        asyncio.run(send_here(self.url, [message], 1, float("inf"), once=answers))
        if not answers or answers[0][9:10] != b"2":
            raise SystemExit(f"{method} {path}: {answers[0][:500] if answers else b'no answer'!r}")
        return json.loads(answers[0].partition(b"\r\n\r\n")[2])

    def memory(self) -> float:
        """Return the resident memory in MB; 0 if the process is unknown."""
        if self.pid is None:
            return 0.0
        status = Path(f"/proc/{self.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+)", status)
        return int(match.group(1)) / 1024 if match else 0.0


@define
class Load:
    """
    The result of a load.

    @ivar rate: Requests per second.
    @ivar failed: The number of responses that are not 2xx.
    @ivar p99: The 99th percentile of the latencies in ms.
    @ivar p50: Their median in ms.
    @ivar longest: The longest latency in ms.
    """

    rate: float
    failed: int
    p99: float
    p50: float = 0.0
    longest: float = 0.0


def send(url: str, requests: Sequence[bytes], connections: int, seconds: float) -> Load:
    """Send C{requests} repeatedly on several connections for a time, with wrk, or without it from this process."""
    if shutil.which("wrk"):
        return _wrk(url, requests, connections, seconds)
    return asyncio.run(send_here(url, requests, connections, seconds))


def _wrk(url: str, requests: Sequence[bytes], connections: int, seconds: float) -> Load:
    with tempfile.TemporaryDirectory() as folder:
        script, data = Path(folder, "replay.lua"), Path(folder, "requests")
        script.write_text(REPLAY)
        data.write_bytes(b"".join(b"%08d%b" % (len(one), one) for one in requests))
        options = ["-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "60s", "--latency"]
        command = ["wrk", *options, "-s", str(script), url, "--", str(data)]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = re.search(r"Requests/sec:\s+([\d.]+)", out)
    percentiles = {name: _milliseconds(out, rf"{name}%\s+") for name in (50, 99)}
    failed = sum(map(int, re.findall(r"Non-2xx or 3xx responses: (\d+)", out)))
    failed += sum(map(int, re.findall(r"(?:connect|read|write|timeout) (\d+)", out)))
    assert rate, out
    longest = _milliseconds(out, r"Latency\s+\S+\s+\S+\s+")
    return Load(float(rate.group(1)), failed, percentiles[99], percentiles[50], longest)


def _milliseconds(output: str, before: str) -> float:
    """Return the time in wrk's output that follows a pattern, in ms."""
    match = re.search(before + r"([\d.]+)(us|ms|s|m)\b", output)
    assert match, output
    return float(match.group(1)) * {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000}[match.group(2)]


class _Connection(asyncio.Protocol):
    """Sends one request after the other, and parses the ends of the responses."""

    def __init__(self, work: Iterator[bytes], until: float, keep: list[bytes] | None) -> None:
        self.work, self.until, self.keep = work, until, keep
        self.times: list[float] = []
        self.failed = 0
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._next()

    def _next(self) -> None:
        self.began = time.perf_counter()
        message = next(self.work, None) if self.began < self.until else None
        if message is None:
            self.transport.close()
            return
        self.head, self.tail, self.left, self.whole = b"", b"", -1, bytearray()
        self.transport.write(message)

    def data_received(self, data: bytes) -> None:
        if self.keep is not None:
            self.whole += data
        if self.left < 0:
            head, end, data = (self.head + data).partition(b"\r\n\r\n")
            if not end:
                self.head = head
                return
            self.failed += head[9:10] != b"2"
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            self.chunked = length is None
            self.left = int(length.group(1)) if length else 1
        if self.chunked:
            self.tail = (self.tail + data)[-7:]
            if self.tail.endswith(b"\r\n0\r\n\r\n"):
                self.left = 0
        else:
            self.left -= len(data)
        if self.left <= 0:
            self.times.append(time.perf_counter() - self.began)
            if self.keep is not None:
                self.keep.append(bytes(self.whole))
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        self.failed += exc is not None
        if not self.over.done():
            self.over.set_result(None)


async def send_here(
    url: str, requests: Sequence[bytes], connections: int, seconds: float, once: list[bytes] | None = None
) -> Load:
    """Send from this process; with C{once}, send each request once, and return the responses."""
    parts = urlsplit(url)
    loop = asyncio.get_running_loop()

    def work() -> Iterator[bytes]:
        while True:
            yield from requests
            if once is not None:
                return

    began = time.perf_counter()
    shared, until = work(), began + seconds
    protocols = []
    for _ in range(connections):
        _, protocol = await loop.create_connection(
            lambda: _Connection(shared, until, once), parts.hostname or "", parts.port or 443, ssl=trusting()
        )
        protocols.append(protocol)
    await asyncio.gather(*(protocol.over for protocol in protocols))
    times = sorted(took for protocol in protocols for took in protocol.times)
    if not times:
        return Load(0.0, sum(protocol.failed for protocol in protocols), 0.0)
    failed = sum(protocol.failed for protocol in protocols)
    p50, p99 = times[len(times) // 2] * 1000, times[int(len(times) * 0.99)] * 1000
    return Load(len(times) / (time.perf_counter() - began), failed, p99, p50, times[-1] * 1000)


def trusting() -> ssl.SSLContext:
    """Return a TLS context without verification, for servers on the loopback."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def yardstick(seconds: float = 3) -> float:
    """Return the responses per second of a static site over TLS."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = str(Path(folder, "cert.pem")), str(Path(folder, "key.pem"))
        self_signed(certificate, key)
        process = subprocess.Popen([sys.executable, "-c", YARDSTICK, certificate, key], stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            target = Target(f"https://127.0.0.1:{port}", "x")
            return send(target.url, [target.request("GET", "/")], 8, seconds).rate
        finally:
            process.kill()
            process.communicate()


def self_signed(certificate: str, key: str) -> None:
    """Write a certificate of 127.0.0.1 for a day."""
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    builder = x509.CertificateBuilder(name, name, secret.public_key(), x509.random_serial_number(), now)
    signed = builder.not_valid_after(now + datetime.timedelta(days=1)).sign(secret, hashes.SHA256())
    Path(certificate).write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    formats = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    Path(key).write_bytes(secret.private_bytes(serialization.Encoding.PEM, *formats))


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options of a server."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="https://host:port of a server that runs; a new one is started without it")
    parser.add_argument("--token", default="admin-token", help="a bearer token that --server knows")
    parser.add_argument("--pid", type=int, help="the process of --server, to measure its memory")
    parser.add_argument("--flag", action="append", default=[], help="a flag for the server that is started")
    return parser


@contextlib.contextmanager
def target(options: argparse.Namespace) -> Iterator[Target]:
    """Return the server in the options, or start one."""
    if options.server:
        yield Target(options.server.rstrip("/"), options.token, options.pid)
        return
    with SubprocessServer("--controllers=", *options.flag) as server:
        yield Target(server.url, server.token, server.pid)
