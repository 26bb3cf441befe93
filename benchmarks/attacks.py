"""
Measure the latency of one client while another one sends requests that need much processor time.

    python benchmarks/attacks.py [--seconds 8] [--only pod-containers,tables] [--json OUT]
    python benchmarks/attacks.py --server https://127.0.0.1:6443 --token admin-token --pid 4711 ...

The victim is one client that sends 20 GETs of a small object per second. One attacker at a time sends requests one
after the other over one connection for C{--seconds}. The script prints the median, the 99th percentile and the maximum
of the victim's latency, the number of answered requests of the attacker, the slowest of them, the status codes, and the
server's resident memory at its maximum and after the attack.

The victim's latency is measured from the time at which each request is due, so an interruption of a second affects all
20 requests in it. Without C{--server} a server is started with a new data directory; with it any Kubernetes API server
is measured, also kube-apiserver. Victim and attacker run in separate processes.

The attacks are in L{attacks_bodies}, their names are printed by C{--list}.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import ssl
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attacks_bodies import ATTACKS, Attack, Call

RATE = 20
VICTIM = "/api/v1/namespaces/default/configmaps/attacks-victim"
TOKENS = 'admin-token,admin,1,"system:masters"\nvictim-token,victim,2,"system:masters"\n'


class Client:
    """One connection to a server, reconnected when it breaks."""

    def __init__(self, url: str, token: str, timeout: float = 120) -> None:
        parts = urlsplit(url)
        self._place = parts.hostname or "", parts.port or 443
        self._context = ssl._create_unverified_context()
        self._timeout = timeout
        self._headers = {"Authorization": f"Bearer {token}"}
        self._connection: http.client.HTTPSConnection | None = None

    def call(self, call: Call) -> tuple[int, bytes]:
        """Send one request, and read its answer."""
        method, path, body, media, accept = call
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = media
        if accept:
            headers["Accept"] = accept
        for attempt in (0, 1):
            if self._connection is None:
                self._connection = http.client.HTTPSConnection(
                    *self._place, context=self._context, timeout=self._timeout
                )
            try:
                self._connection.request(method, path, body, headers)
                answer = self._connection.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                self._connection.close()
                self._connection = None
                if attempt:
                    raise
        raise AssertionError("unreachable")


def attack(url: str, token: str, calls: list[Call], seconds: float, results: Any) -> None:
    """Send the calls in turn until the time is over."""
    client = Client(url, token)
    codes: Counter[int] = Counter()
    longest, sample, done = 0.0, b"", 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for call in calls:
            began = time.monotonic()
            try:
                code, text = client.call(call)
            except (OSError, http.client.HTTPException) as error:
                code, text = 0, repr(error).encode()
            longest = max(longest, time.monotonic() - began)
            codes[code] += 1
            done += 1
            if code >= 400 or not code:
                sample = text[:160]
    results.put((dict(codes), longest, done, sample))


def victim(url: str, token: str, started: Any, stopped: Any, results: Any) -> None:
    """GET a small object at fixed times until C{stopped} is set."""
    client = Client(url, token)
    get = Call("GET", VICTIM)
    client.call(get)
    started.set()
    latencies = []
    due = time.monotonic()
    while not stopped.is_set() or due < time.monotonic():
        time.sleep(max(0.0, due - time.monotonic()))
        client.call(get)
        latencies.append(time.monotonic() - due)
        due += 1 / RATE
    results.put(latencies)


def resident(pid: int) -> float:
    """Return the resident memory of a process, in MiB; 0 without a process."""
    if not pid:
        return 0.0
    text = Path(f"/proc/{pid}/statm").read_text().split()
    return int(text[1]) * 4096 / 2**20


def percentile(values: list[float], part: float) -> float:
    """Return a percentile of sorted values, in milliseconds."""
    return values[min(len(values) - 1, int(len(values) * part))] * 1000


def run(url: str, token: str, victim_token: str, pid: int, one: Attack, seconds: float) -> dict[str, Any]:
    """Run one attack, and return its figures."""
    admin = Client(url, token)
    for call in one.setup():
        for _ in range(100):
            # A new definition is not served immediately.
            code, text = admin.call(call)
            if code != 404 or call.method == "DELETE":
                break
            time.sleep(0.1)
        if code >= 400 and code != 409:
            print(f"  setup of {one.name}: {code} {text[:200]!r}", file=sys.stderr)
    time.sleep(one.settle)
    context = multiprocessing.get_context("spawn")
    started, stopped = context.Event(), context.Event()
    latencies, attacked = context.Queue(), context.Queue()
    watcher = context.Process(target=victim, args=(url, victim_token, started, stopped, latencies))
    watcher.start()
    started.wait()
    attacker = context.Process(target=attack, args=(url, token, list(one.calls()), seconds, attacked))
    attacker.start()
    most = resident(pid)
    while attacked.empty() and attacker.is_alive():
        time.sleep(0.05)
        most = max(most, resident(pid))
    codes, longest, done, sample = attacked.get(timeout=5)
    stopped.set()
    waited = sorted(latencies.get(timeout=300))
    attacker.join()
    watcher.join()
    for call in one.cleanup():
        admin.call(call)
    return {
        "attack": one.name,
        "p50": percentile(waited, 0.5),
        "p99": percentile(waited, 0.99),
        "max": waited[-1] * 1000,
        "requests": done,
        "slowest": longest * 1000,
        "codes": {str(code): count for code, count in codes.items()},
        "sample": sample.decode(errors="replace"),
        "memory": most,
        "memory_after": resident(pid),
    }


def measure(url: str, token: str, victim_token: str, pid: int, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Run all requested attacks."""
    admin = Client(url, token)
    small = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "attacks-victim"}, "data": {"a": "b"}}
    admin.call(Call("POST", VICTIM.rpartition("/")[0], json.dumps(small).encode()))
    only = given.only.split(",") if given.only else [one.name for one in ATTACKS]
    found = []
    print(f"{'attack':28} {'p50':>7} {'p99':>8} {'max':>8}  {'n':>5} {'slowest':>8}  {'MiB':>5} {'after':>5}  codes")
    for one in ATTACKS:
        if one.name not in only:
            continue
        result = run(url, token, victim_token, pid, one, given.seconds)
        found.append(result)
        print(
            f"{one.name:28} {result['p50']:7.1f} {result['p99']:8.1f} {result['max']:8.1f}  {result['requests']:5d}"
            f" {result['slowest']:8.0f}  {result['memory']:5.0f} {result['memory_after']:5.0f}  {result['codes']}"
            f" {result['sample'] if given.verbose else ''}",
            flush=True,
        )
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--only", default="", help="names of attacks, separated by commas")
    parser.add_argument("--server", default="", help="URL of a running server; one is started without it")
    parser.add_argument("--token", default="admin-token", help="the attacker's; an administrator's, for the set-up")
    parser.add_argument("--victim-token", default="", help="the victim's, by default the attacker's")
    parser.add_argument("--pid", type=int, default=0, help="of the server, for its memory")
    parser.add_argument("--json", default="", help="file for the figures")
    parser.add_argument("--list", action="store_true", help="print the names of the attacks")
    parser.add_argument("--verbose", action="store_true", help="print the last error that the attacker was sent")
    given = parser.parse_args()
    if given.list:
        print(*(one.name for one in ATTACKS), sep="\n")
        return
    if given.server:
        found = measure(given.server, given.token, given.victim_token or given.token, given.pid, given)
    else:
        from kubetwist.testing import SubprocessServer

        with tempfile.TemporaryDirectory() as folder:
            tokens = Path(folder) / "tokens.csv"
            tokens.write_text(TOKENS)
            with SubprocessServer(token_auth_file=tokens, timeout=60) as server:
                found = measure(server.url, "admin-token", "victim-token", server.pid, given)
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
