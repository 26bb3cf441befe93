"""
Check high availability: three API servers over a three-member etcd, while each of them is restarted and killed.

    python deploy/ha/run.py [--steady 5] [--haproxy] [--writers 4] [--readers 4] [--watchers 4]

Starts everything on this machine, in temporary directories: etcd must be on PATH, and with --haproxy also haproxy, to
which clients then connect instead of the servers. Under the load of the clients, all servers are restarted one after
the other, each server is killed and started, and each member of etcd is killed and started. Clients repeat what fails.
The exit code is 0 if no read failed after its retries, no acknowledged write was lost, and all watches were complete.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import re
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason, reserve_ports

#: Seconds until a request is repeated, and until it counts as failed.
AGAIN: Final = 0.1
LIMIT: Final = 60.0
#: Seconds of a single attempt.
ATTEMPT: Final = 10.0
#: Objects of a writer.
OBJECTS: Final = 10
#: Seconds that a server fails /readyz before it stops: the load balancer needs two failed checks.
DRAIN: Final = 4
PATH: Final = "/api/v1/namespaces/ha/configmaps"
CONFIGURATION: Final = Path(__file__).parents[1] / "haproxy" / "haproxy.cfg"

#: A choice of the address for a new connection: called for each.
Choose = Callable[[], int]


class Record:
    """
    What clients have seen; thread-safe.

    @ivar counts: Numbers of requests, retries and events.
    @ivar failures: Reads and writes that failed after their retries, and lost writes.
    @ivar longest: The longest time in seconds until a repeated request succeeded.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.longest = 0.0
        self._values: dict[str, int] = {}
        self._history: list[tuple[str, int]] = []

    def count(self, what: str) -> None:
        """Count something."""
        with self._lock:
            self.counts[what] += 1

    def fail(self, what: str, text: str) -> None:
        """Record a failure."""
        with self._lock:
            self.counts[what] += 1
            self.failures.append(f"{what}: {text}")

    def took(self, seconds: float) -> None:
        """Record the duration of a repeated request."""
        with self._lock:
            self.longest = max(self.longest, seconds)

    def acknowledge(self, name: str, value: int) -> None:
        """Record an acknowledged write."""
        with self._lock:
            self.counts["acknowledged writes"] += 1
            self._values[name] = value
            self._history.append((name, value))

    def values(self) -> dict[str, int]:
        """Return the newest acknowledged value of each object."""
        with self._lock:
            return dict(self._values)

    def history(self) -> list[tuple[str, int]]:
        """Return all acknowledged writes."""
        with self._lock:
            return list(self._history)


class Client(threading.Thread):
    """A client with one connection, which it opens again after a failure."""

    def __init__(self, record: Record, choose: Choose, context: ssl.SSLContext, token: str, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.record = record
        self.stopping = threading.Event()
        self._choose, self._context = choose, context
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection: http.client.HTTPSConnection | None = None

    def attempt(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request once; returns code 0 if there was no response."""
        try:
            if self._connection is None:
                self._connection = self.connect()
            self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
            response = self._connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            self.disconnect()
            return 0, {}
        if response.status >= 500 or response.status == 429:
            self.disconnect()
        return response.status, answer

    def connect(self) -> http.client.HTTPSConnection:
        """Return a new connection, which is not open yet."""
        return http.client.HTTPSConnection("127.0.0.1", self._choose(), context=self._context, timeout=ATTEMPT)

    def disconnect(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def until(self, method: str, path: str, body: Any = None, expected: Sequence[int] = (200,)) -> tuple[int, Any]:
        """
        Send a request until its response has an expected code.

        @return: The last response; code 0 or another code after L{LIMIT} seconds.
        """
        began = time.monotonic()
        repeated = False
        while True:
            code, answer = self.attempt(method, path, body)
            if code in expected or time.monotonic() > began + LIMIT:
                if repeated:
                    self.record.took(time.monotonic() - began)
                return code, answer
            repeated = True
            self.record.count("retries")
            time.sleep(AGAIN)


def object_with(name: str, value: int, revision: str = "") -> dict[str, Any]:
    """Return a ConfigMap."""
    metadata = {"name": name, "resourceVersion": revision} if revision else {"name": name}
    return {"metadata": metadata, "data": {"value": str(value)}}


class Writer(Client):
    """
    Writes increasing values to its objects.

    Each write has the revision of the one before: an attempt that is carried out late, after its response was lost, is
    refused by the server, and cannot replace a later write.
    """

    def run(self) -> None:
        """Write until stopped."""
        revisions: dict[str, str] = {}
        value = 0
        while not self.stopping.is_set():
            value += 1
            name = f"{self.name}-{value % OBJECTS}"
            if not self._write(name, value, revisions):
                self.record.fail("failed writes", f"{name}={value}")
                return
            self.record.acknowledge(name, value)
            time.sleep(0.02)
        self.disconnect()

    def _write(self, name: str, value: int, revisions: dict[str, str]) -> bool:
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            if name in revisions:
                body = object_with(name, value, revisions[name])
                code, answer = self.until("PUT", f"{PATH}/{name}", body, (200, 409))
            else:
                code, answer = self.until("POST", PATH, object_with(name, value), (201, 409))
            if code == 409:
                # An attempt without a response may have been carried out.
                code, answer = self.until("GET", f"{PATH}/{name}")
            if code not in (200, 201):
                return False
            revisions[name] = answer["metadata"]["resourceVersion"]
            if answer["data"]["value"] == str(value):
                return True
        return False


class Reader(Client):
    """Reads objects, and checks that no acknowledged write is missing."""

    def run(self) -> None:
        """Read until stopped."""
        turn = 0
        while not self.stopping.is_set():
            values = sorted(self.record.values().items())
            if not values:
                time.sleep(AGAIN)
                continue
            turn += 1
            if turn % 10:
                self._read(*values[turn * 7 % len(values)])
            else:
                self._list(dict(values))
            time.sleep(0.02)
        self.disconnect()

    def _read(self, name: str, least: int) -> None:
        code, answer = self.until("GET", f"{PATH}/{name}")
        self._check(code, name, least, answer)

    def _list(self, least: dict[str, int]) -> None:
        code, answer = self.until("GET", PATH)
        found = {item["metadata"]["name"]: item for item in answer.get("items", ())}
        for name, value in least.items():
            self._check(code, name, value, found.get(name))

    def _check(self, code: int, name: str, least: int, found: Any) -> None:
        self.record.count("reads")
        if code != 200:
            self.record.fail("failed reads", f"{name}: {code}")
        elif found is None or int(found["data"]["value"]) < least:
            self.record.fail("lost writes", f"{name}={least}, but the server returned {found}")


class Watcher(Client):
    """
    Watches all objects, and continues at its last revision after a failure.

    @ivar seen: All values that it has received.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.seen: set[tuple[str, int]] = set()

    def run(self) -> None:
        """Watch until stopped."""
        revision = 0
        while not self.stopping.is_set():
            if not revision:
                revision = self._list()
                continue
            try:
                revision = self._watch(revision)
            except (OSError, http.client.HTTPException, ValueError):
                self.record.count("interrupted watches")
                time.sleep(AGAIN)
            finally:
                self.disconnect()

    def _list(self) -> int:
        code, answer = self.until("GET", PATH)
        if code != 200:
            self.record.fail("failed reads", f"list of {self.name}: {code}")
            return 0
        for item in answer["items"]:
            if "value" not in (item.get("data") or ()):
                # The server creates kube-root-ca.crt in each namespace.
                continue
            value = int(item["data"]["value"])
            # The events before the list are not sent again: all earlier values count as received.
            self.seen.update((item["metadata"]["name"], each) for each in range(value % OBJECTS, value + 1, OBJECTS))
        return int(answer["metadata"]["resourceVersion"])

    def _watch(self, revision: int) -> int:
        """Watch once; returns the revision at which to continue, 0 to list again."""
        connection = self._connection = self.connect()
        query = "watch=1&allowWatchBookmarks=1&timeoutSeconds=20"
        connection.request("GET", f"{PATH}?{query}&resourceVersion={revision}", headers=self._headers)
        response = connection.getresponse()
        if response.status != 200:
            response.read()
            time.sleep(AGAIN)
            return 0 if response.status == 410 else revision
        # Without bookmarks and events, a broken connection would not be noticed.
        if connection.sock is not None:
            connection.sock.settimeout(30)
        for line in response:
            event = json.loads(line)
            if event["type"] == "ERROR":
                return 0 if event["object"].get("code") == 410 else revision
            new = int(event["object"]["metadata"]["resourceVersion"])
            if new < revision or (new == revision and event["type"] != "BOOKMARK"):
                self.record.fail("watch problems", f"{self.name}: revision {new} after {revision}")
            revision = new
            if event["type"] != "BOOKMARK" and "value" in (event["object"].get("data") or ()):
                self.record.count("events")
                self.seen.add((event["object"]["metadata"]["name"], int(event["object"]["data"]["value"])))
            if self.stopping.is_set():
                break
        return revision


class Cluster:
    """
    Three servers over a three-member etcd.

    @ivar servers: The servers; a stopped one keeps its port.
    @ivar token: The token of an administrator.
    """

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.etcd = stack.enter_context(EtcdServer(3))
        self.token = secrets.token_urlsafe(24)
        tokens = folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n')
        self.servers: list[SubprocessServer] = []
        for number in range(3):
            data = folder / f"data-{number}"
            if self.servers:
                # All servers need the same authority, and the same key for service account tokens.
                shutil.copytree(
                    self.servers[0].data_dir, data, ignore=shutil.ignore_patterns("kubetwist.pid", "*.kubeconfig")
                )
            server = SubprocessServer(
                f"--etcd-servers={','.join(self.etcd.urls)}",
                f"--advertise-address=192.0.2.{number + 1}",
                f"--shutdown-delay-duration={DRAIN}s",
                data_dir=data,
                token_auth_file=tokens,
                timeout=120,
            )
            self.servers.append(stack.enter_context(server))
        self.ports = [server.connection.port for server in self.servers]
        self.authority = self.servers[0].data_dir / "pki" / "ca.crt"

    def context(self) -> ssl.SSLContext:
        """Return a TLS context that verifies the servers."""
        return ssl.create_default_context(cafile=str(self.authority))

    def logs(self) -> str:
        """Return the tracebacks in the logs of the servers."""
        return "\n".join(server.output() for server in self.servers if "Traceback" in server.output())


def balanced(text: str, frontend: int, ports: Sequence[int], authority: Path) -> str:
    """
    Return the example configuration of HAProxy with other addresses.

    @param text: The example.
    @param frontend: The port of the load balancer.
    @param ports: The ports of the three servers.
    @param authority: The authority of their certificates.
    """
    text = text.replace("10.0.0.10:6443", f"127.0.0.1:{frontend}").replace("/etc/haproxy/kube-ca.crt", str(authority))
    for number, port in enumerate(ports):
        text = re.sub(rf"10\.0\.0\.1{number + 1}:6443", f"127.0.0.1:{port}", text)
    return text


@contextlib.contextmanager
def load_balancer(folder: Path, cluster: Cluster) -> Iterator[int]:
    """Run HAProxy with the example configuration; returns its port."""
    (reserved,) = reserve_ports(1)
    port = int(reserved.getsockname()[1])
    file = folder / "haproxy.cfg"
    file.write_text(balanced(CONFIGURATION.read_text(), port, cluster.ports, cluster.authority))
    checked = subprocess.run(["haproxy", "-c", "-f", str(file)], capture_output=True, text=True)
    if checked.returncode:
        raise SystemExit(f"ha: haproxy refuses its configuration: {checked.stdout}{checked.stderr}")
    with (folder / "haproxy.log").open("w") as log:
        process = subprocess.Popen(["haproxy", "-db", "-f", str(file)], stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + LIMIT
            while process.poll() is None and time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                time.sleep(AGAIN)
            else:
                raise SystemExit(f"ha: haproxy does not listen: {(folder / 'haproxy.log').read_text()}")
            yield port
        finally:
            process.kill()
            process.wait()
            reserved.close()


class Run:
    """The clients, and what happens to the cluster."""

    def __init__(self, cluster: Cluster, options: argparse.Namespace, port: int | None) -> None:
        self.cluster, self.options = cluster, options
        self.record = Record()
        context, turns = cluster.context(), iter(range(1 << 62))

        def choose() -> int:
            return port or cluster.ports[next(turns) % len(cluster.ports)]

        def clients(kind: type[Client], count: int, name: str) -> list[Any]:
            return [kind(self.record, choose, context, cluster.token, f"{name}{number}") for number in range(count)]

        self.watchers: list[Watcher] = clients(Watcher, options.watchers, "watcher")
        self.writers: list[Client] = clients(Writer, options.writers, "writer")
        self.readers: list[Client] = clients(Reader, options.readers, "reader")
        self._first = Client(self.record, choose, context, cluster.token, "first")

    def go(self) -> None:
        """Start the clients, break everything in turn, and stop the clients."""
        code, _ = self._first.until("POST", "/api/v1/namespaces", {"metadata": {"name": "ha"}}, (201, 409))
        if code not in (201, 409):
            raise SystemExit(f"ha: cannot create a namespace: {code}")
        for client in (*self.watchers, *self.writers, *self.readers):
            client.start()
        self.steady("start")
        for number, server in enumerate(self.cluster.servers, 1):
            server.stop()
            server.start()
            self.steady(f"server {number} was restarted")
        for number, server in enumerate(self.cluster.servers, 1):
            server.kill()
            self.steady(f"server {number} was killed")
            server.start()
            self.steady(f"server {number} runs again")
        for number, member in enumerate(self.cluster.etcd.members, 1):
            member.kill()
            self.steady(f"member {number} of etcd was killed")
            self.cluster.etcd.start_stopped_members()
            self.steady(f"member {number} of etcd runs again")
        self.finish()

    def steady(self, text: str) -> None:
        """Print what happened, wait, and require that writes are acknowledged."""
        print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
        before, deadline = self.record.counts["acknowledged writes"], time.monotonic() + LIMIT
        time.sleep(self.options.steady)
        while self.record.counts["acknowledged writes"] < before + 2 * OBJECTS:
            if time.monotonic() > deadline:
                self.record.fail("outages", f"no writes for {LIMIT:.0f} s after: {text}")
                return
            time.sleep(0.05)

    def finish(self) -> None:
        """Stop the clients; check all writes and watches."""
        for client in (*self.writers, *self.readers):
            client.stopping.set()
        for client in (*self.writers, *self.readers):
            client.join(2 * LIMIT)
            if client.is_alive():
                self.record.fail("outages", f"{client.name} does not end")
        final = Reader(self.record, self._first._choose, self.cluster.context(), self.cluster.token, "final")
        final._list(self.record.values())
        missing = self._missing()
        deadline = time.monotonic() + LIMIT
        while missing and time.monotonic() < deadline:
            time.sleep(0.2)
            missing = self._missing()
        for text in missing:
            self.record.fail("watch problems", text)
        for watcher in self.watchers:
            watcher.stopping.set()
        problems = self.cluster.logs()
        if problems:
            self.record.fail("tracebacks", problems)

    def _missing(self) -> list[str]:
        history = self.record.history()
        found = []
        for watcher in self.watchers:
            late = [f"{name}={value}" for name, value in history if (name, value) not in watcher.seen]
            if late:
                found.append(f"{watcher.name} has not received {len(late)} writes, such as {late[0]}")
        return found

    def report(self) -> bool:
        """Print the result; returns whether the run succeeded."""
        counts = self.record.counts
        print(f"reads: {counts['reads']}, failed after retries: {counts['failed reads']}")
        print(
            f"acknowledged writes: {counts['acknowledged writes']}, lost: {counts['lost writes']},"
            f" failed after retries: {counts['failed writes']}"
        )
        print(
            f"events: {counts['events']} of {len(self.watchers)} watches,"
            f" {counts['interrupted watches']} interruptions, problems: {counts['watch problems']}"
        )
        print(f"retries: {counts['retries']}; longest repeated request: {self.record.longest:.1f} s")
        print(*self.record.failures[:20], sep="\n")
        return not self.record.failures


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steady", type=float, default=5, help="seconds of load after each event")
    parser.add_argument("--haproxy", action="store_true", help="connect through HAProxy")
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--watchers", type=int, default=4)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and print the report."""
    options = parse(argv)
    if etcd_skip_reason():
        sys.exit(f"ha: {etcd_skip_reason()}")
    if options.haproxy and not shutil.which("haproxy"):
        sys.exit("ha: haproxy is not on PATH")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kubetwist-ha-")))
        cluster = Cluster(folder, stack)
        port = stack.enter_context(load_balancer(folder, cluster)) if options.haproxy else None
        run = Run(cluster, options, port)
        run.go()
        return 0 if run.report() else 1


if __name__ == "__main__":
    sys.exit(main())
