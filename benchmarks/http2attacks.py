"""
Measure the latency of one client while another one attacks the server with frames of HTTP/2.

    python benchmarks/http2attacks.py [--seconds 6] [--only ping,rapid-reset]

The victim is the client of L{attacks}: 20 GETs of a small object per second, over HTTP/1.1. The attacker sends the
frames of one kind as fast as the server accepts them, reads what the server sends, and connects again when the server
closes the connection. The script prints the victim's median, 99th percentile and maximum, the number of connections of
the attacker and of frames that it has sent, and the server's resident memory at its maximum and after the attack.
"""

from __future__ import annotations

import argparse
import multiprocessing
import select
import socket
import ssl
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from struct import pack
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from attacks import TOKENS, VICTIM, Client, percentile, resident, victim
from attacks_bodies import Call

from kubetwist.testing import SubprocessServer

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
LIST = b"/api/v1/namespaces/default/configmaps"


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """
    Return a frame.

    @param kind: Its type.
    @param flags: Its flags.
    @param stream: Its stream.
    @param payload: Its payload.
    """
    return pack(">I", len(payload))[1:] + bytes((kind, flags)) + pack(">I", stream) + payload


def field(name: bytes, value: bytes) -> bytes:
    """Return a literal header field that is not added to the table."""
    return b"\x00" + bytes((len(name),)) + name + bytes((len(value),)) + value


def request(path: bytes, token: bytes = b"admin-token", method: bytes = b"GET") -> bytes:
    """Return the header block of a request."""
    return b"".join(
        (
            field(b":method", method),
            field(b":scheme", b"https"),
            field(b":path", path),
            field(b":authority", b"x"),
            field(b"authorization", b"Bearer " + token),
        )
    )


GET = request(b"/version")
LISTED = request(LIST)
WRONG = request(b"/version", b"wrong")
POST = request(LIST, method=b"POST")


class Attack(NamedTuple):
    """
    One attack.

    @ivar name: Its name.
    @ivar make: Returns the frames for the stream number C{n}.
    @ivar first: Frames before them.
    @ivar settings: The payload of the client's SETTINGS.
    """

    name: str
    make: Callable[[int], bytes]
    first: bytes = b""
    settings: bytes = b""


ATTACKS = (
    Attack("idle", lambda number: b""),
    Attack("ping", lambda number: frame(PING, payload=bytes(8))),
    Attack("settings", lambda number: frame(SETTINGS)),
    Attack("window-update", lambda number: frame(WINDOW_UPDATE, payload=b"\0\0\0\1")),
    Attack("priority", lambda number: frame(PRIORITY, 0, number, b"\0\0\0\0\1")),
    Attack("empty-data", lambda number: frame(DATA, 0, 1), frame(HEADERS, 4, 1, POST)),
    Attack("short-data", lambda number: frame(DATA, 0, 1, b"x"), frame(HEADERS, 4, 1, POST)),
    Attack("continuation", lambda number: frame(CONTINUATION, 0, 1), frame(HEADERS, 1, 1, GET)),
    Attack("requests", lambda number: frame(HEADERS, 5, number, GET)),
    Attack("wrong-token", lambda number: frame(HEADERS, 5, number, WRONG)),
    Attack("rapid-reset", lambda number: frame(HEADERS, 5, number, LISTED) + frame(RST_STREAM, 0, number, b"\0\0\0\b")),
    Attack("malformed", lambda number: frame(HEADERS, 5, number, GET + field(b"Upper", b"x"))),
    Attack("long-lists", lambda number: frame(HEADERS, 5, number, GET + b"\x90" * 3900)),
    Attack("closed-windows", lambda number: frame(HEADERS, 5, number, LISTED), settings=b"\0\4" + bytes(4)),
)


def attack(url: str, name: str, seconds: float, results: Any) -> None:
    """Send the frames of an attack until the time is over."""
    (one,) = (each for each in ATTACKS if each.name == name)
    parts = urlsplit(url)
    context = ssl._create_unverified_context()
    context.set_alpn_protocols(["h2"])
    end = time.monotonic() + seconds
    connections = frames = 0
    while time.monotonic() < end:
        plain = socket.create_connection((parts.hostname or "", parts.port or 443))
        with context.wrap_socket(plain) as connection:
            connections += 1
            frames += flood(connection, one, end)
    results.put((connections, frames))


def flood(connection: ssl.SSLSocket, one: Attack, end: float) -> int:
    """Send frames on one connection until the server closes it, or the time is over; return their number."""
    connection.setblocking(False)
    waiting = PREFACE + frame(SETTINGS, payload=one.settings) + frame(SETTINGS, 1) + one.first
    number = 3
    while time.monotonic() < end:
        if len(waiting) < 65536 and one.make(number):
            more = [one.make(each) for each in range(number, number + 1000, 2)]
            waiting += b"".join(more)
            number += 1000
        try:
            waiting = waiting[connection.send(waiting) if waiting else 0 :]
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            pass
        except OSError:
            break
        try:
            if not connection.recv(1 << 20):
                break
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            select.select([connection], [connection] if waiting else [], [], 0.05)
        except OSError:
            break
    return number // 2


def run(url: str, pid: int, one: Attack, seconds: float) -> None:
    """Run one attack, and print its figures."""
    context = multiprocessing.get_context("spawn")
    started, stopped = context.Event(), context.Event()
    latencies, attacked = context.Queue(), context.Queue()
    watcher = context.Process(target=victim, args=(url, "victim-token", started, stopped, latencies))
    watcher.start()
    started.wait()
    attacker = context.Process(target=attack, args=(url, one.name, seconds, attacked))
    attacker.start()
    most = resident(pid)
    while attacked.empty() and attacker.is_alive():
        time.sleep(0.05)
        most = max(most, resident(pid))
    connections, frames = attacked.get(timeout=5)
    stopped.set()
    waited = sorted(latencies.get(timeout=300))
    attacker.join()
    watcher.join()
    print(
        f"{one.name:16} {percentile(waited, 0.5):7.1f} {percentile(waited, 0.99):8.1f} {waited[-1] * 1000:8.1f}"
        f"  {connections:6d} {frames:9d}  {most:5.0f} {resident(pid):5.0f}",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--only", default="", help="names of attacks, separated by commas")
    given = parser.parse_args()
    only = given.only.split(",") if given.only else [one.name for one in ATTACKS]
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text(TOKENS)
        with SubprocessServer(token_auth_file=tokens, timeout=60) as server:
            admin = Client(server.url, "admin-token")
            for number in range(200):
                name = "attacks-victim" if not number else f"large-{number}"
                data = {"a": "b" * (10_000 if number else 1)}
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
                admin.call(Call("POST", VICTIM.rpartition("/")[0], str(body).replace("'", '"').encode()))
            print(
                f"{'attack':16} {'p50':>7} {'p99':>8} {'max':>8}  {'conns':>6} {'frames':>9}  {'MiB':>5} {'after':>5}"
            )
            for one in ATTACKS:
                if one.name in only:
                    run(server.url, server.pid, one, given.seconds)


if __name__ == "__main__":
    main()
