"""Informers over HTTP/2 run through a rolling restart of two servers on one etcd."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason

from .http2client import Http2Client
from .test_twoservers import AdvertisedServer, eventually

pytestmark = pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason() or "etcd is there")

NAMESPACE = "/api/v1/namespaces/default"
#: The resources that are written, and those that are only watched.
WRITTEN = ("configmaps", "secrets")
QUIET = ("services", "pods")
#: Writes before each restart, and after it.
WRITES = 30

#: Type of the event, name and value of the object.
Change = tuple[str, str, str]


class Balancer:
    """Connects clients to the first server that accepts a connection; a server is taken out before it stops."""

    def __init__(self, servers: list[AdvertisedServer]) -> None:
        self.servers = list(servers)

    def connect(self) -> Http2Client:
        """Return a new connection."""
        for server in list(self.servers):
            try:
                return Http2Client(server)
            except ConnectionError:
                continue
        raise AssertionError("no server accepts a connection")


class Reflector:
    """
    Lists and watches one resource, as client-go's reflector does.

    @ivar changes: All changes since the first list, in order.
    @ivar revision: The revision to watch from; empty before a list.
    @ivar failures: Everything but clean ends of watches.
    """

    def __init__(self, resource: str) -> None:
        self.path = f"{NAMESPACE}/{resource}"
        self.changes: list[Change] = []
        self.revision = ""
        self.failures: list[str] = []
        self.ends = 0
        self._known: dict[str, str] = {}
        self._listed = False
        self._connection: Http2Client | None = None
        self._stream = 0
        self._handled = 0

    @property
    def idle(self) -> bool:
        """Return whether no watch is open."""
        return self._connection is None

    def begin(self, connection: Http2Client) -> None:
        """List if there is no revision, and watch."""
        if not self.revision:
            status, found = connection.request("GET", self.path)
            assert status == 200, found
            self._replace({item["metadata"]["name"]: _value(item) for item in found["items"]})
            self.revision = found["metadata"]["resourceVersion"]
        self._connection = connection
        query = f"watch=true&allowWatchBookmarks=true&resourceVersion={self.revision}"
        self._stream = connection.start("GET", f"{self.path}?{query}")
        self._handled = 0

    def _replace(self, objects: dict[str, str]) -> None:
        """Compare a list with the known objects."""
        if self._listed:
            found = [("DELETED", name, value) for name, value in self._known.items() if name not in objects]
            for name, value in objects.items():
                if self._known.get(name) != value:
                    found.append(("MODIFIED" if name in self._known else "ADDED", name, value))
            self.changes += found
        self._listed = True
        self._known = objects

    def handle(self) -> None:
        """Handle what has arrived."""
        connection, stream = self._connection, self._stream
        if connection is None:
            return
        lines = bytes(connection.data[stream]).splitlines(keepends=True)
        complete = lines if not lines or lines[-1].endswith(b"\n") else lines[:-1]
        for line in complete[self._handled :]:
            self._event(json.loads(line))
        self._handled = len(complete)
        if stream in connection.ended:
            if connection.statuses[stream] != 200 or len(complete) < len(lines):
                self.failures.append(f"{connection.statuses[stream]}: {connection.data[stream]!r}")
            self.ends += 1
        elif stream in connection.resets:
            self.failures.append(f"reset with {connection.resets[stream]}")
        elif connection.closed:
            # A request that the server has not processed is repeated.
            if connection.goaway is None or stream <= connection.last_stream:
                self.failures.append("the connection was closed during the watch")
        else:
            return
        self._connection = None

    def _event(self, event: dict[str, Any]) -> None:
        kind, item = event["type"], event["object"]
        if kind == "ERROR":
            if item["code"] != 410:
                self.failures.append(f"{item}")
            self.revision = ""
            return
        metadata = item["metadata"]
        self.revision = metadata["resourceVersion"]
        if kind == "BOOKMARK":
            return
        self.changes.append((kind, metadata["name"], _value(item)))
        if kind == "DELETED":
            self._known.pop(metadata["name"], None)
        else:
            self._known[metadata["name"]] = _value(item)


def _value(item: dict[str, Any]) -> str:
    """Return the value that the writer has put into an object."""
    value: str = item["metadata"].get("annotations", {}).get("value", "")
    return value


class Worker(threading.Thread):
    """
    A client with one connection; it goes to another one after GOAWAY.

    @ivar failure: The exception that has ended it.
    """

    def __init__(self, balancer: Balancer) -> None:
        super().__init__()
        self.connection = balancer.connect()
        self.failure: BaseException | None = None
        self.connections = 1
        self._balancer = balancer
        self._stopped = threading.Event()

    def run(self) -> None:
        """Work until L{stop} is called."""
        try:
            while not self._stopped.is_set():
                if self.connection.closed or self.connection.goaway is not None:
                    self.reconnect()
                self.work()
        except BaseException as error:
            self.failure = error

    def reconnect(self) -> None:
        """Replace the connection."""
        self.connection = self._balancer.connect()
        self.connections += 1

    def work(self) -> None:
        """Do one step."""
        raise NotImplementedError

    def stop(self) -> None:
        """End, and raise the exception that has ended it before."""
        self._stopped.set()
        self.join(30)
        assert not self.is_alive()
        self.connection.close()
        if self.failure is not None:
            raise self.failure


class Informers(Worker):
    """Reflectors that share a connection."""

    def __init__(self, balancer: Balancer) -> None:
        super().__init__(balancer)
        self.reflectors = {resource: Reflector(resource) for resource in (*WRITTEN, *QUIET)}
        for reflector in self.reflectors.values():
            reflector.begin(self.connection)
        self._draining: list[Http2Client] = []

    def reconnect(self) -> None:
        """Replace the connection; open watches continue on the old one until the server ends them."""
        if not self.connection.closed:
            self._draining.append(self.connection)
        super().reconnect()

    def work(self) -> None:
        """Receive, and begin watches again that have ended."""
        for connection in (*self._draining, self.connection):
            if not connection.closed:
                connection.receive(0.02)
        for reflector in self.reflectors.values():
            reflector.handle()
        self._draining = [one for one in self._draining if not one.closed]
        if self.connection.closed or self.connection.goaway is not None:
            return
        for reflector in self.reflectors.values():
            if reflector.idle:
                reflector.begin(self.connection)


class Writer(Worker):
    """
    Creates, updates and deletes objects, one after the other.

    @ivar changes: The answered writes of each resource, in order.
    """

    def __init__(self, balancer: Balancer) -> None:
        super().__init__(balancer)
        self.changes: dict[str, list[Change]] = {resource: [] for resource in WRITTEN}
        self.written = 0

    def work(self) -> None:
        """Do one write."""
        step, number = self.written % 3, self.written // 3
        resource, name = WRITTEN[number % len(WRITTEN)], f"object-{number}"
        value = f"{step}"
        item = {"metadata": {"name": name, "annotations": {"value": value}}}
        if step == 0:
            kind, code, answer = "ADDED", *self.send("POST", f"{NAMESPACE}/{resource}", item)
        elif step == 1:
            kind, code, answer = "MODIFIED", *self.send("PUT", f"{NAMESPACE}/{resource}/{name}", item)
        else:
            kind, code, answer = "DELETED", *self.send("DELETE", f"{NAMESPACE}/{resource}/{name}", None)
            value = "1"
        assert code == (201 if step == 0 else 200), answer
        self.changes[resource].append((kind, name, value))
        self.written += 1

    def send(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Send a write; it is repeated if the server has not processed it, and only then."""
        while True:
            connection = self.connection
            stream = connection.start(method, path, body)
            while stream not in connection.ended and stream not in connection.resets and not connection.closed:
                connection.receive()
            if stream in connection.ended:
                return connection.statuses[stream], json.loads(bytes(connection.data[stream]))
            assert connection.goaway is not None and stream > connection.last_stream, f"{method} {path} has no answer"
            self.reconnect()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[AdvertisedServer]]:
    """Two servers over one etcd; the second has a copy of the keys of the first."""
    flags = ("--controllers=", "--shutdown-delay-duration=1s", "--authorization-mode=AlwaysAllow")
    with EtcdServer() as etcd:
        first = AdvertisedServer(etcd, "192.0.2.1", *flags, data_dir=tmp_path / "first")
        with first:
            ignored = shutil.ignore_patterns("kubetwist.pid", "*.kubeconfig")
            shutil.copytree(tmp_path / "first", tmp_path / "second", ignore=ignored)
            second = AdvertisedServer(etcd, "192.0.2.2", *flags, data_dir=tmp_path / "second")
            with second:
                yield [first, second]
                assert "Traceback" not in second.output(), second.output()
            assert "Traceback" not in first.output(), first.output()


def test_rolling_restart(servers: list[AdvertisedServer]) -> None:
    """A restart of one server after the other loses and repeats no event, and no write fails."""
    status, _ = servers[0].request("GET", NAMESPACE)
    if status == 404:
        assert servers[0].request("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})[0] == 201
    balancer = Balancer(servers)
    informers = [Informers(balancer) for _ in range(2)]
    balancer.servers.reverse()
    informers.append(Informers(balancer))
    writer = Writer(balancer)
    workers: list[Worker] = [*informers, writer]
    for worker in workers:
        worker.start()
    try:
        await_writes(writer)
        for server in servers:
            balancer.servers = [one for one in servers if one is not server]
            assert server.stop() == 0
            await_writes(writer)
            server.start()
            await_writes(writer)
            balancer.servers.append(server)
    finally:
        writer.stop()
        try:
            eventually(lambda: all(in_step(each, writer) for each in informers))
        finally:
            for each in informers:
                each.stop()
    for each in informers:
        assert each.connections >= 2
        for resource, reflector in each.reflectors.items():
            assert reflector.failures == []
            assert reflector.ends >= 1
            assert reflector.changes == writer.changes.get(resource, []), resource


def await_writes(writer: Writer) -> None:
    """Wait until some more writes are answered."""
    until = writer.written + WRITES
    eventually(lambda: writer.written >= until or writer.failure is not None)
    assert writer.failure is None, writer.failure


def in_step(informers: Informers, writer: Writer) -> bool:
    """Return whether informers have seen all writes, or have failed."""
    return informers.failure is not None or all(
        len(informers.reflectors[resource].changes) >= len(changes) for resource, changes in writer.changes.items()
    )
