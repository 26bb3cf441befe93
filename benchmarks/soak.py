"""
Load a server for hours, and measure whether latency, memory and open files stay the same.

    python benchmarks/soak.py --hours 2 --csv soak.csv --plot soak.svg [--etcd] [--server https://host:port --pid PID]

By default 200 requests per second are sent when they are due, also if earlier ones are not answered: GET, LIST, paged
LIST, merge PATCH, server-side apply, create and delete on 5,000 Secrets in 20 namespaces. 200 watches check that all
events arrive, in the same order. At the same time the certificate of the server is replaced every three minutes, the
store is compacted every minute, and once a minute a namespace with an owner and its dependents is created,
garbage-collected and deleted. Every ten seconds a sample is written to the CSV file (the columns are in
F{soakreport.py}). The exit code is 1 if a limit is exceeded: errors, problems of watches, growth of memory, p99.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import csv
import json
import os
import random
import ssl
import sys
import tempfile
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import soakreport
from fanout import cpu_seconds
from load import Target, arguments, self_signed, trusting
from mixed import fill
from soakreport import Sample, percentile
from soakwatches import KEPT, EventLog, Watch

from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import EtcdServer

#: The share of each operation, in percent.
MIX = {"get": 57, "list": 14, "pages": 1, "patch": 9, "apply": 5, "create": 7, "delete": 7}
#: The number of requests after which a connection is replaced.
RENEWED = 500
#: The share of watches of all namespaces.
WIDE = 0.05
#: Created objects that wait for their deletion: fewer are not deleted, more are not created.
FEWEST, MOST = 20, 400
#: Dependents of an owner that is deleted for the garbage collector.
DEPENDENTS = 20
#: Seconds until the garbage collector, the deletion of a namespace, or a new certificate must have had an effect.
EFFECT = 120.0
_VALUE = base64.b64encode(b"x" * 300).decode()
_TYPES = {"PATCH": "application/merge-patch+json", "APPLY": "application/apply-patch+yaml"}


#: Shared by all connections: a context has a copy of the system's authorities.
_CONTEXT = trusting()


class Failed(Exception):
    """A response that is not 2xx, or none."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class Connection:
    """A connection to the server that is replaced from time to time, and after an error."""

    def __init__(self, server: Target) -> None:
        self._server = server
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._left = 0

    async def call(self, method: str, path: str, body: Any = None, *, decode: bool = True) -> Any:
        """
        Send a request; C{APPLY} is a PATCH of server-side apply.

        @param decode: Whether the response is JSON.
        @return: The decoded response.
        @raise Failed: There is no response, or it is not 2xx.
        """
        try:
            if self._streams is None or not self._left:
                await self._open()
            assert self._streams is not None
            reader, writer = self._streams
            self._left -= 1
            kind = _TYPES.get(method, "application/json")
            verb = "PATCH" if method == "APPLY" else method
            writer.write(self._server.request(verb, path, body, Content_Type=kind, Accept="application/json"))
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            content = await self._body(reader, head)
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.close()
            raise Failed("connection", f"{method} {path}: {error!r}") from error
        if b"\r\nconnection: close" in head:
            self.close()
        if head[9:10] != b"2":
            raise Failed(head[9:12].decode(), f"{method} {path}: {content[:300].decode('utf-8', 'replace')}")
        return json.loads(content) if decode else content

    async def _open(self) -> None:
        self.close()
        parts = urlsplit(self._server.url)
        self._streams = await asyncio.open_connection(parts.hostname, parts.port, ssl=_CONTEXT, limit=1 << 24)
        self._left = RENEWED

    @staticmethod
    async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
        for line in head.split(b"\r\n"):
            if line.startswith(b"content-length:"):
                return await reader.readexactly(int(line[15:]))
        pieces = []
        while size := int(await reader.readline(), 16):
            pieces.append((await reader.readexactly(size + 2))[:-2])
        await reader.readline()
        return b"".join(pieces)

    def close(self) -> None:
        """Close the connection."""
        streams, self._streams = self._streams, None
        if streams:
            streams[1].close()


class Soak:
    """
    The load and its measurements.

    @ivar samples: The samples so far.
    @ivar took: The latencies of all operations in ms, by operation.
    @ivar descriptions: The first errors and problems.
    """

    def __init__(
        self, server: Target, options: argparse.Namespace, certificate: Certificate, data: Path | None
    ) -> None:
        self._server, self._options, self._certificate, self._data = server, options, certificate, data
        self._chance = random.Random(options.seed)
        prefix = f"soak-{random.SystemRandom().randrange(1 << 24):06x}"
        self._namespaces = [f"{prefix}-{number}" for number in range(options.namespaces)]
        self._garbage = f"{prefix}-garbage"
        self._logs = {name: EventLog() for name in ("", *self._namespaces)}
        self._created: dict[str, None] = {}
        self._numbers = count()
        self._queue: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
        self._watches: list[Watch] = []
        self._codes: Counter[str] = Counter()
        self._problems = 0
        self._recent: list[float] = []
        self._ping = self._lag = 0.0
        self._cpu = 0.0
        self.samples: list[Sample] = []
        self.took: dict[str, array[float]] = defaultdict(lambda: array("f"))
        self.descriptions: list[str] = []

    # --- preparation

    def prepare(self) -> None:
        """Create the namespaces and Secrets."""
        for name in self._namespaces:
            self._server.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        posts = []
        for number in range(self._options.secrets):
            body = {"metadata": {"name": f"s-{number}"}, "data": {"value": _VALUE}}
            path = self._collection(self._home(number))
            posts.append(self._server.request("POST", path, body, Content_Type="application/json"))
        fill(self._server, posts)

    def _home(self, number: int) -> str:
        return self._namespaces[number % len(self._namespaces)]

    @staticmethod
    def _collection(namespace: str) -> str:
        return f"/api/v1/namespaces/{namespace}/secrets" if namespace else "/api/v1/secrets"

    # --- errors

    def report(self, code: str, text: str) -> None:
        """Count an error of a request."""
        self._codes[code] += 1
        self._describe(f"{code}: {text}")

    def problem(self, kind: str, text: str) -> None:
        """Count an event that is missing, repeated or out of order, or an expectation that was not met."""
        if kind.startswith("watch-"):
            self.report(kind, text)
            return
        self._problems += 1
        self._describe(f"problem: {kind}: {text}")

    def _describe(self, text: str) -> None:
        if len(self.descriptions) < KEPT:
            self.descriptions.append(f"{time.strftime('%H:%M:%S')} {text}")
            print(self.descriptions[-1], file=sys.stderr, flush=True)

    # --- operations

    def _pick(self) -> str:
        (verb,) = self._chance.choices(list(MIX), list(MIX.values()))
        if verb == "delete" and len(self._created) < FEWEST:
            return "create"
        if verb == "create" and len(self._created) > MOST:
            return "delete"
        return str(verb)

    async def _perform(self, verb: str, connection: Connection) -> None:
        if verb == "delete" and not self._created:
            # The created objects were deleted while this operation waited for a connection.
            verb = "get"
        number = self._chance.randrange(self._options.secrets)
        namespace = self._home(number)
        path, name = self._collection(namespace), f"s-{number}"
        if verb == "get":
            await connection.call("GET", f"{path}/{name}")
        elif verb == "list":
            await connection.call("GET", f"{path}?limit=50")
        elif verb == "pages":
            more = ""
            while True:
                answer = await connection.call("GET", f"{path}?limit=100{more}")
                if not answer["metadata"].get("continue"):
                    break
                more = f"&continue={quote(answer['metadata']['continue'])}"
        elif verb == "patch":
            body: dict[str, Any] = {"stringData": {"patched": str(next(self._numbers))}}
            self._written("MODIFIED", await connection.call("PATCH", f"{path}/{name}", body))
        elif verb == "apply":
            applied = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name},
                "stringData": {"applied": str(next(self._numbers))},
            }
            query = "fieldManager=soak&force=true"
            self._written("MODIFIED", await connection.call("APPLY", f"{path}/{name}?{query}", applied))
        elif verb == "create":
            name = f"new-{next(self._numbers)}"
            body = {"metadata": {"name": name}, "data": {"value": _VALUE}}
            self._written("ADDED", await connection.call("POST", path, body))
            self._created[f"{namespace}/{name}"] = None
        else:
            key = next(iter(self._created))
            del self._created[key]
            namespace, _, name = key.partition("/")
            await connection.call("DELETE", f"{self._collection(namespace)}/{name}")
            self._acknowledge("DELETED", namespace, key, 0)

    def _written(self, kind: str, answer: Any) -> None:
        meta = answer["metadata"]
        key = f"{meta['namespace']}/{meta['name']}"
        self._acknowledge(kind, meta["namespace"], key, int(meta["resourceVersion"]))

    def _acknowledge(self, kind: str, namespace: str, key: str, revision: int) -> None:
        now = time.monotonic()
        for log in (self._logs[namespace], self._logs[""]):
            log.acknowledge(kind, key, revision, now)

    async def _work(self) -> None:
        connection = Connection(self._server)
        while True:
            verb, due = await self._queue.get()
            try:
                await self._perform(verb, connection)
            except Failed as error:
                self.report(error.code, str(error))
            took = (time.perf_counter() - due) * 1000
            self._recent.append(took)
            self.took[verb].append(took)
            self._queue.task_done()

    async def _send(self, seconds: float) -> None:
        began = time.perf_counter()
        for number in range(round(self._options.rate * seconds)):
            due = began + number / self._options.rate
            wait = due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            self._queue.put_nowait((self._pick(), due))

    # --- what happens beside the load

    async def _measure_lag(self) -> None:
        """Record the longest response time of C{/livez/ping}, and the delay of the client's own timer."""
        connection = Connection(self._server)
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.2)
            middle = time.perf_counter()
            self._lag = max(self._lag, (middle - began - 0.2) * 1000)
            try:
                await connection.call("GET", "/livez/ping", decode=False)
            except Failed as error:
                self.report(error.code, str(error))
            self._ping = max(self._ping, (time.perf_counter() - middle) * 1000)

    async def _collect_garbage(self) -> None:
        """Periodically create an owner with dependents, delete it, and then its namespace."""
        connection = Connection(self._server)
        for number in count():
            await asyncio.sleep(self._options.garbage)
            try:
                await self._one_owner(connection, f"{self._garbage}-{number}")
            except Failed as error:
                self.report(error.code, str(error))

    async def _one_owner(self, connection: Connection, namespace: str) -> None:
        await connection.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        owner = await connection.call("POST", path, {"metadata": {"name": "owner"}})
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        for number in range(DEPENDENTS):
            labels = {"soak": "dependent"}
            metadata = {"name": f"dependent-{number}", "labels": labels, "ownerReferences": [reference]}
            await connection.call("POST", path, {"metadata": metadata})
        await connection.call("DELETE", f"{path}/owner?propagationPolicy=Background")

        async def collected() -> bool:
            return not (await connection.call("GET", f"{path}?labelSelector=soak%3Ddependent"))["items"]

        async def deleted() -> bool:
            selector = f"fieldSelector=metadata.name%3D{namespace}"
            return not (await connection.call("GET", f"/api/v1/namespaces?{selector}"))["items"]

        await self._expect(collected, f"dependents in {namespace} are not collected")
        await connection.call("DELETE", f"/api/v1/namespaces/{namespace}")
        await self._expect(deleted, f"namespace {namespace} is not deleted")

    async def _replace_certificates(self) -> None:
        """Periodically replace the certificate, and check that new connections receive it."""
        parts = urlsplit(self._server.url)
        while True:
            await asyncio.sleep(self._options.certificates)
            written = self._certificate.replace()

            async def served(written: bytes = written) -> bool:
                _, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=_CONTEXT)
                shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                writer.close()
                return bool(shown == written)

            await self._expect(served, "the new certificate is not served")

    async def _expect(self, reached: Callable[[], Coroutine[Any, Any, bool]], text: str) -> None:
        deadline = time.monotonic() + EFFECT
        while not await reached():
            if time.monotonic() > deadline:
                self.problem("late", f"{text} after {EFFECT:.0f} s")
                return
            await asyncio.sleep(1)

    # --- samples

    def _sample(self, seconds: float, interval: float) -> Sample:
        now = time.monotonic()
        for namespace, log in self._logs.items():
            for text in log.missing(now):
                self.problem("missing", f"{namespace or 'all namespaces'}: {text}")
        for watch in self._watches:
            if watch.is_behind(now):
                self.problem("behind", f"a watch of {watch.path} is at {watch.revision}")
        for log in self._logs.values():
            positions = [watch.position for watch in self._watches if watch.log is log]
            log.trim(min(positions, default=log.end))
        times, self._recent = sorted(self._recent), []
        codes, self._codes = self._codes, Counter()
        problems, self._problems = self._problems, 0
        events = sum(watch.events for watch in self._watches)
        requests = sum(watch.requests for watch in self._watches)
        for watch in self._watches:
            watch.events = watch.requests = 0
        pid = self._server.pid
        cpu, self._cpu = self._cpu, cpu_seconds(pid) if pid else 0.0
        sample = Sample(
            seconds=round(seconds, 1),
            requests=len(times),
            errors=codes.total(),
            codes=" ".join(f"{code}:{number}" for code, number in sorted(codes.items())),
            p50=round(percentile(times, 0.5), 2),
            p99=round(percentile(times, 0.99), 2),
            longest=round(times[-1], 2) if times else 0.0,
            ping=round(self._ping, 2),
            client_lag=round(self._lag, 2),
            events=events,
            problems=problems,
            watches=requests,
            rss=round(self._server.memory(), 1),
            files=len(os.listdir(f"/proc/{pid}/fd")) if pid else 0,
            threads=len(os.listdir(f"/proc/{pid}/task")) if pid else 0,
            cpu=round((self._cpu - cpu) / interval * 100, 1),
            store=round(_size(self._data), 1),
        )
        self._ping = self._lag = 0.0
        return sample

    async def _take_samples(self, write: Callable[[Sample], None]) -> None:
        began = last = time.monotonic()
        self._cpu = cpu_seconds(self._server.pid) if self._server.pid else 0.0
        while True:
            await asyncio.sleep(max(0.0, last + self._options.sample - time.monotonic()))
            now = time.monotonic()
            sample = self._sample(now - began, now - last)
            last = now
            self.samples.append(sample)
            write(sample)

    async def _start_watches(self) -> list[asyncio.Task[None]]:
        connection = Connection(self._server)
        starts = {}
        for namespace in self._logs:
            answer = await connection.call("GET", f"{self._collection(namespace)}?limit=1")
            starts[namespace] = int(answer["metadata"]["resourceVersion"])
        connection.close()
        tasks = []
        wide = max(1, round(self._options.watchers * WIDE)) if self._options.watchers else 0
        for number in range(self._options.watchers):
            namespace = "" if number < wide else self._home(number)
            path = self._collection(namespace)
            watch = Watch(self._server, path, self._logs[namespace], self.problem, _CONTEXT, number)
            self._watches.append(watch)
            tasks.append(asyncio.create_task(watch.run(starts[namespace])))
        while any(not watch.requests for watch in self._watches):
            await asyncio.sleep(0.05)
        return tasks

    async def run(self, write: Callable[[Sample], None]) -> None:
        """
        Send the load for the time in the options.

        @param write: Called with each sample.
        """
        tasks = await self._start_watches()
        tasks += [asyncio.create_task(self._work()) for _ in range(self._options.connections)]
        for job in (self._measure_lag(), self._collect_garbage(), self._replace_certificates()):
            tasks.append(asyncio.create_task(job))
        sampling = asyncio.create_task(self._take_samples(write))
        tasks.append(sampling)
        sending = asyncio.create_task(self._send(self._options.hours * 3600))
        done, _ = await asyncio.wait([sending, *tasks], return_when=asyncio.FIRST_COMPLETED)
        if sending not in done:
            sending.cancel()
            raise done.pop().exception() or SystemExit("soak: a task ended")
        await asyncio.wait_for(self._queue.join(), 60)
        await self._await_watches()
        for task in tasks:
            task.cancel()
        if sampling.done():
            sampling.result()

    async def _await_watches(self) -> None:
        """Wait until the watches have received the last write."""
        deadline = time.monotonic() + EFFECT
        while (late := [watch for watch in self._watches if watch.position < watch.log.end]) or any(
            log.is_incomplete for name, log in self._logs.items() if any(one.log is log for one in self._watches)
        ):
            if time.monotonic() > deadline:
                self.problem("late", f"{len(late)} watches have not received the last events after {EFFECT:.0f} s")
                return
            await asyncio.sleep(0.1)

    @property
    def late_problems(self) -> int:
        """Return the number of errors and problems after the last sample."""
        return self._problems + self._codes.total()


def _size(folder: Path | None) -> float:
    """Return the size of the files of a directory in MB."""
    total = 0
    for path in folder.iterdir() if folder else ():
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total / 2**20


class Certificate:
    """
    The serving certificate, which is replaced while the server runs.

    @ivar certificate: The path of the certificate.
    @ivar key: The path of its key.
    """

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self.replace()

    def replace(self) -> bytes:
        """Write a new certificate and key; returns the certificate as DER."""
        new = [path.with_suffix(f"{path.suffix}.new") for path in (self.certificate, self.key)]
        self_signed(str(new[0]), str(new[1]))
        encoded = ssl.PEM_cert_to_DER_cert(new[0].read_text())
        for path, final in zip(new, (self.certificate, self.key), strict=True):
            path.replace(final)
        return encoded


@contextlib.contextmanager
def serve(options: argparse.Namespace, certificate: Certificate) -> Iterator[tuple[Target, Path | None]]:
    """Return the server in the options, or start one; and its data directory."""
    if options.server:
        yield Target(options.server.rstrip("/"), options.token, options.pid), None
        return
    with contextlib.ExitStack() as stack:
        flags = [
            f"--tls-cert-file={certificate.certificate}",
            f"--tls-private-key-file={certificate.key}",
            f"--etcd-compaction-interval={options.compaction}s",
            *options.flag,
        ]
        if options.etcd:
            etcd = stack.enter_context(EtcdServer())
            flags.append(f"--etcd-servers={','.join(etcd.urls)}")
        server = stack.enter_context(SubprocessServer(*flags))
        yield Target(server.url, server.token, server.pid), server.data_dir
        if options.log:
            options.log.write_text(server.output())


def exceeded(samples: list[Sample], options: argparse.Namespace) -> list[str]:
    """Return the limits that a run has exceeded."""
    found = []
    errors, problems = sum(one.errors for one in samples), sum(one.problems for one in samples)
    if errors > options.max_errors:
        found.append(f"{errors} errors, more than {options.max_errors}")
    if problems:
        found.append(f"{problems} problems")
    memory = soakreport.growth(samples, "rss", options.warm_up)
    if memory and memory.per_hour - 2 * memory.error > options.max_growth:
        found.append(f"memory grows by {memory.per_hour:.1f} MB/h, more than {options.max_growth:g}")
    p99 = percentile(sorted(one.p99 for one in samples), 0.5)
    if p99 > options.max_p99:
        found.append(f"the median of p99 is {p99:.0f} ms, more than {options.max_p99:g}")
    return found


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    assert __doc__
    parser = arguments(__doc__)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--rate", type=float, default=200, help="requests per second")
    parser.add_argument("--secrets", type=int, default=5000)
    parser.add_argument("--namespaces", type=int, default=20)
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--connections", type=int, default=256, help="the most requests in flight")
    parser.add_argument("--sample", type=float, default=10, help="seconds between samples")
    parser.add_argument("--certificates", type=float, default=180, help="seconds between new certificates")
    parser.add_argument("--garbage", type=float, default=60, help="seconds between owners for the garbage collector")
    parser.add_argument("--compaction", type=int, default=60, help="seconds between compactions")
    parser.add_argument("--etcd", action="store_true", help="store in an etcd that is started, instead of SQLite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", type=Path, help="write each sample to this file")
    parser.add_argument("--plot", type=Path, help="write the plot to this file, as SVG")
    parser.add_argument("--log", type=Path, help="write the server's log to this file")
    parser.add_argument("--warm-up", type=float, default=soakreport.WARM_UP, help="minutes that growth excludes")
    parser.add_argument("--max-errors", type=int, default=0)
    parser.add_argument("--max-growth", type=float, default=20, help="MB per hour, beyond two standard errors")
    parser.add_argument("--max-p99", type=float, default=float("inf"), help="ms, of the median of all samples")
    options = parser.parse_args(argv)
    for name in (
        "hours",
        "rate",
        "secrets",
        "namespaces",
        "connections",
        "sample",
        "certificates",
        "garbage",
        "compaction",
    ):
        if not getattr(options, name) > 0:
            parser.error(f"--{name} must be greater than 0")
    return options


@contextlib.contextmanager
def csv_writer(path: Path | None) -> Iterator[Callable[[Sample], None]]:
    """Return a function that appends a sample to a new file."""
    with path.open("w", newline="") if path else open(os.devnull, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Sample._fields)

        def write(sample: Sample) -> None:
            writer.writerow(sample)
            file.flush()

        yield write


def main(argv: list[str] | None = None) -> int:
    """Fill, run, print."""
    options = parse(argv)
    with tempfile.TemporaryDirectory(prefix="kubetwist-soak-") as folder:
        certificate = Certificate(Path(folder))
        with serve(options, certificate) as (server, data), csv_writer(options.csv) as write:
            soak = Soak(server, options, certificate, data)
            soak.prepare()
            asyncio.run(soak.run(write))
    print(*soakreport.summary(soak.samples, options.warm_up), sep="\n")
    print(f"{'operation':9} {'count':>8} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
    for verb, values in sorted(soak.took.items()):
        times = sorted(values)
        print(f"{verb:9} {len(times):8} {percentile(times, 0.5):8.1f} {percentile(times, 0.99):8.1f} {times[-1]:8.1f}")
    if options.plot:
        kind = "etcd" if options.etcd else "SQLite"
        minutes = options.hours * 60
        title = f"{options.rate:g} requests/s, {options.watchers} watches, {kind}, {minutes:.0f} min"
        options.plot.write_text(soakreport.plot(soak.samples, title))
    failures = exceeded(soak.samples, options)
    if soak.late_problems:
        failures.append(f"{soak.late_problems} errors or problems at the end")
    print(*(f"limit exceeded: {text}" for text in failures), *soak.descriptions, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
