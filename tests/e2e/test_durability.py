"""Tests for durability: acknowledged writes survive a restart, and kill -9 during writes."""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections.abc import Callable

from kubetwist.testing import SubprocessServer

PATH = "/api/v1/namespaces/default/configmaps"


def test_restart(start_server: Callable[..., SubprocessServer]) -> None:
    """A restart keeps objects, versions, certificates and the kubeconfig."""
    server = start_server()
    code, before = server.request("POST", PATH, {"metadata": {"name": "kept"}, "data": {"k": "v"}})
    assert code == 201
    kubeconfig = server.kubeconfig.read_bytes()
    assert server.stop() == 0
    server.start()
    assert server.kubeconfig.read_bytes() == kubeconfig
    assert server.request("GET", f"{PATH}/kept") == (200, before)
    code, after = server.request("POST", PATH, {"metadata": {"name": "next"}})
    assert code == 201
    assert int(after["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])


class Writer(threading.Thread):
    """
    Client that creates and patches objects until the server is killed, and records acknowledged writes.

    @ivar done: The content and resourceVersion of the last acknowledged write, by name.
    @ivar begun: The content of the last sent write, by name.
    """

    def __init__(self, server: SubprocessServer, prefix: str, writes: int) -> None:
        super().__init__(daemon=True)
        self.server, self.prefix, self.writes = server, prefix, writes
        self.done: dict[str, tuple[int, int]] = {}
        self.begun: dict[str, int] = {}
        self.wrong: list[str] = []

    def run(self) -> None:
        """Write until a connection breaks, which happens only when the server ends."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.server.connection.port, context=self.server.connection.ssl_context(), timeout=30
        )
        headers = {"Authorization": f"Bearer {self.server.token}"}
        for number in range(self.writes):
            name = f"{self.prefix}-{number // 2}"
            self.begun[name] = number
            body = json.dumps({"metadata": {"name": name}, "data": {"number": str(number), "pad": "x" * 500}})
            try:
                if number % 2:
                    patch = {"Content-Type": "application/merge-patch+json"}
                    connection.request("PATCH", f"{PATH}/{name}", body, headers | patch)
                else:
                    connection.request("POST", PATH, body, headers | {"Content-Type": "application/json"})
                response = connection.getresponse()
                answer = json.loads(response.read())
            except (OSError, http.client.HTTPException, ValueError):
                return
            if response.status not in (200, 201):
                self.wrong.append(f"{response.status} {answer}")
                return
            self.done[name] = (number, int(answer["metadata"]["resourceVersion"]))


def test_kill(start_server: Callable[..., SubprocessServer], long: bool) -> None:
    """After kill -9 under concurrent writes every acknowledged write exists, none is torn, and revisions continue."""
    rounds, writers, writes = (20, 50, 100) if long else (3, 16, 100)
    server = start_server("--storage-backend=sqlite")
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    newest = 0
    for round_number in range(rounds):
        threads = [Writer(server, f"r{round_number}-w{number}", writes) for number in range(writers)]
        expected = chance.randrange(writers, writers * writes // 2)
        for thread in threads:
            thread.start()
        while sum(len(thread.done) for thread in threads) * 2 < expected and any(t.is_alive() for t in threads):
            threads[0].join(0.002)
        server.kill()
        for thread in threads:
            thread.join(30)
            assert not thread.wrong, thread.wrong
        server.start()
        code, listed = server.request("GET", PATH)
        assert code == 200
        found = {item["metadata"]["name"]: item for item in listed["items"]}
        for thread in threads:
            for name, (number, version) in thread.done.items():
                where = f"seed {seed}, round {round_number}, {name}"
                item = found.get(name)
                assert item is not None, f"{where}: an answered create is lost"
                stored = int(item["data"]["number"])
                assert number <= stored <= thread.begun[name], (
                    f"{where}: write {number} was answered, {stored} is there"
                )
                assert len(item["data"]["pad"]) == 500, where
                newest = max(newest, version)
        assert int(listed["metadata"]["resourceVersion"]) >= newest, f"seed {seed}: the clock went back"
        code, created = server.request("POST", PATH, {"metadata": {"generateName": "after-"}})
        assert code == 201
        assert int(created["metadata"]["resourceVersion"]) > newest, f"seed {seed}: a revision was given twice"
        newest = int(created["metadata"]["resourceVersion"])
