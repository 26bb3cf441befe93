"""
Measure the effect of a client with large lists on the latency of another client's GETs.

    python benchmarks/fairness.py [--seconds 5] [--connections 64] [--rounds 5]

Both clients are ordinary users. wrk (Debian's) sends the requests, to exclude the overhead of Python clients. The
script prints the percentiles of the GETs alone and concurrent with the lists, with and without priority and fairness:
medians of the rounds, and the minimum and maximum of the differences.

On few cores the client of the GETs would wait for a core and not for the server. Therefore it runs with a higher
priority where that is permitted (root), also when it is alone. A round in which the virtual machine was stopped by
its host is repeated.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from kubetwist.testing import SubprocessServer

OBJECTS = 1000
TOKENS = 'admin-token,admin,1,"system:masters"\njane-token,jane,2\njoe-token,joe,3\n'
MAPS = "/api/v1/namespaces/default/configmaps"
#: Seconds that the host may take from the machine in a round, of all its processors.
STOLEN = 0.02
_TIME = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def wrk(
    server: SubprocessServer, token: str, path: str, connections: int, seconds: int, first: bool = False
) -> subprocess.Popen[str]:
    """Send requests of one user with wrk; C{first} runs it with a higher priority."""
    return subprocess.Popen(
        [
            *(("chrt", "--fifo", "10") if first and not os.geteuid() else ()),
            *("wrk", "--latency", "-t1", f"-c{connections}", f"-d{seconds}", "--timeout", "60"),
            *("-H", f"Authorization: Bearer {token}", f"{server.url}{path}"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )


def percentiles(output: str) -> dict[str, float]:
    """Return the milliseconds by percentile."""
    found = re.findall(r"(\d+)%\s+([\d.]+)(us|ms|s)", output)
    return {name: float(value) * _TIME[unit] for name, value, unit in found}


def stolen() -> float:
    """Return the seconds for which the host has paused the processors of this machine."""
    return int(Path("/proc/stat").read_text().split()[8]) / os.sysconf("SC_CLK_TCK")


def undisturbed(
    flags: tuple[str, ...], seconds: int, connections: int
) -> tuple[dict[str, float], dict[str, float], float]:
    """Repeat L{measure} while the machine is disturbed, up to a limit."""
    for _ in range(5):
        before = stolen()
        found = measure(flags, seconds, connections)
        if stolen() - before <= STOLEN:
            break
    return found


def measure(flags: tuple[str, ...], seconds: int, connections: int) -> tuple[dict[str, float], dict[str, float], float]:
    """
    Measure one server.

    @return: The percentiles of the GETs alone and beside the lists, and the lists per second.
    """
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
            alone = wrk(server, "jane-token", f"{MAPS}/c1", 1, seconds, first=True).communicate()[0]
            lists = wrk(server, "joe-token", f"{MAPS}?limit=500", connections, seconds + 4)
            beside = wrk(server, "jane-token", f"{MAPS}/c1", 1, seconds, first=True).communicate()[0]
            rate = re.search(r"Requests/sec:\s+([\d.]+)", lists.communicate()[0])
    return percentiles(alone), percentiles(beside), float(rate[1]) if rate else 0.0


def show(flags: tuple[str, ...], rounds: list[tuple[dict[str, float], dict[str, float], float]]) -> None:
    """Print the medians."""
    print(f"{' '.join(flags) or 'with fairness'}: lists {median(rate for _, _, rate in rounds):.0f}/s")
    for name in ("50", "90", "99"):
        more = sorted(each[1][name] / each[0][name] for each in rounds)
        alone, beside = median(one[0][name] for one in rounds), median(one[1][name] for one in rounds)
        print(
            f"  GET p{name}: alone {alone:.2f} ms, beside lists {beside:.2f} ms: "
            f"{median(more):.1f}x ({more[0]:.1f} to {more[-1]:.1f})"
        )


def main() -> None:
    """Measure both servers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    for flags in (), ("--enable-priority-and-fairness=false",):
        show(flags, [undisturbed(flags, given.seconds, given.connections) for _ in range(given.rounds)])


if __name__ == "__main__":
    main()
