"""Tests for C{--workers}: a storage process and its fronts behave like one server, also when one of them is killed."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer
from kubetwist.testing._process import ServerNotReady
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason

MAPS = "/api/v1/namespaces/default/configmaps"
JSON = {"Content-Type": "application/json"}


class Client:
    """A connection to one front."""

    def __init__(self, server: SubprocessServer) -> None:
        self.token = server.connection.token
        self.client = http.client.HTTPSConnection(
            "127.0.0.1", server.connection.port, context=server.connection.ssl_context(), timeout=60
        )
        self.client.connect()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send a request, and return the status and the decoded body."""
        response = self.respond(method, path, body, **headers)
        content = response.read()
        try:
            return response.status, json.loads(content)
        except ValueError:
            return response.status, content.decode()

    def respond(self, method: str, path: str, body: Any = None, **headers: str) -> http.client.HTTPResponse:
        """Send a request, and return the response, whose body is not read."""
        content = None if body is None else json.dumps(body)
        authentication = {} if "Cookie" in headers else {"Authorization": f"Bearer {self.token}"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.client.request(method, path, content, {**JSON, **authentication, **named})
        return self.client.getresponse()

    def front(self) -> int:
        """Return the id of the process at the other end."""
        local, remote = self.client.sock.getsockname()[1], self.client.sock.getpeername()[1]
        inode = ""
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(f":{remote:04X}") and fields[2].endswith(f":{local:04X}"):
                inode = fields[9]
        for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
            try:
                if os.readlink(descriptor) == f"socket:[{inode}]":
                    return int(descriptor.parts[2])
            except OSError:
                continue
        raise AssertionError("no process has the connection")

    def close(self) -> None:
        """Close the connection."""
        self.client.close()


@contextmanager
def connected(server: SubprocessServer, count: int = 2) -> Iterator[list[Client]]:
    """Open connections to different fronts."""
    clients = [Client(server) for _ in range(count)]
    try:
        # A front has its connection once it has answered.
        for client in clients:
            assert client.ask("GET", "/version")[0] == 200
        assert len({client.front() for client in clients}) == count
        yield clients
    finally:
        for client in clients:
            client.close()


def eventually(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Return the result of a condition as soon as it is true."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "the condition is not true in time"
        time.sleep(0.02)
    return found


def children(pid: int) -> set[int]:
    """Return the ids of the processes that a process has started."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.add(int(status.parts[2]))
    return found


def command_lines() -> list[bytes]:
    """Return the command lines of all processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes())
    return found


def config_map(name: str, **data: str) -> Any:
    """Return a config map."""
    return {"metadata": {"name": name}, "data": data}


@pytest.fixture(scope="module")
def server() -> Iterator[SubprocessServer]:
    """A server with two fronts."""
    with SubprocessServer("--workers=2", timeout=120) as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


def test_reads_after_writes(server: SubprocessServer) -> None:
    """An object that was written at one front can be read, changed and deleted at the other one at once."""
    with connected(server) as (one, other):
        for number in range(20):
            name = f"written-{number}"
            code, created = one.ask("POST", MAPS, config_map(name))
            assert code == 201, created
            code, found = other.ask("GET", f"{MAPS}/{name}")
            assert (code, found["metadata"]["resourceVersion"]) == (200, created["metadata"]["resourceVersion"])
            assert other.ask("PUT", f"{MAPS}/{name}", {**found, "data": {"a": "b"}})[0] == 200
            assert one.ask("GET", f"{MAPS}/{name}")[1]["data"] == {"a": "b"}
            assert one.ask("DELETE", f"{MAPS}/{name}")[0] == 200
            assert other.ask("GET", f"{MAPS}/{name}")[0] == 404


def test_watch(server: SubprocessServer) -> None:
    """A watch at one front has the writes of the other one, in their order."""
    with connected(server) as (one, other):
        revision = one.ask("GET", MAPS)[1]["metadata"]["resourceVersion"]
        watch = one.respond("GET", f"{MAPS}?watch=1&resourceVersion={revision}&timeoutSeconds=60")
        names = [f"watched-{number}" for number in range(30)]
        for name in names:
            assert other.ask("POST", MAPS, config_map(name))[0] == 201
        events = [json.loads(watch.readline()) for _ in names]
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
            ("ADDED", name) for name in names
        ]


def test_balance(server: SubprocessServer) -> None:
    """Connections of one client are divided equally among the fronts, and again after some were closed."""
    clients = [Client(server) for _ in range(8)]
    try:
        for client in clients:
            client.ask("GET", "/version")
        fronts = [client.front() for client in clients]
        assert sorted(fronts.count(pid) for pid in set(fronts)) == [4, 4]
        crowded = [client for client in clients if client.front() == fronts[0]]
        for client in crowded[:3]:
            client.close()
            clients.remove(client)

        def moved() -> bool:
            # The front has reported the ends when a new connection goes to it.
            client = Client(server)
            clients.append(client)
            client.ask("GET", "/version")
            return client.front() == fronts[0]

        eventually(moved)
    finally:
        for client in clients:
            client.close()


def test_ready(server: SubprocessServer) -> None:
    """A front has the health lines of one process, and the log has one line when all fronts are ready."""
    with connected(server) as clients:
        for client in clients:
            code, text = client.ask("GET", "/readyz?verbose")
            assert code == 200 and "[+]poststarthook/rbac/bootstrap-roles ok" in text, text
            assert "[+]etcd ok" in text and "[+]poststarthook/bootstrap-controller ok" in text, text
    assert len(re.findall(r"\] ready$", server.output(), re.M)) == 1


def test_metrics(server: SubprocessServer) -> None:
    """Each front returns the sum of the metrics of all processes, and one request resets all."""

    def count(client: Client) -> int:
        lines = client.ask("GET", "/metrics")[1].splitlines()
        pattern = re.compile(r'apiserver_request_total\{verb="GET",.*resource="nodes",.*code="200"\} (\d+)')
        return sum(int(found[1]) for found in map(pattern.match, lines) if found)

    def limit(client: Client) -> int:
        line = re.search(
            r'apiserver_flowcontrol_nominal_limit_seats\{priority_level="workload-low"\} (\d+)',
            client.ask("GET", "/metrics")[1],
        )
        assert line is not None
        return int(line[1])

    with connected(server) as (one, other):
        assert one.ask("DELETE", "/metrics")[0] == 200
        for number in range(5):
            assert (one if number else other).ask("GET", "/api/v1/nodes/missing")[0] == 404
        for client in (one, one, other):
            assert client.ask("GET", "/api/v1/nodes?limit=1")[0] == 200
        # The metrics of a request are written when its response was sent.
        assert one.ask("GET", "/version")[0] == other.ask("GET", "/version")[0] == 200
        text = one.ask("GET", "/metrics")[1]
        missing = re.findall(r'apiserver_request_total\{verb="GET",.*resource="nodes",.*code="404"\} (\d+)', text)
        assert missing == ["5"]
        assert set(re.findall(r'process_open_fds\{worker="(\w+)"\}', text)) == {"storage", "1", "2"}
        # 600 seats of the server, of which this level has 100 of 245 shares.
        assert limit(one) == limit(other) == 246


def test_verbosity(server: SubprocessServer) -> None:
    """The verbosity is set in all processes."""
    with connected(server) as (one, other):
        assert one.ask("PUT", "/debug/flags/v", 3)[0] == 200
        assert other.ask("GET", "/api/v1/nodes/logged")[0] == 404
        eventually(lambda: re.search(r'worker=\d\] "HTTP" verb="GET" URI="/api/v1/nodes/logged"', server.output()))
        assert other.ask("PUT", "/debug/flags/v", 0)[0] == 200


def test_session(server: SubprocessServer) -> None:
    """A session of the page begins with a link at one front, is valid at the other one, and ends at both."""
    link = re.search(r"#sign-in=(\S+)", server.output())
    assert link is not None
    page = {"X_Kubetwist_UI": "1", "Sec_Fetch_Site": "same-origin"}
    with connected(server) as (one, other):
        response = one.respond("POST", "/ui/session", {"link": link[1]}, **page)
        assert response.status == 201
        key = json.loads(response.read())["key"]
        cookie = (response.getheader("Set-Cookie") or "").partition(";")[0]
        session = {"Cookie": cookie, "X_Kubetwist_UI": key, "Sec_Fetch_Site": "same-origin"}
        for client in (one, other):
            code, review = client.ask(
                "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {"kind": "SelfSubjectReview"}, **session
            )
            assert (code, review["status"]["userInfo"]["username"]) == (201, "kubernetes-admin")
        # The link is used up at both fronts.
        assert other.ask("POST", "/ui/session", {"link": link[1]}, **page)[0] == 401
        assert other.ask("DELETE", "/ui/session", **session)[0] == 204
        for client in (one, other):
            assert client.ask("GET", MAPS, **session)[0] == 401


def test_definitions(server: SubprocessServer) -> None:
    """A custom resource that is defined at one front is served by both."""
    definition = {
        "metadata": {"name": "things.workers.example.com"},
        "spec": {
            "group": "workers.example.com",
            "names": {"plural": "things", "kind": "Thing"},
            "scope": "Cluster",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    path = "/apis/workers.example.com/v1/things"
    with connected(server) as (one, other):
        assert one.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)[0] == 201
        for client in (one, other):
            eventually(lambda client=client: client.ask("GET", path)[0] == 200)
        thing = {"apiVersion": "workers.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
        assert one.ask("POST", path, thing)[0] == 201
        assert other.ask("GET", f"{path}/a")[0] == 200


def test_addresses(server: SubprocessServer) -> None:
    """Services that are created at both fronts at the same time have different addresses and node ports."""
    services = []
    path = "/api/v1/namespaces/default/services"
    with connected(server) as clients:

        def create(client: Client, number: int) -> None:
            for index in range(15):
                service = {"metadata": {"name": f"s{number}-{index}"}, "spec": {"ports": [{"port": 80}]}}
                code, created = client.ask("POST", path, {**service, "spec": {**service["spec"], "type": "NodePort"}})
                assert code == 201, created
                services.append(created)

        threads = [Thread(target=create, args=(client, number)) for number, client in enumerate(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(services) == 30
    assert len({one["spec"]["clusterIP"] for one in services}) == 30
    assert len({one["spec"]["ports"][0]["nodePort"] for one in services}) == 30


def test_killed_front(server: SubprocessServer) -> None:
    """A front that is killed is started again; no acknowledged write is lost, and the other front serves on."""
    acknowledged: list[str] = []
    stopped = Event()

    def write(client: Client, prefix: str) -> None:
        number = 0
        while not stopped.is_set():
            name = f"{prefix}-{number}"
            try:
                code, _ = client.ask("POST", MAPS, config_map(name))
            except (OSError, http.client.HTTPException):
                return
            assert code == 201
            acknowledged.append(name)
            number += 1

    with connected(server) as (one, other):
        victim = one.front()
        writers = [Thread(target=write, args=(client, name)) for client, name in ((one, "one"), (other, "other"))]
        for writer in writers:
            writer.start()
        eventually(lambda: len(acknowledged) > 50)
        os.kill(victim, signal.SIGKILL)
        writers[0].join()
        count = len(acknowledged)
        eventually(lambda: len(acknowledged) > count + 20)
        eventually(lambda: "is ready again" in server.output())
        stopped.set()
        writers[1].join()
    with connected(server) as clients:
        for client in clients:
            found = {item["metadata"]["name"] for item in client.ask("GET", MAPS)[1]["items"]}
            assert set(acknowledged) <= found
    assert victim not in children(server.pid) and len(children(server.pid)) == 2


def test_files(tmp_path: Path) -> None:
    """Workers encrypt values, and log all requests to one audit log, which they rotate."""
    keys = tmp_path / "encryption.yaml"
    keys.write_text(
        "{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, resources: [{resources: [configmaps],"
        " providers: [{aesgcm: {keys: [{name: a, secret: c2VjcmV0IGlzIHNlY3VyZQ==}]}}]}]}"
    )
    policy, log = tmp_path / "policy.yaml", tmp_path / "audit.log"
    policy.write_text("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse}]}")
    with (
        SubprocessServer(
            "--workers=2",
            "--in-memory",
            f"--encryption-provider-config={keys}",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={log}",
            "--audit-log-mode=blocking",
            "--audit-log-maxsize=1",
            timeout=120,
        ) as server,
        connected(server) as clients,
    ):
        for number in range(60):
            assert clients[number % 2].ask("POST", MAPS, config_map(f"large-{number}", text="x" * 20_000))[0] == 201
        for client in clients:
            found = {item["metadata"]["name"] for item in client.ask("GET", MAPS)[1]["items"]}
            assert {f"large-{number}" for number in range(60)} <= found
        lines = [json.loads(line) for path in tmp_path.glob("audit*.log") for line in path.read_text().splitlines()]
        created = [line for line in lines if (line["verb"], line["stage"]) == ("create", "ResponseComplete")]
        names = [line["responseObject"]["metadata"]["name"] for line in created]
        assert sorted(names) == sorted(f"large-{number}" for number in range(60))
        assert len(list(tmp_path.glob("audit-*.log"))) >= 2
        assert "Traceback" not in server.output(), server.output()


@pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason() or "etcd is there")
def test_etcd() -> None:
    """Workers share one connection to etcd, and agree with another server that uses it without workers."""
    with (
        EtcdServer() as etcd,
        SubprocessServer("--workers=2", f"--etcd-servers={etcd.urls[0]}", timeout=120) as server,
        SubprocessServer(f"--etcd-servers={etcd.urls[0]}", timeout=120) as plain,
        connected(server) as (one, other),
    ):
        revision = one.ask("GET", MAPS)[1]["metadata"]["resourceVersion"]
        watch = one.respond("GET", f"{MAPS}?watch=1&resourceVersion={revision}&timeoutSeconds=60")
        for number in range(10):
            assert other.ask("POST", MAPS, config_map(f"shared-{number}"))[0] == 201
        events = [json.loads(watch.readline()) for _ in range(10)]
        assert [event["object"]["metadata"]["name"] for event in events] == [f"shared-{n}" for n in range(10)]
        for number in range(10):
            assert plain.request("POST", MAPS, config_map(f"plain-{number}"))[0] == 201
            assert other.ask("DELETE", f"{MAPS}/plain-{number}")[0] == 200
            assert plain.request("GET", f"{MAPS}/plain-{number}")[0] == 404
        assert "Traceback" not in server.output(), server.output()


def test_killed_storage_process(tmp_path: Path) -> None:
    """Fronts end when the storage process is killed, with one line each; a restart has all acknowledged writes."""
    with SubprocessServer("--workers=2", data_dir=tmp_path / "data", timeout=120) as server:
        with connected(server) as clients:
            for number in range(40):
                assert clients[number % 2].ask("POST", MAPS, config_map(f"kept-{number}"))[0] == 201
        fronts = children(server.pid)
        assert len(fronts) == 2
        server.kill()
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in fronts), 20)
        assert server.output().count("the storage process has ended: this worker ends, too") == 2
        server.start()
        with connected(server) as clients:
            for client in clients:
                found = {item["metadata"]["name"] for item in client.ask("GET", MAPS)[1]["items"]}
                assert {f"kept-{number}" for number in range(40)} <= found
        fronts = children(server.pid)
        assert server.stop() == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in fronts)
        assert "Traceback" not in server.output(), server.output()


def test_graceful_stop(tmp_path: Path) -> None:
    """A stop finishes watches and requests, and /readyz fails before, as in one process; no process is left."""
    codes: list[int] = []
    with SubprocessServer("--workers=2", "--shutdown-delay-duration=3s", timeout=120) as server:
        with connected(server) as clients:
            watches = [client.respond("GET", f"{MAPS}?watch=1&timeoutSeconds=60") for client in clients]
            fronts = children(server.pid)
            stop = Thread(target=lambda: codes.append(server.stop()))
            stop.start()
            with connected(server) as later:
                for client in later:
                    eventually(lambda client=client: client.ask("GET", "/readyz")[0] == 500)
                    assert client.ask("GET", MAPS)[0] == 200
            for watch in watches:
                while watch.readline():
                    pass
        stop.join()
        assert codes == [0]
        assert not any(Path(f"/proc/{pid}").exists() for pid in fronts)
        assert "Traceback" not in server.output() and "this worker ends" not in server.output(), server.output()


def test_failed_start(tmp_path: Path) -> None:
    """A server whose storage cannot be opened ends with one line that names the reason, and leaves no process."""
    with SubprocessServer("--workers=2", data_dir=tmp_path / "data", timeout=120) as server:
        assert server.stop() == 0
        (server.data_dir / "store.sqlite").write_bytes(b"damaged" * 1000)
        server.log.write_bytes(b"")
        with pytest.raises(ServerNotReady, match="exit code 1\n"):
            server.start()
        lines = [line for line in server.output().splitlines() if line.startswith("twist kubeapi: ")]
        assert len(lines) == 1 and "cannot use the store" in lines[0], server.output()
        assert "Traceback" not in server.output(), server.output()
        arguments = f"--data-dir={server.data_dir}".encode()
        assert not any(arguments in line for line in command_lines())
