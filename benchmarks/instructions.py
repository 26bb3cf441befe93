"""
Count the instructions of a request: GET, LIST, create, patch, apply, and a watch event to one and to 20 watchers; GET,
LIST and create over HTTP/2, too.

Usage: python benchmarks/instructions.py [--csv FILE] [--only get,create,event]

A server runs in one thread, without sockets and real time (F{steppedserver.py}), under valgrind's tool callgrind. It
counts while the requests of a figure run; the same requests were sent before, so that caches are filled. The figures
are thousands of instructions per request, without OpenSSL and the kernel; events are counted per watcher. They do not
depend on other load of the machine; they do depend on the versions of Python and of the libraries. C{calibration} is a
loop that uses nothing of kubetwist, to compare builds of Python.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from steppedserver import Client, SteppedServer, remove_chance

MAPS: Final = "/api/v1/namespaces/default/configmaps"
OBJECTS: Final = 1000
#: The objects that are patched in turn, and further ones that are applied.
TOUCHED: Final = 100
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
#: The start of names of figures of HTTP/2.
HTTP2: Final = "h2-"
#: The environment of the process that is counted.
ENVIRONMENT: Final = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}

# Callgrind is controlled by requests of the program: an address of six words, and a sequence of instructions without
# effect elsewhere (valgrind.h, callgrind.h). The function has the signature of C's f(words, default).
_CLIENT_REQUEST: Final = bytes.fromhex(
    "4889f8"  # mov %rdi,%rax: the words
    "4889f2"  # mov %rsi,%rdx: the result outside of valgrind
    "48c1c703 48c1c70d 48c1c73d 48c1c733"  # rol $3, $13, $61, $51,%rdi
    "4887db"  # xchg %rbx,%rbx
    "4889d0"  # mov %rdx,%rax
    "c3"  # ret
)
_CALLGRIND: Final = (ord("C") << 24) + (ord("T") << 16)
_RUNNING_ON_VALGRIND: Final = 0x1001
_ZERO, _DUMP_AT, _START = _CALLGRIND + 1, _CALLGRIND + 3, _CALLGRIND + 4


class Callgrind:
    """The tool in which this process runs."""

    def __init__(self) -> None:
        self._code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._code.write(_CLIENT_REQUEST)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._code))
        words = ctypes.POINTER(ctypes.c_uint64)
        self._call: Any = ctypes.CFUNCTYPE(ctypes.c_uint64, words, ctypes.c_uint64)(address)

    def _request(self, code: int, argument: int = 0) -> int:
        found: int = self._call((ctypes.c_uint64 * 6)(code, argument), 0)
        return found

    @property
    def runs(self) -> bool:
        """Return whether this process runs in valgrind."""
        return self._request(_RUNNING_ON_VALGRIND) > 0

    def start(self) -> None:
        """Begin to simulate in detail, which takes fifty times as long as the program."""
        self._request(_START)

    def count(self, name: str, call: Callable[[], object]) -> None:
        """Count the instructions of C{call}, and write them under a name."""
        text = ctypes.create_string_buffer(name.encode())
        self._request(_ZERO)
        call()
        self._request(_DUMP_AT, ctypes.addressof(text))


def config_map(name: str, value: str = "v" * 60) -> dict[str, object]:
    """Return an object as in F{rates.py}."""
    metadata = {
        "name": name,
        "labels": {"app": f"a{int(name.rpartition('-')[2]) % 10}", "tier": "x"},
        "annotations": {"note": "n" * 100},
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"key0": value, **{f"key{key}": "v" * 60 for key in range(1, 10)}},
    }


class Calibration:
    """Work of the kinds that a server does most, in pure Python."""

    ROUNDS: Final = 1000

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, key: str, value: int) -> int:
        """Add to a count."""
        self.counts[key] = self.counts.get(key, 0) + value
        return self.counts[key]

    def run(self) -> None:
        """Do it; the same each time."""
        for number in range(self.ROUNDS):
            key = f"/registry/maps/{number % 10}".rpartition("/")[2]
            found = self.add(key, number)
            parts = [part for part in (key, str(found), "x") if part != "0"]
            try:
                text = json.dumps({"name": key, "parts": parts, "number": {"value": found}})
                assert json.loads(text)["name"] == key
                int(parts[-1])
            except ValueError:
                self.counts["errors"] = isinstance(parts, list) + len(parts)


class Requests:
    """The requests of the figures; each verb has new ones without end."""

    def __init__(self, server: SteppedServer) -> None:
        self._message = server.message
        self.verbs: dict[str, Iterator[bytes]] = {
            "get": self._reads(f"/cm-{OBJECTS // 2}"),
            "list500": self._reads("?limit=500"),
            "listlabel": self._reads("?labelSelector=app%3Da1"),
            "table500": self._reads("?limit=500", Accept=TABLE),
            "create": self.creates(),
            "patch": self._patches(),
            "apply": self._applies(),
        }

    def _reads(self, query: str, **headers: str) -> Iterator[bytes]:
        message = self._message("GET", MAPS + query, b"", **{"Accept": "application/json", **headers})
        while True:
            yield message

    def creates(self) -> Iterator[bytes]:
        """Yield creations of objects."""
        number = 0
        while True:
            body = json.dumps(config_map(f"cm-{number}")).encode()
            yield self._message("POST", MAPS, body, Content_Type="application/json")
            number += 1

    def _patches(self) -> Iterator[bytes]:
        number = 0
        while True:
            body = json.dumps({"data": {"key0": f"{number:060}"}}).encode()
            path = f"{MAPS}/cm-{number % TOUCHED}"
            yield self._message("PATCH", path, body, Content_Type="application/merge-patch+json")
            number += 1

    def _applies(self) -> Iterator[bytes]:
        number = 0
        while True:
            # Not the objects of patches, which would get a second owner of fields.
            name = f"cm-{TOUCHED + number % TOUCHED}"
            applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
            body = json.dumps({**applied, "data": {"applied": f"{number:060}"}}).encode()
            path = f"{MAPS}/{name}?fieldManager=bench&force=true"
            yield self._message("PATCH", path, body, Content_Type="application/apply-patch+yaml")
            number += 1


class Counted:
    """The server and its clients in the process that is counted."""

    #: Requests before the counted ones, and counted ones.
    SIZES: Final = {"list500": (5, 10), "listlabel": (5, 20), "table500": (5, 5)}
    SIZE: Final = (100, 100)

    def __init__(self, callgrind: Callgrind) -> None:
        self._callgrind = callgrind
        self._server = SteppedServer()
        self._server.start()
        self._client = self._server.connect()
        self._http2_client = self._server.connect(with_http2=True)
        self._requests = Requests(self._server)
        self._watchers: list[Client] = []
        self._check(self._client, self._send(self._client, self._messages(self._client, "create", OBJECTS)))

    def _messages(self, client: Client, verb: str, number: int) -> list[bytes]:
        return list(map(client.message, islice(self._requests.verbs[verb], number)))

    def _send(self, client: Client, messages: Sequence[bytes]) -> list[bytes]:
        """Send requests one after the other, and return the responses."""
        watchers, pending, answers = self._watchers, self._server.reactor.run_pending, []
        for message in messages:
            client.send(message)
            pending()
            answers.append(client.take())
            for watcher in watchers:
                if not watcher.take():
                    raise SystemExit(f"instructions: {message[:200]!r}: a watcher has received nothing")
        return answers

    def _check(self, client: Client, answers: Sequence[bytes]) -> None:
        """Exit if a request has failed."""
        for answer in answers:
            if not client.succeeded(answer):
                raise SystemExit(f"instructions: a request failed: {answer[:600]!r}")

    def count(self, name: str, verb: str) -> None:
        """
        Count the requests of a verb.

        @param name: The name of the figure; it begins with L{HTTP2} for requests over HTTP/2.
        """
        warm, counted = self.SIZES.get(verb, self.SIZE)
        client = self._http2_client if name.startswith(HTTP2) else self._client
        self._check(client, self._send(client, self._messages(client, verb, warm)))
        messages = self._messages(client, verb, counted)
        gc.collect()
        # Collections depend on what lives, and the server itself excludes what exists when it is ready.
        gc.freeze()
        gc.disable()
        answers: list[bytes] = []
        self._callgrind.count(f"{name} {counted}", lambda: answers.extend(self._send(client, messages)))
        gc.enable()
        self._check(client, answers)

    def watch(self, number: int) -> None:
        """Let a number of clients watch in all."""
        call, message = self._server.call, self._server.message
        page = call(self._client, message("GET", f"{MAPS}?limit=1"))
        version = json.loads(page.partition(b"\r\n\r\n")[2])["metadata"]["resourceVersion"]
        for _ in range(number - len(self._watchers)):
            client = self._server.connect()
            answer = call(client, message("GET", f"{MAPS}?watch=1&resourceVersion={version}"))
            if answer[9:12] != b"200":
                raise SystemExit(f"instructions: a watch: {answer[:600]!r}")
            self._watchers.append(client)

    def close(self) -> None:
        """Remove the files of the server."""
        self._server.close()


def count_in_this_process(expected: Sequence[str]) -> None:
    """Count what the figures need; the process runs in callgrind."""
    callgrind = Callgrind()
    if not callgrind.runs:
        raise SystemExit("instructions: the process does not run in valgrind")
    remove_chance()
    counted = Counted(callgrind)
    callgrind.start()
    calibration = Calibration()
    calibration.run()
    callgrind.count(f"calibration {Calibration.ROUNDS}", calibration.run)
    for verb in ("get", "list500", "listlabel", "table500", "create", "apply", "patch"):
        if not expected or verb in expected or (verb == "patch" and "event" in expected):
            counted.count(verb, verb)
        # With the same objects.
        if verb in ("get", "list500", "create") and (not expected or HTTP2 + verb in expected):
            counted.count(HTTP2 + verb, verb)
    if not expected or "event" in expected:
        for number in (1, 20):
            counted.watch(number)
            counted.count(f"watched{number}", "patch")
    counted.close()


def read_counts(folder: Path) -> dict[str, float]:
    """Read the files of callgrind; return thousands of instructions per request by name."""
    counts = {}
    for path in folder.glob("callgrind.out.*"):
        text = path.read_text()
        trigger = re.search(r"^desc: Trigger: Client Request: (\S+) (\d+)$", text, re.MULTILINE)
        total = re.search(r"^summary: (\d+)$", text, re.MULTILINE)
        if trigger and total:
            counts[trigger.group(1)] = int(total.group(1)) / int(trigger.group(2)) / 1000
    return counts


def figures_of(counts: dict[str, float]) -> dict[str, float]:
    """Return the figures: counts of verbs, and the cost of an event for each of the watchers."""
    figures = {name: count for name, count in counts.items() if not name.startswith("watched")}
    for number in (1, 20):
        watched = counts.get(f"watched{number}")
        if watched is not None:
            figures[f"event{number}"] = (watched - counts["patch"]) / number
    return figures


def measure(expected: Sequence[str] = ()) -> dict[str, float]:
    """Run this file in callgrind; return thousands of instructions by figure."""
    if platform.machine() != "x86_64":
        raise SystemExit(f"instructions: callgrind is controlled on x86_64 only, and this is {platform.machine()}")
    if shutil.which("valgrind") is None:
        raise SystemExit("instructions: valgrind is missing")
    with tempfile.TemporaryDirectory(prefix="kubetwist-") as folder:
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet"]
        command += [f"--callgrind-out-file={folder}/callgrind.out", sys.executable, __file__, "--counted", *expected]
        subprocess.run(command, check=True, env={**os.environ, **ENVIRONMENT})
        return figures_of(read_counts(Path(folder)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of verbs, or event, with commas")
    parser.add_argument("--csv", type=Path, help="write the figures there as well")
    parser.add_argument("--counted", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.counted is not None:
        count_in_this_process(options.counted)
        return
    figures = measure([name for name in options.only.split(",") if name])
    for name, figure in figures.items():
        print(f"{name:10} {figure:10.1f} thousand instructions")
    if options.csv:
        options.csv.write_text("".join(f"{name},{figure:.1f}\n" for name, figure in figures.items()))


if __name__ == "__main__":
    main()
