"""
Start the installed server and compare its answers with the recordings of kube-apiserver in a sibling checkout.

The floor, .ci/parity-floor, has a line for each area and one for all: the least percentage of steps whose code, shape
and whole answer must agree. C{--raise} lifts it to just below what this run reached.

Usage: parity.py [--raise] [FOLDER with parity.py; default ../shared/parity beside the checkout]
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from kubetwist.testing import SubprocessServer

HERE = Path(__file__).resolve().parent
FLOOR = HERE / "parity-floor"
#: Seconds for all of it; a server that does not answer takes 20 for each of thousands of steps.
TIMEOUT = 1200
#: What a floor stays below the run that lifts it, in percent and in steps: a few are a matter of timing.
MARGIN = 1.0
MARGIN_STEPS = 3
LEVELS = ("code", "shape", "exact")
AREA = re.compile(r"^(\w+) +(\d+) +([\d.]+)% +([\d.]+)% +([\d.]+)%$", re.M)
TOTAL = re.compile(r"^parity: .*?\(([\d.]+)%\).*?\(([\d.]+)%\).*?\(([\d.]+)%\)$", re.M)
HEAD = """\
# The least percentage of recorded steps, by area, that must agree with kube-apiserver; CI fails below any of these.
# code: the HTTP status; shape: and the body but for free text; exact: all of it. `.ci/parity.py --raise` lifts it.
"""

Figures = dict[str, tuple[float, ...]]


def read_floor() -> Figures:
    """The floor by area; C{total} is over all of them."""
    lines = [line.split() for line in FLOOR.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {name: tuple(map(float, figures)) for name, *figures in lines}


def write_floor(floor: Figures) -> None:
    """Write it back, readable."""
    rows = ["# area".ljust(16) + "".join(f"{level:>8}" for level in LEVELS)]
    for name in sorted(floor, key=lambda name: (name == "total", name)):
        rows.append(f"{name:16}" + "".join(f"{figure:8.1f}" for figure in floor[name]))
    FLOOR.write_text(HEAD + "\n".join(rows) + "\n")


def measure(output: str) -> Figures:
    """The figures that parity.py printed."""
    reached = {name: tuple(map(float, figures)) for name, _, *figures in AREA.findall(output)}
    for exact, shape, code in TOTAL.findall(output):
        reached["total"] = (float(code), float(shape), float(exact))
    return reached


def main() -> int:
    """Run all areas and judge."""
    arguments = sys.argv[1:]
    lift = "--raise" in arguments
    folders = [argument for argument in arguments if argument != "--raise"]
    folder = Path(folders[0]) if folders else HERE.parent.parent / "shared" / "parity"
    if not (folder / "parity.py").exists():
        print(f"parity: no recordings at {folder}, nothing compared")
        return 0
    with SubprocessServer(
        "--authorization-mode=Node,RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--allow-privileged=true",
        # The recordings are those of a kube-apiserver alone.
        "--controllers=",
        token_auth_file=folder / "tokens.csv",
    ) as server:
        try:
            done = subprocess.run(
                [sys.executable, str(folder / "parity.py"), "check", "--server", server.url],
                stdout=subprocess.PIPE,
                text=True,
                timeout=TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            print(f"parity: not through after {TIMEOUT} s; the server printed\n{server.output()[-4000:]}")
            return 1
    print(done.stdout, end="")
    reached = measure(done.stdout)
    if done.returncode or "total" not in reached:
        print(f"parity: the comparison itself failed, exit code {done.returncode}")
        return 1
    floor = read_floor()
    if lift:
        margins = {name: max(MARGIN, 100 * MARGIN_STEPS / int(steps)) for name, steps, *_ in AREA.findall(done.stdout)}
        lowered = {
            name: tuple(max(0.0, figure - margins.get(name, MARGIN)) for figure in figures)
            for name, figures in reached.items()
        }
        write_floor({name: tuple(map(max, lowered[name], floor.get(name, lowered[name]))) for name in lowered})
        return 0
    below = 0
    for name, wanted in floor.items():
        for level, least, figure in zip(LEVELS, wanted, reached.get(name, (0.0, 0.0, 0.0)), strict=True):
            if figure < least:
                print(f"parity: {name} {level} is {figure}%, under the floor of {least}%")
                below += 1
    print(f"parity: {'below' if below else 'at or above'} the floor of .ci/parity-floor")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
