"""Plugins have the same outcomes in L{AdmissionHarness} and in a server."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing.admission import AdmissionHarness
from tests.resources.server import Server, config_map
from tests.testing.admission.test_harness import Plugin, label, refuse

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "blue"}}}


def fail(attributes: Any) -> None:
    """Fail unexpectedly."""
    raise KeyError("k")


def move(attributes: Any) -> None:
    """Move the object to another namespace."""
    attributes.object["metadata"]["namespace"] = "other"


def spoil(attributes: Any) -> None:
    """Make the object invalid."""
    attributes.object["data"] = {"not a key": ""}


def change(attributes: Any) -> None:
    """Change the object."""
    attributes.object["data"] = {}


class ParityTests(SynchronousTestCase):
    """One case, in both."""

    def check(self, code: int, **plugin: Any) -> None:
        """Create and update an object with a plugin in a harness and by requests to a server."""
        server = Server("configmaps", "namespaces")
        client = server.client()
        client.ask("POST", "/api/v1/namespaces", NAMESPACE)
        path = "/api/v1/namespaces/default/configmaps"
        client.ask("POST", path, config_map("old", k="v"))
        server.admit(Plugin(**plugin))
        harness = AdmissionHarness(Plugin(**plugin), objects=[NAMESPACE, config_map("old", k="v")])
        for method, target, obj, review in (
            ("POST", path, config_map("a", k="v"), harness.create),
            ("PUT", f"{path}/old", config_map("old", k="w"), harness.update),
        ):
            got, body = client.ask(method, target, obj)
            outcome = review(obj)
            self.flushLoggedErrors()
            if outcome.allowed:
                self.assertEqual((got, code), (201 if method == "POST" else 200, 200))
                assert outcome.stored is not None
                for name in ("data", "metadata"):
                    self.assertEqual(self.comparable(outcome.stored[name]), self.comparable(body[name]))
            else:
                self.assertEqual((got, outcome.code), (code, code))
                self.assertEqual(outcome.status, body)

    def comparable(self, value: dict[str, Any]) -> dict[str, Any]:
        """Remove fields that differ in all writes."""
        server_set = ("uid", "resourceVersion", "managedFields", "creationTimestamp")
        return {name: part for name, part in value.items() if name not in server_set}

    def test_allowed(self) -> None:
        """Allowed requests are stored with the same changes."""
        self.check(200)
        self.check(200, admit=label)

    def test_rejected(self) -> None:
        """Rejected requests have the same status."""
        self.check(403, validate=refuse)
        self.check(403, admit=refuse)

    def test_failed(self) -> None:
        """Plugins that fail have the same status."""
        self.check(500, admit=fail)
        self.check(500, validate=fail)
        self.check(500, validate=lambda attributes: False)
        self.check(500, validate=change)
        self.check(200, admit=fail, failure_policy="Ignore")

    def test_invalid(self) -> None:
        """Objects that plugins make invalid have the same status."""
        self.check(400, admit=move)
        self.check(422, admit=spoil)
