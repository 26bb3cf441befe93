"""Tests for cascading deletion of namespaces and owners, by kubectl and across kill -9."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from .conftest import Kubectl

CORE = "/api/v1/namespaces"
THINGS = "/apis/stable.example.com/v1/namespaces/{}/things"


def definition(plural: str = "things", kind: str = "Thing") -> dict[str, Any]:
    """Return a custom resource definition."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.stable.example.com"},
        "spec": {
            "group": "stable.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def reference(owner: dict[str, Any], version: str, kind: str, **more: Any) -> dict[str, Any]:
    """Return the owner reference of a dependent."""
    return {"apiVersion": version, "kind": kind, **{key: owner["metadata"][key] for key in ("name", "uid")}, **more}


def make(server: SubprocessServer, path: str, name: str, *owners: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """Create an object."""
    meta = {"name": name, "ownerReferences": list(owners), **parts.pop("metadata", {})}
    code, created = server.request("POST", path, {"metadata": meta, **parts})
    assert code == 201, created
    return dict(created)


def thing(server: SubprocessServer, namespace: str, name: str, *owners: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """Create a custom object."""
    kind = {"apiVersion": "stable.example.com/v1", "kind": "Thing"}
    return make(server, THINGS.format(namespace), name, *owners, **kind, **parts)


def names(server: SubprocessServer, path: str) -> list[str]:
    """Return the names of the objects, without the default objects of a namespace."""
    code, found = server.request("GET", path)
    assert code == 200, found
    return sorted(one["metadata"]["name"] for one in found["items"] if one["metadata"]["name"] != "kube-root-ca.crt")


def until(true: Callable[[], object], what: str) -> None:
    """Poll until a condition is true."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, f"waited in vain until {what}"


def define(server: SubprocessServer, **names: str) -> None:
    """Define a custom resource, and wait until it is served."""
    crd = definition(**names)
    code, created = server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    assert code in (201, 409), created
    path = THINGS.format("default").replace("things", crd["spec"]["names"]["plural"])
    until(lambda: server.request("GET", path)[0] == 200, "it is served")


@pytest.mark.kubectl
def test_namespace(server: SubprocessServer, kubectl: Kubectl) -> None:
    """`kubectl delete namespace` returns when the namespace and all its objects, also custom ones, are deleted."""
    define(server)
    name = kubectl.namespace
    for number in range(20):
        make(server, f"{CORE}/{name}/configmaps", f"m{number}")
        thing(server, name, f"t{number}")
    make(server, f"{CORE}/{name}/pods", "p", spec={"containers": [{"name": "c", "image": "i"}]})
    kubectl("delete", "namespace", name, "--wait", "--timeout=30s")
    assert server.request("GET", f"{CORE}/{name}")[0] == 404
    assert names(server, f"{CORE}/{name}/configmaps") == []
    assert names(server, THINGS.format(name)) == []


@pytest.mark.kubectl
def test_namespace_that_waits(server: SubprocessServer, kubectl: Kubectl) -> None:
    """A namespace whose objects have finalizers reports them in its status, and is deleted soon after them."""
    define(server)
    name = kubectl.namespace
    thing(server, name, "held", metadata={"finalizers": ["example.com/wait"]})
    kubectl("delete", "namespace", name, "--wait=false")
    kubectl("wait", "namespace", name, "--for=condition=NamespaceFinalizersRemaining", "--timeout=30s")
    [condition] = [
        one
        for one in kubectl.object("namespace", name)["status"]["conditions"]
        if one["type"] == "NamespaceContentRemaining"
    ]
    assert condition["message"] == "Some resources are remaining: things.stable.example.com has 1 resource instances"
    kubectl("patch", "thing", "held", "--type=merge", "-p", json.dumps({"metadata": {"finalizers": None}}))
    kubectl("wait", "namespace", name, "--for=delete", "--timeout=30s")


def tree(server: SubprocessServer, namespace: str) -> None:
    """Create a deployment with a replica set and pods, without workload controllers."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    apps = f"/apis/apps/v1/namespaces/{namespace}"
    web = make(server, f"{apps}/deployments", "web", spec={**spec, "paused": True})
    owner = reference(web, "apps/v1", "Deployment", blockOwnerDeletion=True, controller=True)
    replicas = make(server, f"{apps}/replicasets", "web-1", owner, spec=spec, metadata={"labels": labels})
    # Their labels match no controller.
    owner = reference(replicas, "apps/v1", "ReplicaSet", blockOwnerDeletion=True)
    for number in range(3):
        pod = {"spec": template["spec"], "metadata": {"labels": {"app": "other"}}}
        make(server, f"{CORE}/{namespace}/pods", f"web-1-{number}", owner, **pod)


@pytest.mark.kubectl
@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_cascade(server: SubprocessServer, kubectl: Kubectl, cascade: str) -> None:
    """`kubectl delete --cascade` deletes dependents before or after their owner, or orphans them."""
    tree(server, kubectl.namespace)
    kubectl("delete", "deployment", "web", f"--cascade={cascade}", "--timeout=30s")
    if cascade == "orphan":
        assert "ownerReferences" not in kubectl.object("replicaset", "web-1")["metadata"]
        assert len(names(server, f"{CORE}/{kubectl.namespace}/pods")) == 3
        return
    if cascade == "foreground":
        assert kubectl("get", "replicasets,pods", "-o", "name") == ""
    until(lambda: names(server, f"{CORE}/{kubectl.namespace}/pods") == [], "the pods are gone")
    assert kubectl("get", "replicasets", "-o", "name") == ""


def test_custom_owners(server: SubprocessServer, namespace: str) -> None:
    """Custom objects can be owners and dependents, also of resources that are defined later."""
    define(server)
    define(server, plural="parts", kind="Part")
    things, maps = THINGS.format(namespace), f"{CORE}/{namespace}/configmaps"
    parts = things.replace("/things", "/parts")
    a = thing(server, namespace, "a")
    kind = {"apiVersion": "stable.example.com/v1", "kind": "Part"}
    b = make(server, parts, "b", reference(a, "stable.example.com/v1", "Thing"), **kind)
    make(server, maps, "c", reference(b, "stable.example.com/v1", "Part"))
    server.request("DELETE", f"{things}/a")
    until(lambda: names(server, maps) == [] and names(server, parts) == [], "all are gone")


def test_killed_cascade(start_server: Callable[..., SubprocessServer]) -> None:
    """A cascading deletion that kill -9 interrupts is completed after the restart, also with custom resources."""
    server = start_server()
    define(server)
    things, maps = THINGS.format("default"), f"{CORE}/default/configmaps"
    owner = reference(make(server, maps, "owner"), "v1", "ConfigMap", blockOwnerDeletion=True)
    for number in range(100):
        middle = thing(server, "default", f"t{number}", owner)
        make(server, maps, f"m{number}", reference(middle, "stable.example.com/v1", "Thing", blockOwnerDeletion=True))
    for _ in range(2):
        server.request("DELETE", f"{maps}/owner", {"propagationPolicy": "Foreground"})
        until(lambda: len(names(server, maps)) < 100, "some are gone")
        server.kill()
        server.start()
    until(lambda: names(server, maps) == [] and names(server, things) == [], "all are gone")


def test_killed_namespace(start_server: Callable[..., SubprocessServer]) -> None:
    """The deletion of a namespace that kill -9 interrupts is completed after the restart."""
    server = start_server()
    define(server)
    make(server, CORE, "big")
    for number in range(100):
        make(server, f"{CORE}/big/configmaps", f"m{number}")
        thing(server, "big", f"t{number}")
    server.request("DELETE", f"{CORE}/big")
    until(lambda: len(names(server, f"{CORE}/big/configmaps")) < 100, "some are gone")
    server.kill()
    server.start()
    until(lambda: server.request("GET", f"{CORE}/big")[0] == 404, "the namespace is gone")
    assert names(server, f"{CORE}/big/configmaps") == []
    assert names(server, THINGS.format("big")) == []
