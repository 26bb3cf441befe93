"""Tests for the real server on a real etcd: the stored data, and the responses while etcd is unavailable."""

from __future__ import annotations

import json
import time
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason

pytestmark = pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason() or "etcd is there")

both_transports = pytest.mark.parametrize("transport", ["grpc", "gateway"])

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def etcd() -> Iterator[EtcdServer]:
    """An etcd of one member."""
    with EtcdServer() as etcd:
        yield etcd


def ask(etcd: EtcdServer, path: str, **body: Any) -> dict[str, Any]:
    """Send a request to etcd."""
    data = {name: b64encode(value).decode() if isinstance(value, bytes) else value for name, value in body.items()}
    request = urllib.request.Request(f"{etcd.urls[0]}/v3/kv/{path}", json.dumps(data).encode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def stored(etcd: EtcdServer, key: str) -> tuple[bytes, int]:
    """Return a value in etcd, and its revision."""
    (found,) = ask(etcd, "range", key=key.encode())["kvs"]
    return b64decode(found["value"]), int(found["mod_revision"])


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"metadata": {"name": name}, "data": data}


def eventually(condition: Callable[[], Any]) -> Any:
    """Return the result of a condition as soon as it is true."""
    until = time.monotonic() + 30
    while not (found := condition()):
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.02)
    return found


@both_transports
def test_what_is_stored(etcd: EtcdServer, start_server: Callable[..., SubprocessServer], transport: str) -> None:
    """Keys and values equal those that kube-apiserver writes as JSON, and values of kube-apiserver are served."""
    theirs = (
        b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"theirs","namespace":"default",'
        b'"uid":"5b7e9c43-4dca-4a1b-9d3c-1e7f4c0ab7a1","creationTimestamp":"2026-11-01T10:00:00Z"},'
        b'"data":{"from":"kube-apiserver \\u003c1.36\\u003e"}}\n'
    )
    ask(etcd, "put", key=b"/registry/configmaps/default/theirs", value=theirs)
    server = start_server(f"--etcd-servers={etcd.urls[0]}", f"--etcd-transport={transport}")
    code, created = server.request("POST", CONFIG_MAPS, config_map("ours", a="b"))
    assert code == 201
    value, revision = stored(etcd, "/registry/configmaps/default/ours")
    assert str(revision) == created["metadata"]["resourceVersion"]
    assert value.startswith(b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{') and value.endswith(b"}\n")
    kept = json.loads(value)
    del created["metadata"]["resourceVersion"]
    assert kept == created
    code, found = server.request("GET", f"{CONFIG_MAPS}/theirs")
    assert (code, found["data"]) == (200, {"from": "kube-apiserver <1.36>"})
    # An older version of a kind is converted.
    scaler = {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "old", "namespace": "default", "uid": "5b7e9c43-4dca-4a1b-9d3c-1e7f4c0ab7a2"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "maxReplicas": 3,
            "targetCPUUtilizationPercentage": 50,
        },
    }
    ask(etcd, "put", key=b"/registry/horizontalpodautoscalers/default/old", value=json.dumps(scaler).encode())
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/old"
    code, found = eventually(lambda: (answer := server.request("GET", path))[0] == 200 and answer)
    assert found["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50


def test_unreadable_values(etcd: EtcdServer, start_server: Callable[..., SubprocessServer]) -> None:
    """Values in unreadable formats are reported, do not hide further objects, and are not changed."""
    values = {
        "proto": b"k8s\0\n\x0f\n\x02v1\x12\tConfig",
        "cbor": b"\xd9\xd9\xf7\xa0",
        "sealed": b"k8s:enc:aescbc:v1:k:x",
    }
    for name, value in values.items():
        ask(etcd, "put", key=f"/registry/configmaps/strange/{name}".encode(), value=value)
    server = start_server(f"--etcd-servers={etcd.urls[0]}")
    assert server.request("POST", CONFIG_MAPS, config_map("sound"))[0] == 201
    assert server.request("GET", CONFIG_MAPS)[0] == 200
    for name, reason in (("proto", "protobuf"), ("cbor", "CBOR"), ("sealed", "encrypted")):
        code, status = server.request("GET", f"/api/v1/namespaces/strange/configmaps/{name}")
        assert code == 500
        assert f"/registry/configmaps/strange/{name}" in status["message"] and reason in status["message"]
    code, status = server.request("GET", "/api/v1/configmaps")
    assert code == 500 and "/registry/configmaps/strange/cbor" in status["message"]
    for name, value in values.items():
        assert stored(etcd, f"/registry/configmaps/strange/{name}")[0] == value


def test_cbor(etcd: EtcdServer, start_server: Callable[..., SubprocessServer]) -> None:
    """Custom resources are stored as CBOR behind the feature gate, and read and rewritten by a server without it."""
    crd = {
        "metadata": {"name": "kites.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "kites", "kind": "Kite"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    kites, key = "/apis/example.com/v1/kites", "/registry/example.com/kites/a"
    server = start_server(f"--etcd-servers={etcd.urls[0]}", "--feature-gates=CBORServingAndStorage=true")
    assert server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)[0] == 201
    eventually(lambda: server.request("GET", kites)[0] == 200)
    kite = {"kind": "Kite", "apiVersion": "example.com/v1", "metadata": {"name": "a"}, "tail": [1, 2.5, "x", None]}
    code, created = server.request("POST", kites, kite)
    assert code == 201, created
    assert stored(etcd, key)[0].startswith(b"\xd9\xd9\xf7")
    assert server.stop() == 0
    server.start()
    assert server.request("GET", f"{kites}/a") == (200, created)
    other = start_server(f"--etcd-servers={etcd.urls[0]}")
    assert other.request("GET", f"{kites}/a") == (200, created)
    assert other.request("PUT", f"{kites}/a", created)[0] == 200
    assert stored(etcd, key)[0].startswith(b"{")


@both_transports
def test_lost_etcd(etcd: EtcdServer, start_server: Callable[..., SubprocessServer], transport: str) -> None:
    """While etcd is down, reads and watches continue and writes fail; afterwards everything works again."""
    server = start_server(f"--etcd-servers={etcd.urls[0]}", f"--etcd-transport={transport}")
    code, created = server.request("POST", CONFIG_MAPS, config_map("a", n="1"))
    assert code == 201
    etcd.members[0].kill()
    created["data"]["n"] = "2"
    code, status = server.request("PUT", f"{CONFIG_MAPS}/a", created)
    assert code == 500
    assert status["message"].startswith("rpc error: code = Unavailable desc = connection error:"), status
    assert server.request("GET", f"{CONFIG_MAPS}/a?resourceVersion=0")[0] == 200
    code, status = server.request("GET", "/readyz/etcd-readiness")
    assert code == 500
    etcd.start()
    eventually(lambda: server.request("GET", "/readyz/etcd-readiness")[0] == 200)
    code, changed = eventually(
        lambda: (answer := server.request("PUT", f"{CONFIG_MAPS}/a", created))[0] == 200 and answer
    )
    code, found = server.request("GET", f"{CONFIG_MAPS}/a")
    assert (code, found["data"]) == (200, {"n": "2"})
    assert found["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]
    assert "Traceback" not in server.output()


def test_too_large(etcd: EtcdServer, start_server: Callable[..., SubprocessServer]) -> None:
    """A request that is too large for etcd is rejected with etcd's message, and nothing is written."""
    server = start_server(f"--etcd-servers={etcd.urls[0]}")
    name = "/api/v1/namespaces/default/secrets"
    annotations = {f"a{number}": "x" * 1000 for number in range(240)}
    large = {"metadata": {"name": "large", "annotations": annotations}, "stringData": {"a": "x" * 1_030_000}}
    code, status = server.request("POST", name, large)
    assert (code, status["message"]) == (500, "etcdserver: request is too large")
    assert server.request("GET", f"{name}/large")[0] == 404


def test_events_expire(etcd: EtcdServer, start_server: Callable[..., SubprocessServer]) -> None:
    """Events expire after --event-ttl, by a lease of etcd."""
    server = start_server(f"--etcd-servers={etcd.urls[0]}", "--event-ttl=1s")
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "reason": "Test", "type": "Normal"}
    path = "/api/v1/namespaces/default/events"
    assert server.request("POST", path, event)[0] == 201
    (found,) = ask(etcd, "range", key=b"/registry/events/default/e").get("kvs") or [{"lease": "gone"}]
    assert found.get("lease")
    eventually(lambda: server.request("GET", f"{path}/e")[0] == 404)
