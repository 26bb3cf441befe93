"""Tests for the Node and RBAC authorizers and NodeRestriction in a real server over the embedded store."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from .conftest import Kubectl

API = "/apis/rbac.authorization.k8s.io/v1"
ADMIN = {"Authorization": "Bearer admin"}
BOB = {"Authorization": "Bearer bob"}
KUBELET = {**ADMIN, "Impersonate-User": "system:node:one", "Impersonate-Group": "system:nodes"}


class Caller:
    """A client with a persistent connection."""

    def __init__(self, server: SubprocessServer) -> None:
        connection = server.connection
        self._connection = HTTPSConnection("127.0.0.1", connection.port, context=connection.ssl_context(), timeout=30)

    def __call__(self, headers: dict[str, str], method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and the decoded body of a response."""
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = None if body is None else json.dumps(body)
        self._connection.request(method, path, data, {**headers, "Content-Type": content})
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SubprocessServer]:
    """A server with the authorizers of a cluster."""
    tokens = tmp_path_factory.mktemp("tokens") / "tokens.csv"
    tokens.write_text('admin,admin,1,"system:masters"\nbob,bob,2\n')
    with SubprocessServer("--enable-admission-plugins=NodeRestriction", token_auth_file=tokens) as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


def create(call: Caller, path: str, obj: Any, headers: dict[str, str] = ADMIN) -> Any:
    """Create an object."""
    code, answer = call(headers, "POST", path, obj)
    assert code in (201, 409), answer  # a controller may have been faster
    return answer


def test_prompt(guarded: SubprocessServer) -> None:
    """Each of many concurrent clients can use a namespace, role or binding as soon as its creation is acknowledged."""
    clients, rounds = 8, 8
    barrier = threading.Barrier(clients)

    def one(number: int) -> list[int]:
        call, codes = Caller(guarded), []
        barrier.wait(30)
        for turn in range(rounds):
            namespace = f"prompt-{number}-{turn}"
            create(call, "/api/v1/namespaces", {"metadata": {"name": namespace}})
            maps = f"/api/v1/namespaces/{namespace}/configmaps"
            codes.append(call(BOB, "GET", maps)[0])
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maps"}
            subjects = [{"kind": "User", "name": "bob"}]
            bound = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": subjects}
            rules = [{"verbs": ["list", "create"], "apiGroups": [""], "resources": ["configmaps"]}]
            create(call, f"{API}/namespaces/{namespace}/rolebindings", bound)
            create(call, f"{API}/namespaces/{namespace}/roles", {"metadata": {"name": "maps"}, "rules": rules})
            codes.append(call(BOB, "GET", maps)[0])
            codes.append(call(BOB, "POST", maps, {"metadata": {"name": "x"}})[0])
            call(ADMIN, "DELETE", f"{API}/namespaces/{namespace}/rolebindings/b")
            codes.append(call(BOB, "GET", maps)[0])
        return codes

    with ThreadPoolExecutor(clients) as pool:
        for codes in pool.map(one, range(clients)):
            assert codes == [403, 200, 201, 403] * rounds


def test_kubelet(guarded: SubprocessServer) -> None:
    """A kubelet registers its node, runs the pods bound to it, and cannot read objects that its pods do not need."""
    call = Caller(guarded)
    create(call, "/api/v1/namespaces", {"metadata": {"name": "work"}})
    create(call, "/api/v1/namespaces/work/serviceaccounts", {"metadata": {"name": "default"}})
    for name in ("needed", "other"):
        create(call, "/api/v1/namespaces/work/secrets", {"metadata": {"name": name}})
    create(call, "/api/v1/nodes", {"metadata": {"name": "one"}}, KUBELET)
    code, answer = call(KUBELET, "POST", "/api/v1/nodes", {"metadata": {"name": "two"}})
    assert (code, answer["message"]) == (
        403,
        'nodes "two" is forbidden: node "one" is not allowed to modify node "two"',
    )
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "x"}
    for path in ("/api/v1/nodes/one", "/api/v1/nodes/one/status"):
        code, answer = call(KUBELET, "PATCH", path, {"metadata": {"ownerReferences": [owner]}})
        assert (code, answer["message"]) == (
            403,
            'nodes "one" is forbidden: node "one" is not allowed to modify ownerReferences',
        )
    secrets = "/api/v1/namespaces/work/secrets"
    unrelated = "no relationship found between node 'one' and this object"
    code, answer = call(KUBELET, "GET", f"{secrets}/needed")
    assert code == 403
    assert answer["message"].endswith(unrelated)
    container = {"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "needed"}}]}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
    created = create(call, "/api/v1/namespaces/work/pods", pod)
    create(
        call,
        "/api/v1/namespaces/work/pods/p/binding",
        {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "one"}},
    )
    assert call(KUBELET, "GET", f"{secrets}/needed")[0] == 200
    assert call(KUBELET, "GET", f"{secrets}?fieldSelector=metadata.name%3Dneeded")[0] == 200
    assert call(KUBELET, "GET", f"{secrets}/other")[0] == 403
    assert call(KUBELET, "GET", "/api/v1/pods")[0] == 403
    code, answer = call(KUBELET, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Done")
    assert [one["metadata"]["name"] for one in answer["items"]] == ["p"]
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": created["metadata"]["uid"]}
    token = "/api/v1/namespaces/work/serviceaccounts/default/token"
    create(call, token, {"spec": {"boundObjectRef": reference}}, KUBELET)
    code, answer = call(KUBELET, "POST", token, {"spec": {"audiences": ["bank"], "boundObjectRef": reference}})
    assert code == 403
    assert 'audience "bank" not found in pod spec volume' in answer["message"]
    code, _ = call(KUBELET, "PATCH", "/api/v1/namespaces/work/pods/p/status", {"status": {"phase": "Running"}})
    assert code == 200
    code, _ = call(KUBELET, "DELETE", "/api/v1/namespaces/work/pods/p?gracePeriodSeconds=0")
    assert code == 200
    assert call(KUBELET, "GET", f"{secrets}/needed")[0] == 403


@pytest.mark.kubectl
def test_why(guarded: SubprocessServer, home: Path) -> None:
    """kubectl prints why a user may not do something, for people and for programs."""
    kubectl = Kubectl(guarded.kubeconfig, "default", home)
    query = "/kubetwist/v1/why?user=bob&verb=list&resource=deployments&namespace=default"
    text = kubectl("get", "--raw", f"{query}&output=text")
    assert text.startswith('User "bob" with groups ["system:authenticated"] may not "list" the resource')
    assert "rule" in text.partition("Nearest misses:")[2]
    answer = json.loads(kubectl("get", "--raw", query))
    assert answer["asked"]["apiGroup"] == "apps"
    assert answer["allowed"] is False
    assert {"binding"} <= {miss["missing"] for miss in answer["nearMisses"]}
