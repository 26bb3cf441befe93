"""
Measure how one request runs through the packages: which call flow the creation of a pod makes.

Usage: python benchmarks/requestflow.py [--path] [--json] [--layers PYPROJECT]

A server with the default admission plugins and the memory backend runs in this process, without controllers. After some
creations of pods, the calls of another one are recorded in the reactor's thread. Printed are

 - calls: calls of functions of C{kubetwist}. Calls of a function from the same place, as in a loop, count once, a
   coroutine counts once however often it is resumed, and comprehensions and C{kubetwist.testing} do not count;
 - files: the files that define these functions;
 - changes of file: pairs of successive calls whose functions are defined in different files; also without the calls of
   the lowest layer (C{api} and C{metrics}), which has helpers that every step calls;
 - for each package, the places in packages of lower layers that call it (from below), how many calls these are, and the
   calls from all other packages. The order of the layers is that of the import contract in C{pyproject.toml}.

C{--path} prints the calls, indented by depth; calls from below are marked C{^}. The request is recorded several times,
and the most frequent flow is reported.
"""

from __future__ import annotations

import argparse
import dis
import http.client
import inspect
import json
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from twisted.internet.task import react
from twisted.internet.threads import deferToThreadPool

import kubetwist
from kubetwist.testing import InProcessServer

#: The folder whose functions are recorded.
SOURCES = str(Path(kubetwist.__file__).parent) + "/"
PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
WARM_UP = 30
RECORDED = 7
#: Code objects that newer interpreters inline.
COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
#: Packages of the harness, which are not recorded.
HARNESS = frozenset({"testing"})
#: Flags of the code of generators and coroutines.
SUSPENDABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
PODS = "/api/v1/namespaces/default/pods"


class Call(NamedTuple):
    """
    One call of a function of C{kubetwist}.

    @ivar depth: The number of calling functions of C{kubetwist}.
    @ivar caller: The file of the nearest calling function of C{kubetwist}, relative to the package; C{""} if the
        reactor calls.
    @ivar place: The qualified name and line of that function, from which it calls.
    @ivar file: The file of the called function.
    @ivar name: Its qualified name.
    """

    depth: int
    caller: str
    place: str
    file: str
    name: str


class Entries(NamedTuple):
    """
    The calls that enter a package.

    @ivar places: The places in packages of lower layers that call it.
    @ivar below: The calls from these places.
    @ivar other: The calls from all other packages.
    """

    places: int
    below: int
    other: int


class Figures(NamedTuple):
    """
    The figures of a flow.

    @ivar changes: Changes of file.
    @ivar changes_above: Changes of file without the calls of the lowest layer.
    @ivar entries: By package, the calls that enter it.
    """

    calls: int
    files: int
    changes: int
    changes_above: int
    entries: dict[str, Entries]


def read_layers(pyproject: str) -> dict[str, int]:
    """Return the height of each package, from the contract of layers in the text of a F{pyproject.toml}."""
    contracts = tomllib.loads(pyproject)["tool"]["importlinter"]["contracts"]
    layers = next(
        one["layers"] for one in contracts if one["type"] == "layers" and one.get("containers") == ["kubetwist"]
    )
    return {
        package.strip(" ()"): height
        for height, layer in enumerate(reversed(layers))
        for package in layer.replace(":", "|").split("|")
    }


def package_of(file: str) -> str:
    """Return the first level of a path: C{registry} of F{registry/generic/store.py}, C{tap} of F{tap.py}."""
    return file.split("/")[0].removesuffix(".py")


def enters_from_below(call: Call, heights: Mapping[str, int]) -> bool:
    """Return whether the caller is in a package of a lower layer than the called function."""
    if not call.caller:
        return False
    return heights.get(package_of(call.caller), -1) < heights.get(package_of(call.file), -1)


def without_repetitions(calls: Sequence[Call]) -> list[Call]:
    """Return the first call of each function from each place."""
    found: dict[tuple[object, ...], Call] = {}
    for call in calls:
        found.setdefault(call[1:], call)
    return list(found.values())


def count_changes(files: Sequence[str]) -> int:
    """Count the pairs of successive files that differ."""
    return sum(one != other for one, other in pairwise(files))


def measure(calls: Sequence[Call], heights: Mapping[str, int]) -> Figures:
    """Count calls, files, changes of file, and entries by package."""
    places: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    below: Counter[str] = Counter()
    other: Counter[str] = Counter()
    for call in calls:
        package = package_of(call.file)
        if enters_from_below(call, heights):
            places[package].add((call.caller, call.place))
            below[package] += 1
        elif call.caller and package_of(call.caller) != package:
            other[package] += 1
    files = [call.file for call in calls]
    return Figures(
        len(calls),
        len(set(files)),
        count_changes(files),
        count_changes([file for file in files if heights.get(package_of(file), -1) > 0]),
        {
            package: Entries(len(places[package]), below[package], other[package])
            for package in sorted({package_of(file) for file in files})
        },
    )


@cache
def first_resume(code: CodeType) -> int:
    """Return the offset at which a coroutine or generator begins."""
    return next(one.offset for one in dis.get_instructions(code) if one.opname == "RESUME")


class Recorder:
    """Records the calls of the thread in which it is started."""

    def __init__(self, sources: str = SOURCES) -> None:
        self.calls: list[Call] = []
        self._sources = sources
        # Frames are kept, so that a resumed coroutine is recognized.
        self._frames: dict[FrameType, int] = {}

    def start(self) -> None:
        """Begin to record."""
        sys.setprofile(self._event)

    def stop(self) -> None:
        """Stop recording."""
        sys.setprofile(None)
        self._frames.clear()

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or frame in self._frames:
            return
        code = frame.f_code
        if not self._counts(code):
            return
        if code.co_flags & SUSPENDABLE and frame.f_lasti > first_resume(code):
            return  # it began before the recording
        file = self._file(code)
        caller = frame.f_back
        while caller is not None and not self._counts(caller.f_code):
            caller = caller.f_back
        if caller is None:
            depth, origin, place = 0, "", ""
        else:
            depth = self._frames.get(caller, 0) + 1
            origin, place = self._file(caller.f_code), f"{caller.f_code.co_qualname}:{caller.f_lineno}"
        self._frames[frame] = depth
        self.calls.append(Call(depth, origin, place, file, code.co_qualname))

    def _counts(self, code: CodeType) -> bool:
        return (
            code.co_filename.startswith(self._sources)
            and code.co_name not in COMPREHENSIONS
            and package_of(self._file(code)) not in HARNESS
        )

    def _file(self, code: CodeType) -> str:
        return code.co_filename[len(self._sources) :]


class Client:
    """Sends requests over one connection, blocking."""

    def __init__(self, server: InProcessServer) -> None:
        connection = server.connection
        self._http = http.client.HTTPSConnection("127.0.0.1", connection.port, context=connection.ssl_context())
        self._headers = {"Authorization": f"Bearer {connection.token}", "Content-Type": "application/json"}

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        """Create an object."""
        self._http.request("POST", path, json.dumps(body), self._headers)
        response = self._http.getresponse()
        answer = response.read()
        if response.status != 201:
            raise RuntimeError(f"{response.status}: {answer.decode()}")

    def post_pod(self, name: str) -> None:
        """Create a pod."""
        self.post(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx:1.27", "ports": [{"containerPort": 80}]}]},
            },
        )

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


async def record(reactor: Any) -> list[tuple[Call, ...]]:
    """Start a server, and record the calls of several creations of pods."""
    flows = []
    async with InProcessServer(controllers="", reactor=reactor) as server:
        client = Client(server)

        async def in_thread(function: Any, *arguments: Any) -> None:
            await deferToThreadPool(reactor, reactor.getThreadPool(), function, *arguments)

        await in_thread(client.post, PODS.replace("pods", "serviceaccounts"), {"metadata": {"name": "default"}})
        for number in range(WARM_UP):
            await in_thread(client.post_pod, f"warm-up-{number}")
        server.freeze_time()
        for number in range(RECORDED):
            recorder = Recorder()
            recorder.start()
            try:
                await in_thread(client.post_pod, f"recorded-{number}")
            finally:
                recorder.stop()
            flows.append(tuple(recorder.calls))
        await in_thread(client.close)
    return flows


def show(calls: Sequence[Call], heights: Mapping[str, int]) -> None:
    """Print the calls, and their files where these change."""
    file = ""
    for call in calls:
        mark = "^" if enters_from_below(call, heights) else " "
        print(f"{mark} {call.file if call.file != file else '':45} {'  ' * call.depth}{call.name}")
        file = call.file


def main() -> None:
    """Record, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", action="store_true", help="print the calls, too")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument(
        "--layers", type=Path, default=PYPROJECT, help="the pyproject.toml with the order of the layers"
    )
    given = parser.parse_args()
    heights = read_layers(given.layers.read_text())
    flows: list[tuple[Call, ...]] = []

    async def run(reactor: Any) -> None:
        flows.extend(await record(reactor))

    try:
        react(run)
    except SystemExit as exit:
        if exit.code:
            raise
    (flow, times), *rest = Counter(flows).most_common()
    calls = without_repetitions(flow)
    figures = measure(calls, heights)
    if given.path:
        show(calls, heights)
    if given.json:
        entries = {package: one._asdict() for package, one in figures.entries.items()}
        print(json.dumps(figures._asdict() | {"entries": entries}, indent=2))
        return
    print(f"{figures.calls} calls, {figures.files} files, {figures.changes} changes of file")
    print(f"{figures.changes_above} changes of file without the lowest layer")
    print(f"(most frequent flow of {RECORDED} requests: {times} times; {len(rest)} other flows)")
    print(f"{'package':20}{'places below':>14}{'calls':>8}{'others':>8}")
    for package, one in sorted(figures.entries.items(), key=lambda item: -heights.get(item[0], -1)):
        print(f"{package:20}{one.places:14}{one.below:8}{one.other:8}")


if __name__ == "__main__":
    main()
