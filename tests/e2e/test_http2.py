"""Tests of HTTP/2 over TLS, with clients that negotiate it by ALPN."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from kubetwist.testing import SubprocessServer

from .http2client import Http2Client, connect_tls

#: MAX_CONCURRENT_STREAMS of RFC 9113.
MAX_STREAMS = 3
#: Fields of the connection, and those that differ between any two responses.
OTHER_FIELDS = ("connection", "transfer-encoding", "audit-id", "date")


@pytest.fixture
def http2(server: SubprocessServer) -> Iterator[httpx.Client]:
    """A client that offers HTTP/2."""
    with make_client(server, True) as client:
        yield client


def make_client(server: SubprocessServer, http2: bool) -> httpx.Client:
    """Return a client of a server that offers HTTP/2, or HTTP/1.1 only."""
    return httpx.Client(
        base_url=server.connection.url,
        http2=http2,
        verify=server.connection.ssl_context(),
        headers={"Authorization": f"Bearer {server.token}", "Accept": "application/json"},
        timeout=20,
    )


@pytest.fixture
def connection(server: SubprocessServer) -> Iterator[Http2Client]:
    """One connection whose frames a test sees."""
    client = Http2Client(server)
    yield client
    client.close()


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_protocols(server: SubprocessServer) -> None:
    """The server chooses h2 if the client offers it, and HTTP/1.1 otherwise."""
    for offered, chosen in (
        (("h2", "http/1.1"), "h2"),
        (("http/1.1", "h2"), "h2"),
        (("h2",), "h2"),
        (("http/1.1",), "http/1.1"),
        ((), None),
    ):
        with connect_tls(server, *offered) as tls:
            assert tls.selected_alpn_protocol() == chosen


def test_max_streams(connection: Http2Client) -> None:
    """A connection may have 100 streams, as kube-apiserver announces."""
    connection.wait(lambda: connection.settings)
    assert connection.settings[MAX_STREAMS] == 100


def test_crud(http2: httpx.Client, namespace: str) -> None:
    """Create, get, list, patch, apply and delete work."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    responses = [
        http2.post(path, json=config_map("one", a="b")),
        http2.get(f"{path}/one"),
        http2.patch(f"{path}/one", json={"data": {"c": "d"}}, headers={"Content-Type": "application/merge-patch+json"}),
        http2.patch(
            f"{path}/two?fieldManager=test",
            json=config_map("two"),
            headers={"Content-Type": "application/apply-patch+yaml"},
        ),
        http2.get(path),
        http2.delete(f"{path}/one"),
        http2.get(f"{path}/one"),
    ]
    assert [one.http_version for one in responses] == ["HTTP/2"] * 7
    assert [one.status_code for one in responses] == [201, 200, 200, 201, 200, 200, 404]
    assert responses[2].json()["data"] == {"a": "b", "c": "d"}
    assert [item["metadata"]["name"] for item in responses[4].json()["items"]] == ["one", "two"]
    assert responses[6].json()["reason"] == "NotFound"


def test_same_as_http1(server: SubprocessServer, http2: httpx.Client, namespace: str) -> None:
    """Responses have the same status, fields and body as over HTTP/1.1."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    http2.post(path, json=config_map("one", a="b")).raise_for_status()
    requests: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("GET", f"{path}/one", {}),
        ("GET", f"{path}/one", {"headers": {"Accept": "application/yaml"}}),
        ("GET", f"{path}/one", {"headers": {"Accept": "application/vnd.kubernetes.protobuf"}}),
        ("GET", f"{path}?limit=1", {"headers": {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}}),
        ("HEAD", f"{path}/one", {}),
        ("OPTIONS", f"{path}/one", {}),
        ("GET", f"{path}/none", {}),
        ("GET", f"{path}?limit=x", {}),
        ("GET", f"{path}/one", {"headers": {"Accept": "text/nothing"}}),
        ("POST", path, {"json": config_map("one")}),
        ("POST", path, {"content": b"{", "headers": {"Content-Type": "application/json"}}),
        ("POST", path, {"content": b"x", "headers": {"Content-Type": "text/nothing"}}),
        ("PUT", f"{path}/one", {"json": config_map("two")}),
        ("GET", "/apis", {}),
        ("GET", "/api/v1", {}),
        ("GET", "/version", {}),
        ("GET", "/readyz?verbose", {}),
        ("GET", "/nowhere", {}),
        ("GET", "/api/v1/namespaces/default%2Fpods", {}),
        ("GET", "/openapi/v3", {}),
        ("GET", "/apis", {"headers": {"Authorization": "Bearer wrong"}}),
    )
    with make_client(server, False) as http1:
        for method, url, options in requests:
            first, second = http1.request(method, url, **options), http2.request(method, url, **options)
            assert (first.http_version, second.http_version) == ("HTTP/1.1", "HTTP/2")
            assert first.status_code == second.status_code, url
            fields = [
                sorted((name, value) for name, value in one.headers.multi_items() if name not in OTHER_FIELDS)
                for one in (first, second)
            ]
            assert fields[0] == fields[1], (method, url)
            assert first.content == second.content, (method, url)


def test_no_upgrades(server: SubprocessServer, http2: httpx.Client, namespace: str) -> None:
    """
    Requests for exec, attach and port-forward need an upgrade, which HTTP/2 lacks; they get the same errors as requests
    without it over HTTP/1.1, and proxied requests are forwarded.
    """
    status: dict[str, Any] = {"addresses": [{"type": "InternalIP", "address": "192.0.2.7"}]}
    http2.post("/api/v1/nodes", json={"metadata": {"name": namespace}, "status": status}).raise_for_status()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    containers = [{"name": "c", "image": "i"}]
    for name, spec in (("bound", {"nodeName": namespace}), ("pending", {})):
        http2.post(
            pods, json={"metadata": {"name": name}, "spec": {"containers": containers, **spec}}
        ).raise_for_status()
    errors = {
        "bound": (400, "BadRequest", "Upgrade request required"),
        "pending": (400, "BadRequest", "pod pending does not have a host assigned"),
        "missing": (404, "NotFound", 'pods "missing" not found'),
    }
    with make_client(server, False) as http1:
        for name, expected in errors.items():
            for subresource in ("exec?command=ls&stdout=true", "attach?stdout=true", "portforward?ports=80"):
                for method in ("GET", "POST"):
                    found = [one.request(method, f"{pods}/{name}/{subresource}") for one in (http1, http2)]
                    assert [one.http_version for one in found] == ["HTTP/1.1", "HTTP/2"]
                    assert found[0].content == found[1].content
                    answer = found[1].json()
                    assert (found[1].status_code, answer["reason"], answer["message"]) == expected, subresource
        found = [one.get(f"{pods}/pending/proxy/") for one in (http1, http2)]
        assert found[0].status_code == found[1].status_code == 400
        assert found[0].content == found[1].content


def test_large_list(server: SubprocessServer, http2: httpx.Client, namespace: str) -> None:
    """A list of megabytes, compressed or not, is the same as over HTTP/1.1."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(20):
        http2.post(path, json=config_map(f"one-{number}", a=f"{number}" * 40_000)).raise_for_status()
    with make_client(server, False) as http1:
        for encoding in ("identity", "gzip"):
            responses = [one.get(path, headers={"Accept-Encoding": encoding}) for one in (http1, http2)]
            assert len(responses[0].content) > 1_000_000
            assert responses[0].content == responses[1].content


def test_watches_on_one_connection(connection: Http2Client, namespace: str) -> None:
    """Many watches and the writes that they show share a connection."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    watches = [connection.start("GET", f"{path}?watch=true") for _ in range(60)]
    connection.wait(lambda: all(number in connection.statuses for number in watches))
    assert connection.request("POST", path, config_map("one"))[0] == 201
    assert connection.request("DELETE", f"{path}/one")[0] == 200
    connection.wait(lambda: all(len(connection.events(number)) == 2 for number in watches))
    for number in watches:
        assert [event["type"] for event in connection.events(number)] == ["ADDED", "DELETED"]
    assert not connection.ended.intersection(watches)


def test_cancelled_watch(connection: Http2Client, namespace: str) -> None:
    """A watch that the client cancels ends, and the connection continues."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for _ in range(120):
        number = connection.start("GET", f"{path}?watch=true")
        connection.wait(lambda number=number: number in connection.statuses)
        connection.h2.reset_stream(number, 8)
    assert connection.request("GET", path)[0] == 200
    assert connection.goaway is None


def test_streams(start_server: Callable[..., SubprocessServer]) -> None:
    """--http2-max-streams-per-connection limits the streams of a connection."""
    server = start_server("--http2-max-streams-per-connection=7")
    client = Http2Client(server)
    client.wait(lambda: client.settings)
    assert client.settings[MAX_STREAMS] == 7
    client.close()


def test_disabled(start_server: Callable[..., SubprocessServer]) -> None:
    """With --disable-http2-serving only HTTP/1.1 is served."""
    server = start_server("--disable-http2-serving")
    with connect_tls(server, "h2", "http/1.1") as tls:
        assert tls.selected_alpn_protocol() == "http/1.1"
    with make_client(server, True) as client:
        assert client.get("/version").http_version == "HTTP/1.1"


def test_unauthenticated(server: SubprocessServer) -> None:
    """A client without valid credentials has one request per connection: its answer is followed by GOAWAY."""
    client = Http2Client(server, "wrong")
    assert client.request("GET", "/api")[0] == 401
    client.wait(lambda: client.goaway is not None)
    assert client.goaway == 0
    client.wait_closed()


def test_goaway_chance(start_server: Callable[..., SubprocessServer]) -> None:
    """--goaway-chance ends connections after a response; open streams finish."""
    server = start_server("--goaway-chance=0.02")
    client = Http2Client(server)
    watch = client.start("GET", "/api/v1/namespaces?watch=true&timeoutSeconds=3")
    client.wait(lambda: watch in client.statuses)
    for _ in range(3000):
        if client.goaway is not None:
            break
        assert client.request("GET", "/version")[0] == 200
    assert client.goaway == 0
    client.wait(lambda: watch in client.ended)
    client.wait_closed()
    with make_client(server, True) as http2:
        assert {http2.get("/version").status_code for _ in range(300)} == {200}


def test_graceful_stop(start_server: Callable[..., SubprocessServer]) -> None:
    """A server that stops sends GOAWAY, ends watches without an error, and closes its connections."""
    server = start_server()
    client = Http2Client(server)
    watches = [client.start("GET", f"/api/v1/{resource}?watch=true") for resource in ("namespaces", "secrets", "pods")]
    client.wait(lambda: all(number in client.statuses for number in watches))
    with ThreadPoolExecutor(1) as pool:
        stopped = pool.submit(server.stop)
        client.wait(lambda: client.goaway is not None and set(watches) <= client.ended)
        assert (client.goaway, client.resets) == (0, {})
        client.wait_closed()
        assert stopped.result() == 0
    assert "Traceback" not in server.output()
