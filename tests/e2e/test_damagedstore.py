"""Tests for a damaged store: the server starts, and serves everything else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from kubetwist.testing import SubprocessServer

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(plural: str) -> dict[str, Any]:
    """Return a definition of one kind."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": plural.title()}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


def test_damaged_map(start_server: Callable[..., SubprocessServer]) -> None:
    """Objects with a lost encryption key or damaged data can be deleted through the API."""
    server = start_server("--storage-backend=sqlite", "--feature-gates=AllowUnsafeMalformedObjectDeletion=true")
    maps = "/api/v1/namespaces/default/configmaps"
    for name in ("kept", "lost"):
        assert server.request("POST", maps, {"metadata": {"name": name}})[0] == 201
    assert server.stop() == 0
    with sqlite3.connect(server.data_dir / "store.sqlite") as store:
        store.execute("UPDATE log SET value = ? WHERE key LIKE '%configmaps/default/lost'", (b"k8s:enc:aescbc:v1:k:x",))
    store.close()
    server.start()
    code, status = server.request("GET", maps)
    assert code == 500
    assert [one["field"] for one in status["details"]["causes"]] == ["/registry/configmaps/default/lost"]
    assert server.request("DELETE", f"{maps}/lost")[0] == 500
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "ignoreStoreReadErrorWithClusterBreakingPotential": True}
    assert server.request("DELETE", f"{maps}/lost", options)[0] == 200
    code, listed = server.request("GET", maps)
    assert code == 200
    assert "lost" not in [one["metadata"]["name"] for one in listed["items"]]


def test_damaged_definition(start_server: Callable[..., SubprocessServer]) -> None:
    """An unreadable definition can be deleted, and does not affect further definitions."""
    server = start_server("--storage-backend=sqlite")
    for plural in ("kites", "swans"):
        assert server.request("POST", DEFINITIONS, definition(plural))[0] == 201
    assert server.stop() == 0
    with sqlite3.connect(server.data_dir / "store.sqlite") as store:
        changed = store.execute("UPDATE log SET value = ? WHERE key LIKE '%swans.example.com'", (b"{damaged",)).rowcount
    store.close()
    assert changed
    server.start()
    kite = {"apiVersion": "example.com/v1", "kind": "Kites", "metadata": {"name": "k"}}
    assert server.request("POST", "/apis/example.com/v1/kites", kite)[0] == 201
    code, listed = server.request("GET", DEFINITIONS)
    assert (code, len(listed["items"])) == (200, 2)
    assert server.request("GET", "/openapi/v3/apis/example.com/v1")[0] == 200
    assert server.request("DELETE", f"{DEFINITIONS}/swans.example.com")[0] == 200
    assert "cannot decode stored CustomResourceDefinition: key=swans.example.com" in server.output()


def test_changed_bytes(start_server: Callable[..., SubprocessServer]) -> None:
    """An object whose bytes changed in the store to other valid JSON is unreadable and can be deleted."""
    server = start_server("--storage-backend=sqlite", "--feature-gates=AllowUnsafeMalformedObjectDeletion=true")
    maps = "/api/v1/namespaces/default/configmaps"
    for name in ("kept", "changed"):
        assert server.request("POST", maps, {"metadata": {"name": name}, "data": {"a": f"content of {name}"}})[0] == 201
    assert server.stop() == 0
    path = server.data_dir / "store.sqlite"
    path.write_bytes(path.read_bytes().replace(b"content of changed", b"content of chamged"))
    server.start()
    assert server.request("GET", f"{maps}/changed")[0] == 500
    assert server.request("GET", f"{maps}/kept")[1]["data"] == {"a": "content of kept"}
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "ignoreStoreReadErrorWithClusterBreakingPotential": True}
    assert server.request("DELETE", f"{maps}/changed", options)[0] == 200
    assert "changed" not in [one["metadata"]["name"] for one in server.request("GET", maps)[1]["items"]]
