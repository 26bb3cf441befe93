"""Tests for cluster IPs and node ports under many concurrent clients: none is allocated twice, none is leaked."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from kubetwist.testing import SubprocessServer

PATH = "/api/v1/namespaces/default/services"
FLAGS = ("--service-cluster-ip-range=10.0.0.0/27", "--service-node-port-range=30000-30023")
#: 30 addresses, of which the kubernetes service has one.
ADDRESSES, PORTS, CLIENTS = 29, 24, 200

Answer = tuple[int, Any]


def service(name: str, kind: str = "NodePort") -> dict[str, Any]:
    """Return a service that requests an address and, depending on its type, a node port."""
    return {"metadata": {"name": name}, "spec": {"type": kind, "ports": [{"port": 80}]}}


def together(count: int, call: Callable[[int], Any]) -> list[Any]:
    """Return the results of concurrent calls."""
    barrier = threading.Barrier(count)

    def one(number: int) -> Any:
        barrier.wait(30)
        return call(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def send(server: SubprocessServer, services: list[dict[str, Any]]) -> list[Answer]:
    """Create these services concurrently."""
    return together(len(services), lambda number: server.request("POST", PATH, services[number]))


def listed(server: SubprocessServer) -> list[Any]:
    """Return all services except the kubernetes service."""
    code, answer = server.request("GET", PATH)
    assert code == 200, answer
    return [one for one in answer["items"] if one["metadata"]["name"] != "kubernetes"]


def delete_all(server: SubprocessServer) -> None:
    """Delete all services except the kubernetes service, concurrently."""
    names = [one["metadata"]["name"] for one in listed(server)]
    if names:
        codes = together(len(names), lambda number: server.request("DELETE", f"{PATH}/{names[number]}")[0])
        assert set(codes) == {200}


def check(server: SubprocessServer) -> None:
    """Check that no address and port is used twice, and that IPAddress objects match the services."""
    specs = {one["metadata"]["name"]: one["spec"] for one in listed(server)}
    addresses = [spec["clusterIP"] for spec in specs.values() if "clusterIP" in spec]
    assert len(addresses) == len(set(addresses)), addresses
    ports = [port["nodePort"] for spec in specs.values() for port in spec["ports"] if "nodePort" in port]
    ports += [spec["healthCheckNodePort"] for spec in specs.values() if "healthCheckNodePort" in spec]
    assert len(ports) == len(set(ports)), ports
    code, objects = server.request("GET", "/apis/networking.k8s.io/v1/ipaddresses")
    assert code == 200, objects
    held = {
        one["metadata"]["name"]: one["spec"]["parentRef"]["name"]
        for one in objects["items"]
        if one["spec"]["parentRef"]["name"] != "kubernetes"
    }
    assert held == {spec["clusterIP"]: name for name, spec in specs.items() if "clusterIP" in spec}


def fill(server: SubprocessServer, prefix: str) -> None:
    """Check that exactly as many services can be created as there are ports and addresses, so that none is leaked."""
    created = send(server, [service(f"{prefix}-n-{number}") for number in range(CLIENTS)])
    assert_answers(created, PORTS, "failed to allocate a nodePort: range is full")
    # Those that got an address but no port have given the address back.
    rest = send(server, [service(f"{prefix}-c-{number}", "ClusterIP") for number in range(16)])
    assert_answers(rest, ADDRESSES - PORTS, "failed to allocate a serviceIP for Service ")
    check(server)
    assert {one["spec"]["clusterIP"] for one in listed(server)} <= {f"10.0.0.{number}" for number in range(1, 31)}


def assert_answers(answers: list[Answer], good: int, message: str) -> None:
    """Check the number of successes, and that all further responses report exhausted ranges."""
    codes = [code for code, _ in answers]
    assert (codes.count(201), codes.count(500)) == (good, len(codes) - good), codes
    # Addresses and ports run out in either order while requests that will fail hold one of them for a moment.
    texts = {body["message"] for code, body in answers if code == 500}
    assert any(message in text for text in texts) and all("range is full" in text for text in texts), texts


def test_concurrent(start_server: Callable[..., SubprocessServer]) -> None:
    """200 clients that create and delete concurrently never share a number, and leak none."""
    server = start_server(*FLAGS)
    fill(server, "before")
    delete_all(server)
    #: Who had a number for sure, from when to when: between the answer to its create and its delete.
    held: dict[str, list[tuple[float, float]]] = {}
    lock = threading.Lock()

    def client(number: int) -> int:
        done = 0
        for turn in range(3):
            name = f"s-{number}-{turn}"
            code, created = server.request("POST", PATH, service(name))
            if code != 201:
                assert code == 500 and "range is full" in created["message"], created
                continue
            began = time.monotonic()
            spec = created["spec"]
            code, read = server.request("GET", f"{PATH}/{name}")
            assert (code, read["spec"]) == (200, spec)
            ended = time.monotonic()
            assert server.request("DELETE", f"{PATH}/{name}")[0] == 200
            done += 1
            with lock:
                for thing in (spec["clusterIP"], str(spec["ports"][0]["nodePort"])):
                    held.setdefault(thing, []).append((began, ended))
        return done

    assert sum(together(CLIENTS, client)) >= PORTS
    for thing, times in held.items():
        times.sort()
        for (_, ended), (began, _) in pairwise(times):
            assert ended <= began, f"{thing} was given twice"
    assert listed(server) == []
    check(server)
    fill(server, "after")


def test_changes(start_server: Callable[..., SubprocessServer]) -> None:
    """Concurrent changes of type, ports and addresses, dry runs and deletions of one service leak nothing."""
    server = start_server(*FLAGS)
    for number in range(8):
        assert server.request("POST", PATH, service(f"s-{number}"))[0] == 201
    chance = random.Random(8)
    two = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    specs: list[dict[str, Any]] = [
        {"type": "ClusterIP"},
        {"type": "NodePort"},
        {"type": "NodePort", "ports": two},
        {"type": "LoadBalancer", "externalTrafficPolicy": "Local"},
        {"type": "LoadBalancer", "externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": False},
        {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30007}]},
        {"type": "ExternalName", "externalName": "example.org", "clusterIP": None, "clusterIPs": None},
    ]
    work = [(chance.randrange(8), chance.choice(specs), chance.random()) for _ in range(CLIENTS)]

    def client(number: int) -> Answer:
        target, spec, kind = work[number]
        if kind < 0.1:
            return server.request("POST", f"{PATH}?dryRun=All", service(f"dry-{number}"))
        if kind < 0.15 and target:
            return server.request("DELETE", f"{PATH}/s-{target}")
        if kind < 0.25:
            return server.request("POST", PATH, service(f"s-{target}"))
        query, merge = "?dryRun=All" if kind < 0.4 else "", "application/merge-patch+json"
        return server.request("PATCH", f"{PATH}/s-{target}{query}", {"spec": spec}, content_type=merge)

    answers = together(CLIENTS, client)
    codes = {code for code, _ in answers}
    assert 200 in codes and codes <= {200, 201, 404, 409, 422, 500}, codes
    assert all("range is full" in answer["message"] for code, answer in answers if code == 500), answers
    check(server)
    code, kept = server.request("POST", PATH, {**service("kept"), "metadata": {"name": "kept", "finalizers": ["a/b"]}})
    assert code in (201, 500), kept
    if code == 201:
        assert server.request("DELETE", f"{PATH}/kept")[0] == 200
        check(server)
        patch = {"metadata": {"finalizers": None}}
        merge = "application/merge-patch+json"
        assert server.request("PATCH", f"{PATH}/kept", patch, content_type=merge)[0] == 200
    names = [one["metadata"]["name"] for one in listed(server)]
    codes = {code for code, _ in together(64, lambda n: server.request("DELETE", f"{PATH}/{names[n % len(names)]}"))}
    assert codes == {200, 404}
    assert listed(server) == []
    fill(server, "after")


def churn(server: SubprocessServer, prefix: str, killed: threading.Event, done: list[int], wrong: list[str]) -> None:
    """Create and delete services until the server is killed."""
    chance = random.Random(prefix)
    turn = 0
    while not killed.is_set():
        turn += 1
        name = f"{prefix}-{turn}"
        try:
            code, created = server.request("POST", PATH, service(name, chance.choice(("NodePort", "ClusterIP"))))
            if code == 201 and chance.random() < 0.8:
                code, created = server.request("DELETE", f"{PATH}/{name}")
        except (OSError, http.client.HTTPException, ValueError):
            return
        if code not in (200, 201) and "range is full" not in created.get("message", ""):
            wrong.append(f"{code} {created}")
            return
        done.append(code)


def test_kill(start_server: Callable[..., SubprocessServer], long: bool) -> None:
    """After kill -9 during creations and deletions, no number is used twice, and none is leaked."""
    rounds, clients = (20, CLIENTS) if long else (2, 40)
    server = start_server("--storage-backend=sqlite", *FLAGS)
    chance = random.Random(4)
    for number in range(rounds):
        killed, done, wrong = threading.Event(), [], []
        threads = [
            threading.Thread(target=churn, args=(server, f"r{number}-{one}", killed, done, wrong), daemon=True)
            for one in range(clients)
        ]
        for thread in threads:
            thread.start()
        expected = chance.randrange(50, 400)
        while len(done) < expected and any(thread.is_alive() for thread in threads):
            threads[0].join(0.002)
        server.kill()
        killed.set()
        for thread in threads:
            thread.join(60)
        assert not wrong, wrong
        server.start()
        check(server)
        # What was held before the kill is not given to anyone else.
        again = [service(f"r{number}-again-{one}") for one in range(64)]
        for code, created in send(server, again):
            assert code == 201 or "range is full" in created["message"], created
        check(server)
        delete_all(server)
        check(server)
        fill(server, f"r{number}")
        delete_all(server)
