"""Tests of L{kubetwist.registry.core.service.store}: the order of errors of a service."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from tests.resources.server import Server

PATH = "/api/v1/namespaces/default/services"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


def service(name: str, **spec: Any) -> dict[str, Any]:
    """Return a service."""
    return {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80, "name": "a"}], **spec}}


class NumbersFirstTests(SynchronousTestCase):
    """Tests of the allocation before validation, as clients observe it."""

    def setUp(self) -> None:
        """Create a server, and a service with a node port."""
        self.server = Server("services", "ipaddresses")
        self.client = self.server.client()
        self.ask("POST", PATH, service("held", ports=[{"port": 80, "name": "a", "nodePort": 30001}]))

    def ask(self, method: str, path: str, body: Any, media: str = "application/json") -> tuple[int, Any, list[str]]:
        """Return status, body and warnings of a response."""
        answer = self.client.answer(method, path, body, Content_Type=media)
        return answer.code, orjson.loads(answer.body), answer.headers.get("warning", [])

    def test_warnings(self) -> None:
        """A service whose node port is in use causes no warnings; one that is invalid otherwise does."""
        taken = service("s", externalName="x.y", ports=[{"port": 80, "nodePort": 30001}])
        code, status, warnings = self.ask("POST", PATH, taken)
        self.assertEqual((code, warnings), (422, []))
        self.assertEqual(status["details"]["causes"][0]["field"], "spec.ports[0].nodePort")
        code, _, warnings = self.ask("POST", PATH, service("s", externalName="x.y"))
        self.assertEqual((code, len(warnings)), (201, 1))

    def test_port_in_use_and_invalid_label(self) -> None:
        """If a node port is in use and a label is invalid, only the former is reported, in creates and updates."""
        ports = [{"port": 80, "nodePort": 30001}]
        bad = service("s", ports=ports)
        bad["metadata"]["labels"] = {"a/b/c": ""}
        _, status, _ = self.ask("POST", PATH, bad)
        self.assertEqual([cause["field"] for cause in status["details"]["causes"]], ["spec.ports[0].nodePort"])
        self.ask("POST", PATH, service("s"))
        patch = {"metadata": {"labels": {"a/b/c": ""}}, "spec": {"ports": ports}}
        _, status, _ = self.ask("PATCH", f"{PATH}/s", patch, MERGE)
        self.assertEqual([cause["field"] for cause in status["details"]["causes"]], ["spec.ports[0].nodePort"])

    def test_duplicate(self) -> None:
        """A second port with the same node port and protocol is a 500 without a reason in every update."""
        port = {"name": "b", "port": 81, "nodePort": 30001}
        for method, body, media in (
            ("PATCH", [{"op": "add", "path": "/spec/ports/-", "value": port}], JSON_PATCH),
            ("PATCH", {"spec": {"ports": [{"port": 80, "name": "a", "nodePort": 30001}, port]}}, MERGE),
            ("PUT", service("held", ports=[{"port": 80, "name": "a", "nodePort": 30001}, port]), "application/json"),
        ):
            code, status, _ = self.ask(method, f"{PATH}/held", body, media)
            self.assertEqual((code, status["message"]), (500, "duplicate nodePort: {TCP 30001}"))
            self.assertNotIn("reason", status)

    def test_shared(self) -> None:
        """Ports with the same number share a node port, so a duplicate in a protocol is reported for both."""
        for requested, number in ((30500, 30500), (None, 32769)):
            ports = [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}, {"port": 80, "name": "c"}]
            if requested:
                ports[0]["nodePort"] = requested
            code, status, _ = self.ask("POST", PATH, service("s", ports=ports))
            self.assertEqual(422, code)
            causes = [(cause["field"], cause["message"][:22]) for cause in status["details"]["causes"]]
            expected = [
                ("spec.ports[2].nodePort", f"Duplicate value: {number}"),
                ("spec.ports[2]", 'Duplicate value: {"Nam'),
            ]
            self.assertEqual(expected, causes)

    def test_not_shared(self) -> None:
        """A duplicate port without a node port is reported once; the same port in several protocols is valid."""
        ports = [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]
        _, status, _ = self.ask("POST", PATH, service("s", type="ClusterIP", ports=ports))
        self.assertEqual(["spec.ports[1]"], [cause["field"] for cause in status["details"]["causes"]])
        ports[1]["protocol"] = "UDP"
        self.assertEqual(201, self.ask("POST", PATH, service("s", ports=ports))[0])

    def test_addresses(self) -> None:
        """Errors of addresses and families are reported alone."""
        patch = {"metadata": {"labels": {"a/b/c": ""}}, "spec": {"ipFamilies": ["x"]}}
        _, status, _ = self.ask("PATCH", f"{PATH}/held", patch, MERGE)
        self.assertEqual([cause["field"] for cause in status["details"]["causes"]], ["spec.ipFamilies[0]"])
