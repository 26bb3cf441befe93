"""Tests for L{kubetwist.registry.connections}: where logs, streams and proxies lead, and where they can not."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import fail, succeed
from twisted.internet.error import DNSLookupError

from kubetwist.api.errors import APIStatusError
from kubetwist.registry.connections import Connection, check_log_options
from kubetwist.registry.parts import status_rules
from tests.registry.storetools import StoreTestCase
from tests.resources.server import pod


class Request:
    """A request, as far as these look at it."""

    def __init__(self, **query: str) -> None:
        self.query = {name: [value] for name, value in query.items()}
        self.answer: tuple[Any, ...] = ()

    def respond(self, *answer: Any) -> None:
        """Keep the answer."""
        self.answer = answer


class ConnectionTests(StoreTestCase):
    """Tests for L{Connection}."""

    resources = ("pods", "services", "endpoints", "nodes")

    def connection(self, resource: str, name: str) -> Connection:
        """One such subresource."""
        return Connection(self.store(resource).info, name, ("GET",), self.stores, subpaths=False)

    def why(self, resource: str, subresource: str, name: str, **query: str) -> tuple[int, str]:
        """Why it leads nowhere."""
        connection = self.connection(resource, subresource)
        error = self.refused(connection.connect(self.scope, name, "", Request(**query)))
        return error.code, error.message

    def test_no_node(self) -> None:
        """A pod that is nowhere has no streams, and its log is no content."""
        self.made(self.store("pods"), pod("p"))
        self.assertEqual(self.why("pods", "exec", "p"), (400, "pod p does not have a host assigned"))
        request = Request()
        connected = self.connection("pods", "log").connect(self.scope, "p", "", request)
        with self.assertRaises(StopIteration):
            connected.send(None)
        self.assertEqual(request.answer[:2], (204, b""))

    def test_containers(self) -> None:
        """A container is chosen among those that are there."""
        obj = pod("p")
        obj["spec"]["containers"].append({**obj["spec"]["containers"][0], "name": "other"})
        self.made(self.store("pods"), obj)
        self.assertEqual(self.why("pods", "log", "p", container="no")[1], "container no is not valid for pod p")
        self.assertIn("a container name must be specified for pod p", self.why("pods", "log", "p")[1])

    def test_log_options(self) -> None:
        """Limits are numbers that limit; a time to begin is given in one way."""
        error = self.assertRaises(
            APIStatusError, check_log_options, "p", {"tailLines": "-1", "sinceSeconds": "0", "limitBytes": "0"}
        )
        fields = [cause["field"] for cause in error.details["causes"]]
        self.assertEqual(fields, ["tailLines", "limitBytes", "sinceSeconds"])
        query = {"sinceSeconds": "1", "sinceTime": "2026-01-02T03:04:05Z"}
        error = self.assertRaises(APIStatusError, check_log_options, "p", query)
        self.assertEqual(error.details["causes"][0]["field"], "[]")
        error = self.assertRaises(APIStatusError, check_log_options, "p", {"tailLines": "x"})
        self.assertEqual(error.code, 400)
        error = self.assertRaises(APIStatusError, check_log_options, "p", {"stream": "Stdin"})
        self.assertEqual(error.details["causes"][0]["field"], "stream")
        check_log_options("p", {"tailLines": "0", "stream": "All"})

    def test_pod_proxy(self) -> None:
        """Pods without an address, or with one of this machine's own, are not reached."""
        pods = self.store("pods")
        self.made(pods, pod("p"))
        refused = (400, "address not allowed")
        self.assertEqual(self.why("pods", "proxy", "p:8080"), refused)
        for address in ("127.0.0.1", "169.254.169.254", "::1"):
            self.changed(
                pods, "p", lambda obj, address=address: obj["status"].update(podIP=address), rules=status_rules(pods)
            )
            self.assertEqual(self.why("pods", "proxy", "p"), refused)
        self.changed(pods, "p", lambda obj: obj["status"].update(podIP="10.1.2.3"), rules=status_rules(pods))
        self.assertEqual(self.why("pods", "proxy", "p")[0], 503)

    def test_service_proxy(self) -> None:
        """A service is reached by a port that it has, where somebody answers for it."""
        self.made(self.store("services"), {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
        self.assertEqual(self.why("services", "proxy", "https:s:99"), (503, 'no service port 99 found for service "s"'))
        self.assertEqual(self.why("services", "proxy", "s"), (404, 'services "s" not found'))
        self.assertEqual(self.why("services", "proxy", "gone:80")[0], 404)
        self.assertEqual(self.why("services", "proxy", "a:b:c:d"), (400, 'invalid service request "a:b:c:d"'))
        subset = {"notReadyAddresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}
        self.made(self.store("endpoints"), {"metadata": {"name": "s"}, "subsets": [subset]})
        self.assertEqual(self.why("services", "proxy", "s:80"), (503, 'no endpoints available for service "s:80"'))

    def test_node_proxy(self) -> None:
        """A node is looked for by the best of the addresses that it tells."""
        nodes = self.store("nodes")
        self.made(nodes, {"metadata": {"name": "n"}})
        code, message = self.why("nodes", "proxy", "n")
        self.assertEqual((code, message), (500, "no preferred addresses found; known addresses: []"))
        known = [{"type": "InternalIP", "address": "10.1.2.3"}, {"type": "Hostname", "address": "h"}]
        self.changed(nodes, "n", lambda obj: obj["status"].update(addresses=known), rules=status_rules(nodes))
        asked: list[str] = []
        answers = [fail(DNSLookupError("h")), succeed("127.0.0.1"), succeed("10.9.9.9")]

        def resolve(host: str) -> Any:
            asked.append(host)
            return answers.pop(0)

        self.stores.reactor.resolve = resolve  # type: ignore[attr-defined]
        self.assertEqual(self.why("nodes", "proxy", "n"), (400, "lookup h: no such host"))
        self.assertEqual(self.why("nodes", "proxy", "n"), (400, "address not allowed"))
        self.assertEqual(self.why("nodes", "proxy", "n")[0], 503)
        self.assertEqual(asked, ["h", "h", "h"])
