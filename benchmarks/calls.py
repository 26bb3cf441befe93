"""
Measure calls of other servers: microseconds of CPU time for a small call over TLS that waits for its response.

Usage: python benchmarks/calls.py [--calls N] [--rounds N]

A webhook server in a separate process is called on one connection; the smallest result of several rounds is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from load import self_signed

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from kubetwist.client.httpclient import WebhookClient
from kubetwist.client.restconfig import RESTConfig

REQUEST = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","object":{"a":"%s"}}}' % (
    b"x" * 1500
)
RESPONSE = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"1","allowed":true}}'


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond to the requests of one connection."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Sat, 28 Nov 2026 10:00:00 GMT\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (len(RESPONSE), RESPONSE)
            )
    except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
        writer.close()


async def serve(certificate: str, key: str) -> None:
    """Run the webhook server, and print its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def measure(reactor: Any, port: int, options: argparse.Namespace) -> None:
    """Call the server in several rounds, and print the smallest CPU time of a call."""
    client = WebhookClient(reactor, RESTConfig(url=f"https://127.0.0.1:{port}/hook", insecure=True))
    times = []
    for _ in range(options.rounds):
        began = time.process_time()
        for _ in range(options.calls):
            response = await client.post(REQUEST, timeout=10)
            assert response.body == RESPONSE, response
        times.append((time.process_time() - began) / options.calls * 1_000_000)
    await client.close()
    print(f"{min(times):.0f} µs of CPU time per call")


def main() -> None:
    """Run the webhook server, or start it and measure."""
    if sys.argv[1:2] == ["--server"]:
        asyncio.run(serve(*sys.argv[2:4]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = str(Path(folder, "cert.pem")), str(Path(folder, "key.pem"))
        self_signed(certificate, key)
        command = [sys.executable, __file__, "--server", certificate, key]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                port = int(server.stdout.readline())
                react(lambda reactor: Deferred.fromCoroutine(measure(reactor, port, options)))
            finally:
                server.kill()


if __name__ == "__main__":
    main()
