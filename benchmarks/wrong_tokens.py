"""
Measure the cost of invalid bearer tokens: the server's time for a GET with a valid token and for a 401, alone and
together.

Usage: python benchmarks/wrong_tokens.py [--tokens 100000] [--seconds 4] [--kind opaque|forged]

  good     microseconds of the server's CPU time for a GET of one object, and the rate per second, 4 connections
  wrong    the same for a 401, each with a different token
  both     CPU time with both together, relative to the sum of both alone: 1.00 if invalid tokens do not slow down
           valid ones
  rss      MB before, and after --tokens different ones

Forged tokens are JSON Web Tokens with the server's issuer and an invalid signature.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from load import Target, arguments, send, target

ISSUER = "https://kubernetes.default.svc.cluster.local"


def tokens(kind: str, count: int) -> Iterator[str]:
    """Return this number of different tokens."""
    for number in range(count):
        secret = os.urandom(24).hex()
        if kind == "opaque":
            yield secret
            continue
        parts = {"alg": "RS256"}, {"iss": ISSUER, "sub": f"{number}", "aud": [ISSUER]}
        signed = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
        yield ".".join([*signed, base64.urlsafe_b64encode(os.urandom(256)).rstrip(b"=").decode()])


def cpu(server: Target) -> float:
    """Return the CPU seconds of the server."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(server: Target, options: argparse.Namespace) -> None:
    """Measure and print."""
    path = "/api/v1/namespaces/default"
    good = [server.request("GET", path, Accept="application/json")]
    wrong = [
        Target(server.url, token).request("GET", path, Accept="application/json")
        for token in tokens(options.kind, options.tokens)
    ]
    seconds = options.seconds
    send(server.url, good, 4, 1)
    before = server.memory()
    costs = []
    sent = 0.0
    for name, requests in (("good", good), ("wrong", wrong)):
        began = cpu(server)
        rate = send(server.url, requests, 4, seconds).rate
        costs.append((cpu(server) - began) / (rate * seconds))
        sent = rate * seconds
        print(f"{name:6} {costs[-1] * 1e6:8.1f} us {rate:8.0f} /s")
    began = cpu(server)
    with ThreadPoolExecutor() as pool:
        flood = pool.submit(send, server.url, wrong, 4, seconds)
        good_rate = send(server.url, good, 4, seconds).rate
        wrong_rate = flood.result().rate
    expected = (costs[0] * good_rate + costs[1] * wrong_rate) * seconds
    print(f"{'both':6} {(cpu(server) - began) / expected:8.2f}    {good_rate:8.0f} /s good, {wrong_rate:.0f} /s wrong")
    sent += wrong_rate * seconds
    while sent < options.tokens:
        sent += send(server.url, wrong, 4, seconds).rate * seconds
    print(f"{'rss':6} {before:8.1f} -> {server.memory():.1f} MB")


def main() -> None:
    """Measure a new server, or an existing one."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--tokens", type=int, default=100000)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--kind", choices=("opaque", "forged"), default="opaque")
    options = parser.parse_args()
    with target(options) as server:
        measure(server, options)


if __name__ == "__main__":
    main()
