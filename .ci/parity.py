"""
Start the installed server, replay the recordings of kube-apiserver from a sibling checkout, and check the agreement.

There are four corpora: C{main}, C{r2} and C{r3}, which were recorded from public bug reports, and C{1.33}: the answers
of that release to the scenarios of C{main}. Each has a floor in F{.ci/}: a line for each area and one for the total,
with the lowest accepted percentage of steps whose code, shape and whole answer agree. C{--raise} lifts the floors to
just below what this run reached.

Usage: parity.py [--raise] [FOLDER with parity.py; default ../shared/parity beside the checkout]
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from attrs import frozen

from kubetwist.testing import SubprocessServer

HERE = Path(__file__).resolve().parent
#: Seconds for one corpus; a server that does not answer takes 20 for each of thousands of steps.
TIMEOUT = 1200
#: Distance of a raised floor from the run that raises it, in percent and in steps: a few steps depend on timing.
MARGIN = 1.0
MARGIN_STEPS = 3
LEVELS = ("code", "shape", "exact")
AREA = re.compile(r"^(\w+) +(\d+) +([\d.]+)% +([\d.]+)% +([\d.]+)%$", re.M)
TOTAL = re.compile(r"^parity: .*?/(\d+) exact \(([\d.]+)%\).*?\(([\d.]+)%\).*?\(([\d.]+)%\)$", re.M)
HEAD = """\
# The lowest accepted percentage of recorded steps, by area, that agree with kube-apiserver; CI fails below any of them.
# code: the HTTP status; shape: and the body but for free text; exact: all of it. `.ci/parity.py --raise` raises it.
"""

Figures = dict[str, tuple[float, ...]]


@frozen
class Corpus:
    """
    One set of recordings.

    @ivar folder: Its place below the folder of parity.py; C{""} for that folder itself.
    @ivar release: The release that answered, if it is not the default one.
    """

    name: str
    folder: str = ""
    release: str = ""

    @property
    def floor(self) -> Path:
        """The file with the lowest accepted figures."""
        return HERE / "-".join(filter(None, ("parity-floor", self.folder, self.release)))

    def recordings(self, root: Path) -> Path:
        """Return the folder of the answers below C{root}."""
        return root / self.folder / "-".join(filter(None, ("recordings", self.release)))

    def arguments(self, root: Path) -> list[str]:
        """Return the arguments of parity.py that select this corpus below C{root}."""
        return ["--scenarios", str(root / self.folder / "scenarios"), "--recordings", str(self.recordings(root))]


CORPORA = (Corpus("main"), Corpus("r2", "r2"), Corpus("r3", "r3"), Corpus("1.33", release="1.33"))


def read_floor(path: Path) -> Figures:
    """Return the floor by area; C{total} is over all areas."""
    lines = [line.split() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {name: tuple(map(float, figures)) for name, *figures in lines}


def write_floor(path: Path, floor: Figures) -> None:
    """Write the floor as an aligned table."""
    rows = ["# area".ljust(16) + "".join(f"{level:>8}" for level in LEVELS)]
    for name in sorted(floor, key=lambda name: (name == "total", name)):
        rows.append(f"{name:16}" + "".join(f"{figure:8.1f}" for figure in floor[name]))
    path.write_text(HEAD + "\n".join(rows) + "\n")


def measure(output: str) -> tuple[Figures, dict[str, int]]:
    """Return the figures and the numbers of steps, by area, that parity.py printed."""
    reached = {name: tuple(map(float, figures)) for name, _, *figures in AREA.findall(output)}
    steps = {name: int(count) for name, count, *_ in AREA.findall(output)}
    for count, exact, shape, code in TOTAL.findall(output):
        reached["total"] = (float(code), float(shape), float(exact))
        steps["total"] = int(count)
    return reached, steps


def replay(corpus: Corpus, root: Path) -> str | None:
    """Replay C{corpus} on a fresh server; return what parity.py printed, or L{None} when the run itself failed."""
    release = (f"--kubernetes-version={corpus.release}",) if corpus.release else ()
    with SubprocessServer(
        *release,
        "--authorization-mode=Node,RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--allow-privileged=true",
        # The recordings were made of a kube-apiserver alone.
        "--controllers=",
        token_auth_file=root / "tokens.csv",
    ) as server:
        try:
            done = subprocess.run(
                [
                    sys.executable,
                    str(root / "parity.py"),
                    "check",
                    "--server",
                    server.url,
                    *corpus.arguments(root),
                ],
                stdout=subprocess.PIPE,
                text=True,
                timeout=TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            print(f"parity: {corpus.name} not finished after {TIMEOUT} s; server output:\n{server.output()[-4000:]}")
            return None
    print(f"parity: corpus {corpus.name}")
    print(done.stdout, end="", flush=True)
    if done.returncode:
        print(f"parity: the comparison of {corpus.name} failed with exit code {done.returncode}")
        return None
    return done.stdout


def raised(floor: Figures, reached: Figures, steps: dict[str, int]) -> Figures:
    """Return the floor, raised where C{reached} less the margin is higher."""
    result = {}
    for name, figures in reached.items():
        margin = MARGIN if name == "total" else max(MARGIN, 100 * MARGIN_STEPS / steps[name])
        lowered = tuple(max(0.0, figure - margin) for figure in figures)
        result[name] = tuple(map(max, lowered, floor.get(name, lowered)))
    return result


def below(corpus: Corpus, reached: Figures) -> int:
    """Print the figures that are below the floor of C{corpus}; return how many."""
    count = 0
    for name, wanted in read_floor(corpus.floor).items():
        for level, least, figure in zip(LEVELS, wanted, reached.get(name, (0.0, 0.0, 0.0)), strict=True):
            if figure < least:
                print(f"parity: {corpus.name}: {name} {level} is {figure}%, below the floor of {least}%")
                count += 1
    return count


def main() -> int:
    """Replay all corpora; return the exit code."""
    arguments = sys.argv[1:]
    lift = "--raise" in arguments
    folders = [argument for argument in arguments if argument != "--raise"]
    root = Path(folders[0]) if folders else HERE.parent.parent / "shared" / "parity"
    if not (root / "parity.py").exists():
        print(f"parity: no recordings at {root}, nothing compared")
        return 0
    failures = 0
    for corpus in CORPORA:
        if not corpus.recordings(root).exists():
            print(f"parity: no recordings at {corpus.recordings(root)}, nothing compared")
            continue
        output = replay(corpus, root)
        reached, steps = measure(output or "")
        if "total" not in reached:
            failures += 1
        elif lift:
            write_floor(corpus.floor, raised(read_floor(corpus.floor), reached, steps))
        else:
            failures += below(corpus, reached)
    print(f"parity: {'below' if failures else 'at or above'} the floors of .ci/")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
