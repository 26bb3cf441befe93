"""Tests for the audit log of the real server, also after a crash."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

PATH = "/api/v1/namespaces/default/configmaps"
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- level: RequestResponse
  namespaces: [default]
  resources: [{group: "", resources: [configmaps]}]
- level: Metadata
  resources: [{group: "", resources: [secrets, endpoints]}]
"""
UNREACHABLE = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1/"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """Return the flags that enable an audit log."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    return [f"--audit-policy-file={tmp_path}/policy.yaml", f"--audit-log-path={tmp_path}/audit.log"]


def events(tmp_path: Path) -> list[dict[str, Any]]:
    """Return the events in the log."""
    return [json.loads(line) for line in (tmp_path / "audit.log").read_bytes().splitlines()]


def test_verbs(start_server: Callable[..., SubprocessServer], flags: list[str], tmp_path: Path) -> None:
    """Every verb is logged with its request and response; Secrets are logged with metadata only."""
    server = start_server(*flags)
    obj = {"metadata": {"name": "a"}, "data": {"k": "1"}}
    merge = "application/merge-patch+json"
    apply = "application/apply-patch+yaml"
    applied = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {k: '3'}\n"
    expected: list[tuple[str, int, Any]] = []

    def call(verb: str, method: str, path: str, body: Any, code: int, logged: Any, **more: Any) -> Any:
        expected.append((verb, code, logged))
        answered, value = server.request(method, path, body, **more)
        assert answered == code, value
        return value

    logged = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a", "namespace": "default"},
        "data": {"k": "1"},
    }
    call("create", "POST", PATH, obj, 201, {**logged, "metadata": {"name": "a"}})
    call("get", "GET", f"{PATH}/a", None, 200, None)
    call("update", "PUT", f"{PATH}/a", obj, 200, {**logged, "metadata": {"name": "a"}})
    call("patch", "PATCH", f"{PATH}/a", {"data": {"k": "2"}}, 200, {"data": {"k": "2"}}, content_type=merge)
    call(
        "patch",
        "PATCH",
        f"{PATH}/b?fieldManager=t",
        applied.encode(),
        201,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "3"}},
        content_type=apply,
    )
    call("list", "GET", PATH, None, 200, None)
    call(
        "delete",
        "DELETE",
        f"{PATH}/a",
        {"propagationPolicy": "Background"},
        200,
        {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal", "propagationPolicy": "Background"},
    )
    call("get", "GET", f"{PATH}/a", None, 404, None)
    call("deletecollection", "DELETE", PATH, None, 200, None)
    secret = {"metadata": {"name": "s"}, "stringData": {"password": "hidden-value"}}
    assert server.request("POST", "/api/v1/namespaces/default/secrets", secret)[0] == 201
    assert server.request("GET", "/api/v1/namespaces/default/endpoints")[0] == 200
    assert server.stop() == 0

    found = [
        event
        for event in events(tmp_path)
        if event["objectRef"]["resource"] == "configmaps" and event["objectRef"].get("namespace") == "default"
    ]
    received = [event for event in found if event["stage"] == "RequestReceived"]
    complete = [event for event in found if event["stage"] == "ResponseComplete"]
    assert [event["auditID"] for event in received] == [event["auditID"] for event in complete]
    seen = [(event["verb"], event["responseStatus"]["code"], event.get("requestObject")) for event in complete]
    assert seen == expected
    assert complete[0]["objectRef"]["name"] == "a", "the name that is in the object"
    kinds = [event["responseObject"]["kind"] for event in complete]
    assert kinds == ["ConfigMap"] * 5 + ["ConfigMapList", "Status", "Status", "ConfigMapList"]
    text = (tmp_path / "audit.log").read_text()
    assert "managedFields" not in text and "hidden-value" not in text and server.token not in text
    (kept,) = (
        event
        for event in events(tmp_path)
        if event["objectRef"]["resource"] == "secrets" and event["stage"] == "ResponseComplete"
    )
    assert kept["level"] == "Metadata" and "requestObject" not in kept
    deprecated = [
        event
        for event in events(tmp_path)
        if event["objectRef"]["resource"] == "endpoints"
        and event["stage"] == "ResponseComplete"
        and event["verb"] == "list"
    ]
    assert deprecated[-1]["annotations"]["k8s.io/deprecated"] == "true"


class Writer(threading.Thread):
    """Client that creates objects until the server is killed, and records the names of acknowledged ones."""

    def __init__(self, server: SubprocessServer, prefix: str) -> None:
        super().__init__(daemon=True)
        self.server, self.prefix = server, prefix
        self.done: list[str] = []

    def run(self) -> None:
        """Write until a connection breaks."""
        for number in range(10_000):
            name = f"{self.prefix}-{number}"
            try:
                code, _ = self.server.request("POST", PATH, {"metadata": {"name": name}})
            except OSError:
                return
            if code == 201:
                self.done.append(name)


def test_kill(start_server: Callable[..., SubprocessServer], flags: list[str], tmp_path: Path, long: bool) -> None:
    """After kill -9 in blocking-strict mode the log has every acknowledged request with its response."""
    server = start_server(*flags, "--audit-log-mode=blocking-strict")
    answered: list[str] = []
    for round_number in range(10 if long else 2):
        writers = [Writer(server, f"r{round_number}-w{number}") for number in range(8)]
        for writer in writers:
            writer.start()
        while sum(len(writer.done) for writer in writers) < 40:
            writers[0].join(0.002)
        server.kill()
        for writer in writers:
            writer.join(30)
            answered += writer.done
        server.start()
    lines = (tmp_path / "audit.log").read_bytes().splitlines()
    logged = {}
    for line in lines:
        event = json.loads(line)
        if event["stage"] == "ResponseComplete" and event["verb"] == "create":
            logged[event["objectRef"].get("name")] = event["responseStatus"]["code"]
    assert len(answered) >= 80
    assert {name: logged.get(name) for name in answered} == dict.fromkeys(answered, 201)


def test_stop(start_server: Callable[..., SubprocessServer], flags: list[str], tmp_path: Path) -> None:
    """Buffered events are written when the server stops."""
    server = start_server(
        *flags, "--audit-log-mode=batch", "--audit-log-batch-max-size=1000", "--audit-log-batch-max-wait=1h"
    )
    for number in range(5):
        assert server.request("POST", PATH, {"metadata": {"name": f"n{number}"}})[0] == 201
    assert not (tmp_path / "audit.log").read_bytes()
    assert server.stop() == 0
    assert [event["verb"] for event in events(tmp_path)].count("create") >= 10


def test_dead_webhook(start_server: Callable[..., SubprocessServer], flags: list[str], tmp_path: Path) -> None:
    """An unreachable webhook delays neither requests nor, for long, the shutdown."""
    (tmp_path / "kubeconfig").write_text(UNREACHABLE)
    server = start_server(
        flags[0],
        f"--audit-webhook-config-file={tmp_path}/kubeconfig",
        "--audit-webhook-batch-max-size=1",
        "--audit-webhook-batch-buffer-size=10",
        "--audit-webhook-initial-backoff=1h",
    )
    for number in range(50):
        assert server.request("POST", PATH, {"metadata": {"name": f"n{number}"}})[0] == 201
    assert server.stop() == 0
    assert "Error in audit plugin 'buffered'" in server.output()
