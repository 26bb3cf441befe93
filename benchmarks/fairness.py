"""
How much a client of large lists raises the latency of another one's GETs.

    python benchmarks/fairness.py [--seconds 8] [--connections 64]

Both are users like any other. wrk (Debian's) makes the requests, so that Python's clients do not count. Shown are the
percentiles of the GETs alone and beside the lists, with and without priority and fairness.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

from kubetwist.testing import SubprocessServer

OBJECTS = 1000
TOKENS = 'admin-token,admin,1,"system:masters"\njane-token,jane,2\njoe-token,joe,3\n'
MAPS = "/api/v1/namespaces/default/configmaps"
_TIME = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def wrk(server: SubprocessServer, token: str, path: str, connections: int, seconds: int) -> subprocess.Popen[str]:
    """Requests of one user."""
    return subprocess.Popen(
        [
            *("wrk", "--latency", "-t1", f"-c{connections}", f"-d{seconds}", "--timeout", "60"),
            *("-H", f"Authorization: Bearer {token}", f"{server.url}{path}"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )


def percentiles(output: str) -> dict[str, float]:
    """Milliseconds, by percentile."""
    found = re.findall(r"(\d+)%\s+([\d.]+)(us|ms|s)", output)
    return {name: float(value) * _TIME[unit] for name, value, unit in found}


def measure(flags: tuple[str, ...], seconds: int, connections: int) -> None:
    """One server."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text(TOKENS)
        with SubprocessServer(
            "--authorization-mode=AlwaysAllow", "--controllers=", *flags, token_auth_file=tokens
        ) as server:
            admin = server.connection
            object.__setattr__(admin, "token", "admin-token")
            for number in range(OBJECTS):
                admin.request("POST", MAPS, {"metadata": {"name": f"c{number}"}, "data": {"a": "x" * 1000}})
            alone = wrk(server, "jane-token", f"{MAPS}/c1", 1, seconds).communicate()[0]
            lists = wrk(server, "joe-token", f"{MAPS}?limit=500", connections, seconds + 4)
            beside = wrk(server, "jane-token", f"{MAPS}/c1", 1, seconds).communicate()[0]
            rate = re.search(r"Requests/sec:\s+([\d.]+)", lists.communicate()[0])
    one, other = percentiles(alone), percentiles(beside)
    print(f"{' '.join(flags) or 'with fairness'}: lists {rate[1] if rate else '?'}/s")
    for name in ("50", "90", "99"):
        more = other[name] / one[name]
        print(f"  GET p{name}: alone {one[name]:.2f} ms, beside lists {other[name]:.2f} ms: {more:.1f}x")


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--connections", type=int, default=64)
    given = parser.parse_args()
    for flags in (), ("--enable-priority-and-fairness=false",):
        measure(flags, given.seconds, given.connections)


if __name__ == "__main__":
    main()
