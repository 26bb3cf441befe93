"""
Measure the increase of the server's memory by a LIST whose client reads slowly or at full speed.

Creates --megabytes of ConfigMaps in a namespace, then lists them all in one request and samples the resident memory.
"""

from __future__ import annotations

import asyncio
import random
import time
from urllib.parse import urlsplit

from load import Target, arguments, send, target, trusting

SIZE = 100_000


async def read(server: Target, path: str, pause: float) -> tuple[int, float, float]:
    """
    LIST C{path}, with a pause after every MB.

    @return: Bytes received, MB that memory rose by at most, seconds.
    """
    parts = urlsplit(server.url)
    before = peak = server.memory()
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=trusting(), limit=1 << 16)
    writer.write(server.request("GET", path, Accept="application/json", Connection="close"))
    received = since = 0
    while data := await reader.read(1 << 16):
        received += len(data)
        since += len(data)
        if since > 1 << 20:
            since = 0
            peak = max(peak, server.memory())
            if pause:
                await asyncio.sleep(pause)
    writer.close()
    return received, max(peak, server.memory()) - before, time.perf_counter() - began


def main() -> None:
    """Fill, list twice, print."""
    assert __doc__
    parser = arguments(__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    options = parser.parse_args()
    with target(options) as server:
        if server.pid is None:
            parser.error("--server needs --pid: whose memory?")
        namespace = f"memory-{random.randrange(1 << 32):08x}"
        server.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        for number in range(options.megabytes * 1_000_000 // SIZE):
            server.call("POST", path, {"metadata": {"name": f"cm-{number}"}, "data": {"value": "v" * SIZE}})
        # The first list of all may have the allocator grow for good; a small one does not.
        send(server.url, [server.request("GET", f"{path}?limit=10")], 1, 1)
        for name, pause in (("slow reader", 0.02), ("fast reader", 0.0)):
            received, rose, took = asyncio.run(read(server, path, pause))
            print(f"{name}: {received / 1e6:.0f} MB in {took:.1f} s, memory rose by at most {rose:.0f} MB")
        print(f"resident at the end: {server.memory():.0f} MB")


if __name__ == "__main__":
    main()
