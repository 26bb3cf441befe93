"""
Tests for objects that kube-apiserver has stored as protobuf: over a real etcd, encrypted, and in migrations to SQLite.

The stored data are created with another implementation of protobuf.
"""

from __future__ import annotations

import json
import os
import shutil
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason
from tests.schema.protobuf.test_encoding import (
    foreign,
    message,
)

from .test_etcd import ask, eventually, stored
from .test_migration import FLAGS, encryption, twist
from .test_twoservers import watched

pytestmark = pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason() or "etcd is there")

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
#: The key of L{encryption}.
KEY = bytes(range(32))

#: Types as generated.proto of the reference has them, as far as they are used here.
TYPES = (
    message("TypeMeta", ("apiVersion", 1, "string"), ("kind", 2, "string")),
    message(
        "Unknown",
        ("typeMeta", 1, ".t.TypeMeta"),
        ("raw", 2, "bytes"),
        ("contentEncoding", 3, "string"),
        ("contentType", 4, "string"),
    ),
    message("Time", ("seconds", 1, "int64"), ("nanos", 2, "int32")),
    message("Text", ("key", 1, "string"), ("value", 2, "string")),
    message("Octets", ("key", 1, "string"), ("value", 2, "bytes")),
    message(
        "ObjectMeta",
        ("name", 1, "string"),
        ("generateName", 2, "string"),
        ("namespace", 3, "string"),
        ("selfLink", 4, "string"),
        ("uid", 5, "string"),
        ("resourceVersion", 6, "string"),
        ("generation", 7, "int64"),
        ("creationTimestamp", 8, ".t.Time"),
        ("labels", 11, ".t.Text*"),
    ),
    message("ConfigMap", ("metadata", 1, ".t.ObjectMeta"), ("data", 2, ".t.Text*"), ("immutable", 4, "bool")),
    message("Secret", ("metadata", 1, ".t.ObjectMeta"), ("data", 2, ".t.Octets*"), ("type", 3, "string")),
    message("RangeAllocation", ("metadata", 1, ".t.ObjectMeta"), ("range", 2, "string"), ("data", 3, "bytes")),
)


def described(found: Any, name: str, uid: str = "") -> Any:
    """Add the metadata that kube-apiserver sets on every object."""
    meta = found.metadata
    meta.name, meta.namespace, meta.uid = name, "default", uid or f"uid-of-{name}"
    meta.generateName = meta.selfLink = meta.resourceVersion = ""
    meta.generation = 0
    meta.creationTimestamp.seconds, meta.creationTimestamp.nanos = 1_793_527_200, 0
    return found


def config_map(name: str, **data: str) -> Any:
    """Return a ConfigMap."""
    found = described(foreign("ConfigMap", *TYPES), name)
    for key, value in data.items():
        found.data.add(key=key, value=value)
    return found


def value_of(kind: str, found: Any) -> bytes:
    """Return the value that kube-apiserver would store."""
    envelope = foreign("Unknown", *TYPES)
    envelope.typeMeta.apiVersion, envelope.typeMeta.kind = "v1", kind
    envelope.raw = found.SerializeToString()
    envelope.contentEncoding = envelope.contentType = ""
    return b"k8s\0" + bytes(envelope.SerializeToString())


def read(value: bytes, kind: str) -> Any:
    """Return the object in a stored value."""
    assert value.startswith(b"k8s\0")
    envelope = foreign("Unknown", *TYPES)
    envelope.ParseFromString(value[4:])
    assert (envelope.typeMeta.apiVersion, envelope.typeMeta.kind) == ("v1", kind)
    found = foreign(kind, *TYPES)
    found.ParseFromString(envelope.raw)
    return found


def put(etcd: EtcdServer, key: str, value: bytes) -> None:
    """Write a value to etcd, as another server would."""
    ask(etcd, "put", key=f"/registry/{key}".encode(), value=value)


def is_protobuf(etcd: EtcdServer, name: str) -> bool:
    """Return whether a ConfigMap is stored as protobuf."""
    return stored(etcd, f"/registry/configmaps/default/{name}")[0].startswith(b"k8s\0")


@pytest.fixture
def etcd() -> Iterator[EtcdServer]:
    """An etcd of one member."""
    with EtcdServer() as etcd:
        yield etcd


def test_existing_objects(etcd: EtcdServer, start_server: Callable[..., SubprocessServer]) -> None:
    """Objects are read, listed, watched, changed and deleted as if they were JSON; damaged ones are reported."""
    for name in ("a", "b"):
        put(etcd, f"configmaps/default/{name}", value_of("ConfigMap", config_map(name, k=name)))
    whole = value_of("ConfigMap", config_map("c", k="c"))
    damaged = {"cut": whole[:-9], "kind": value_of("Secret", config_map("kind")), "huge": whole[:21] + b"\xff" * 9}
    for name, value in damaged.items():
        put(etcd, f"configmaps/strange/{name}", value)
    ports = described(foreign("RangeAllocation", *TYPES), "")
    ports.range, ports.data = "30000-32767", b"\x01"
    put(etcd, "ranges/servicenodeports", value_of("RangeAllocation", ports))
    server = start_server(f"--etcd-servers={etcd.urls[0]}", "--controllers=")
    code, found = server.request("GET", f"{CONFIG_MAPS}/a")
    assert code == 200
    revision = found["metadata"].pop("resourceVersion")
    meta = {"name": "a", "namespace": "default", "uid": "uid-of-a", "creationTimestamp": "2026-11-01T10:00:00Z"}
    assert found == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta, "data": {"k": "a"}}
    assert stored(etcd, "/registry/configmaps/default/a")[1] == int(revision)
    code, listed = server.request("GET", CONFIG_MAPS)
    assert {"a", "b"} <= {item["metadata"]["name"] for item in listed["items"]}
    for name in damaged:
        code, status = server.request("GET", f"/api/v1/namespaces/strange/configmaps/{name}")
        assert code == 500 and f"/registry/configmaps/strange/{name}" in status["message"], status
    # Watches receive the concurrent writes of another server.
    put(etcd, "configmaps/default/c", whole)
    eventually(lambda: server.request("GET", f"{CONFIG_MAPS}/c")[0] == 200)
    since = listed["metadata"]["resourceVersion"]
    events = watched(server, f"{CONFIG_MAPS}?watch=1&resourceVersion={since}&timeoutSeconds=1")
    assert [(one["type"], one["object"]["data"]) for one in events] == [("ADDED", {"k": "c"})]
    # A write converts the object to JSON.
    patch = {"content_type": "application/merge-patch+json"}
    code, changed = server.request("PATCH", f"{CONFIG_MAPS}/a", {"data": {"l": "new"}}, **patch)
    assert (code, changed["data"]) == (200, {"k": "a", "l": "new"})
    assert json.loads(stored(etcd, "/registry/configmaps/default/a")[0])["data"] == changed["data"]
    code, same = server.request("GET", f"{CONFIG_MAPS}/b")
    assert server.request("PUT", f"{CONFIG_MAPS}/b", same)[0] == 200
    assert not is_protobuf(etcd, "b") and is_protobuf(etcd, "c")
    assert server.request("DELETE", f"{CONFIG_MAPS}/c")[0] == 200
    assert server.request("GET", f"{CONFIG_MAPS}/c")[0] == 404
    # Allocated ports are decoded.
    service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30000}]}}
    code, status = server.request("POST", "/api/v1/namespaces/default/services", service)
    assert code == 422 and "provided port is already allocated" in status["message"]
    assert "Traceback" not in server.output()


def test_mixed_servers(etcd: EtcdServer, start_server: Callable[..., SubprocessServer]) -> None:
    """
    A server that writes protobuf and one that writes JSON serve the same objects; custom resources are always JSON.
    """
    where = (f"--etcd-servers={etcd.urls[0]}", "--controllers=")
    one = start_server(*where, f"--storage-media-type={MEDIA_TYPE}")
    code, created = one.request("POST", CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert code == 201
    found = read(stored(etcd, "/registry/configmaps/default/a")[0], "ConfigMap")
    assert (found.metadata.name, found.metadata.uid) == ("a", created["metadata"]["uid"])
    assert [(entry.key, entry.value) for entry in found.data] == [("k", "v")]
    assert not found.HasField("immutable") and found.metadata.HasField("resourceVersion")
    names = {"plural": "swans", "kind": "Swan"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "birds.example", "scope": "Cluster", "names": names, "versions": [version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert one.request("POST", definitions, {"metadata": {"name": "swans.birds.example"}, "spec": spec})[0] == 201
    swan = {"kind": "Swan", "apiVersion": "birds.example/v1", "metadata": {"name": "s"}}
    eventually(lambda: one.request("POST", "/apis/birds.example/v1/swans", swan)[0] in (201, 409))
    for key in ("birds.example/swans/s", "apiextensions.k8s.io/customresourcedefinitions/swans.birds.example"):
        assert json.loads(stored(etcd, f"/registry/{key}")[0])["metadata"]["name"]
    other = start_server(*where)
    assert other.request("GET", f"{CONFIG_MAPS}/a") == (200, created)
    created["data"] = {"k": "w"}
    code, changed = other.request("PUT", f"{CONFIG_MAPS}/a", created)
    assert code == 200 and not is_protobuf(etcd, "a")
    eventually(lambda: one.request("GET", f"{CONFIG_MAPS}/a") == (200, changed))
    assert one.request("PUT", f"{CONFIG_MAPS}/a", changed)[0] == 200
    assert is_protobuf(etcd, "a")
    for server in (one, other):
        assert "Traceback" not in server.output()


def test_encrypted_and_migrated(etcd: EtcdServer, tmp_path: Path) -> None:
    """
    Encrypted values are decrypted first; a migration to SQLite changes no value, and the objects are served from there.
    """
    secret = described(foreign("Secret", *TYPES), "s")
    secret.data.add(key="k", value=b"hunter2")
    secret.type = "Opaque"
    nonce, place = os.urandom(12), b"/registry/secrets/default/s"
    sealed = AESGCM(KEY).encrypt(nonce, value_of("Secret", secret), place)
    put(etcd, "secrets/default/s", b"k8s:enc:aesgcm:v1:key1:" + nonce + sealed)
    put(etcd, "configmaps/default/a", value_of("ConfigMap", config_map("a", k="v")))
    data = tmp_path / "data"
    flags = (*FLAGS, f"--encryption-provider-config={encryption(tmp_path)}")
    over_etcd = (f"--etcd-servers={etcd.urls[0]}", f"--storage-media-type={MEDIA_TYPE}")

    def objects(server: SubprocessServer) -> list[Any]:
        found = []
        for path in (f"{CONFIG_MAPS}/a", "/api/v1/namespaces/default/secrets/s"):
            code, one = server.request("GET", path)
            assert code == 200, one
            del one["metadata"]["resourceVersion"]
            found.append(one)
        return found

    with SubprocessServer(*flags, *over_etcd, data_dir=data) as server:
        before = objects(server)
        assert b64decode(before[1]["data"]["k"]) == b"hunter2"
        body = {"metadata": {"name": "t"}, "data": {"k": "dg=="}}
        assert server.request("POST", "/api/v1/namespaces/default/secrets", body)[0] == 201
    value, _ = stored(etcd, "/registry/secrets/default/t")
    start = b"k8s:enc:aesgcm:v1:key1:"
    assert value.startswith(start)
    value = value[len(start) :]
    plain = AESGCM(KEY).decrypt(value[:12], value[12:], b"/registry/secrets/default/t")
    assert read(plain, "Secret").data[0].value == b"v"
    again = tmp_path / "again"
    moved = twist("kubeapi-migrate", f"--from-etcd-servers={etcd.urls[0]}", f"--to-data-dir={again}")
    assert moved.returncode == 0, moved.stderr
    shutil.copytree(data / "pki", again / "pki")
    with SubprocessServer(*flags, data_dir=again) as server:
        assert objects(server) == before
        code, changed = server.request("PUT", f"{CONFIG_MAPS}/a", {**before[0], "data": {"k": "w"}})
        assert (code, changed["data"]) == (200, {"k": "w"})
        assert "Traceback" not in server.output()
