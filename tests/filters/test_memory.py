"""Tests of L{kubetwist.filters.memory}."""

from __future__ import annotations

from typing import Any

from kubetwist.filters import memory
from kubetwist.filters.requestinfo import with_request_info
from kubetwist.http.connection.bodyshares import MAX_BODY
from kubetwist.http.request import KubeRequest
from tests.http.connection.guardcase import MAPS, GuardCase
from tests.http.harness import Client, echo, make_site


class RequestTests(GuardCase):
    """Responses of a server with a memory guard."""

    def client(self, handle: Any = echo) -> Client:
        """Return a connection to a site with a guard."""
        sizes = {("", "pods"): (1000, 10_000), ("", "nodes"): (1, 1000)}
        handler = memory.with_memory_limit(handle, self.guard, lambda group, name: sizes.get((group, name)), MAX_BODY)
        site = make_site(with_request_info(handler))
        site.guard = self.guard
        return Client(site)

    def codes(self, client: Client, *requests: tuple[str, str, int]) -> list[int]:
        """Return the status codes of requests with bodies of these sizes."""
        return [client.request(method, path, b"x" * size).code for method, path, size in requests]

    def test_shed(self) -> None:
        """Large requests are refused first, then writes, then all but health checks."""
        client = self.client()
        requests = (
            ("POST", MAPS, 1_000_000),
            ("GET", "/api/v1/pods", 0),
            ("POST", MAPS, 100),
            ("GET", "/api/v1/nodes", 0),
            ("GET", f"{MAPS}/a", 0),
            ("DELETE", f"{MAPS}/a", 0),
            ("GET", "/livez", 0),
        )
        for used, expected in (
            (100, [200] * 7),
            (920, [429, 200, 200, 200, 200, 200, 200]),
            (933, [429, 429, 200, 200, 200, 200, 200]),
            (940, [429, 429, 429, 200, 200, 200, 200]),
            (990, [429, 429, 429, 429, 429, 429, 200]),
        ):
            self.use(used)
            refused = self.guard.refused
            self.assertEqual(self.codes(client, *requests), expected, used)
            self.assertEqual(self.guard.refused - refused, expected.count(429))
        answer = client.request("POST", MAPS, b"x")
        self.assertEqual((answer.code, answer.header("retry-after")), (429, "1"))

    def test_lists(self) -> None:
        """A JSON list needs memory for some objects at a time; other encodings need memory for the whole list."""
        client = self.client()
        self.use(930)
        answers = [client.request("GET", "/api/v1/pods", Accept=accept).code for accept in ("", "application/yaml")]
        self.assertEqual(answers, [200, 429])

    def test_reserved_while_open(self) -> None:
        """The estimated memory of a request counts until it is answered."""
        waiting: list[KubeRequest] = []
        client = self.client(waiting.append)
        client.send(
            b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" % MAPS.encode() + b"x" * 1_000_000
        )
        self.assertEqual(self.guard.reserved, 64 * 1024 + 40 * 1_000_000)
        echo(waiting[0])
        self.assertEqual(self.guard.reserved, 0)

    def test_failed_allocation(self) -> None:
        """A request whose allocation fails is answered 503, with Retry-After, or aborted if its answer has begun."""

        def handle(request: KubeRequest) -> None:
            if request.path.endswith(b"/begun"):
                request.write(b"half")
            raise MemoryError

        client = self.client(handle)
        answer = client.request("GET", f"{MAPS}/a")
        self.assertEqual((answer.code, answer.header("retry-after")), (503, "1"))
        self.assertIsNone(self.guard._ballast)
        client.send(f"GET {MAPS}/begun HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.assertNotIn(b"\r\n0\r\n", client.transport.value())
        self.assertTrue(client.transport.disconnecting)
