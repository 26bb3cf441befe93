"""Tests of one server that aggregates another one, over HTTP/2 by default."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from .kubelet.conftest import connections, until
from .test_controllers import events

GROUP = "far.example.com"
PATH = f"/apis/{GROUP}/v1/things"
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
SIZE = 50_000
COUNT = 40


@pytest.fixture
def front(start_server: Callable[..., SubprocessServer]) -> SubprocessServer:
    """The aggregator."""
    return start_server("--controllers=", "--allow-loopback-proxy")


def aggregated(front: SubprocessServer, start_server: Callable[..., SubprocessServer], *flags: str) -> SubprocessServer:
    """Start a server with a custom resource, and register it at the aggregator."""
    back = start_server(
        f"--requestheader-client-ca-file={front.kubeconfig.parent / 'pki' / 'front-proxy-ca.crt'}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        *flags,
    )
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    definition = {
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }
    done(back, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    until(lambda: back.request("GET", PATH)[0] == 200, "the custom resource")
    service = {"metadata": {"name": "far"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    done(front, "POST", "/api/v1/namespaces/default/services", service)
    registration = {
        "group": GROUP,
        "version": "v1",
        "groupPriorityMinimum": 1000,
        "versionPriority": 15,
        "service": {"namespace": "default", "name": "far", "port": port(back)},
        "insecureSkipTLSVerify": True,
    }
    done(front, "POST", APISERVICES, {"metadata": {"name": f"v1.{GROUP}"}, "spec": registration})
    until(lambda: front.request("GET", PATH)[0] == 200, "the aggregated resource")
    return back


def port(server: SubprocessServer) -> int:
    """Return the port of a server."""
    return int(server.url.rpartition(":")[2])


def done(server: SubprocessServer, method: str, path: str, body: Any = None) -> Any:
    """Return the answer to a request that succeeds."""
    code, answer = server.request(method, path, body)
    assert code in (200, 201), answer
    return answer


def thing(name: str) -> dict[str, Any]:
    """Return a large object."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Thing",
        "metadata": {"name": name},
        "spec": {"text": f"{name} " + "x" * SIZE},
    }


def test_requests(front: SubprocessServer, start_server: Callable[..., SubprocessServer]) -> None:
    """Objects, large lists and watches pass; all requests share few connections."""
    back = aggregated(front, start_server)
    for number in range(COUNT):
        assert done(front, "POST", PATH, thing(f"a{number}"))["metadata"]["name"] == f"a{number}"
    listed = done(front, "GET", PATH)
    assert len(listed["items"]) == COUNT
    assert listed == done(back, "GET", PATH)
    seen: list[list[str]] = [[] for _ in range(20)]

    def watch(names: list[str]) -> None:
        for event in events(front, PATH):
            if event["type"] != "BOOKMARK":
                names.append(event["object"]["metadata"]["name"])
            if names[-1:] == ["last"]:
                return

    watchers = [threading.Thread(target=watch, args=(names,)) for names in seen]
    for watcher in watchers:
        watcher.start()
    until(lambda: all(len(names) == COUNT for names in seen), "the existing objects in all watches")
    # One connection is for requests of users; discovery and the other checks of the aggregator have a few.
    assert connections(front, port(back)) < 10
    created = done(front, "POST", PATH, thing("b"))
    done(front, "PUT", f"{PATH}/b", created | {"spec": {"text": "short"}})
    done(front, "POST", PATH, thing("last"))
    for watcher in watchers:
        watcher.join()
    assert [names[COUNT:] for names in seen] == [["b", "b", "last"]] * len(seen)
    assert front.request("GET", f"{PATH}/missing")[0] == 404


def test_restart(front: SubprocessServer, start_server: Callable[..., SubprocessServer]) -> None:
    """Requests succeed again after the aggregated server has been killed and started on the same port."""
    back = aggregated(front, start_server)
    done(front, "POST", PATH, thing("a"))
    back.kill()
    assert front.request("GET", f"{PATH}/a")[0] == 503
    back.start()
    until(lambda: front.request("GET", f"{PATH}/a")[0] == 200, "the answer of the new process")


def test_http1(front: SubprocessServer, start_server: Callable[..., SubprocessServer]) -> None:
    """A server without HTTP/2 is aggregated over HTTP/1.1."""
    back = aggregated(front, start_server, "--disable-http2-serving")
    done(front, "POST", PATH, thing("a"))
    assert done(front, "GET", f"{PATH}/a") == done(back, "GET", f"{PATH}/a")
