"""Tests of webhooks for custom resources that a conversion webhook converts."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.webhooks.plugins import MutatingAdmissionWebhook, ValidatingAdmissionWebhook
from kubetwist.registry.customresources.conversion import CRConverter
from tests.admission_plugins.webhooks.webhookserver import ClientFactory, patch, webhook
from tests.resources.customserver import DEFINITIONS, KITES, CustomServer, definition
from tests.resources.server import configured

NEW = KITES.replace("/v1/", "/v2/")


def convert(objects: Any, api_version: str) -> Any:
    """Convert between C{length} of v1 and C{size} of v2."""
    converted = []
    for obj in objects:
        spec = dict(obj.get("spec") or {})
        if api_version.endswith("/v2") and "length" in spec:
            spec["size"] = f"{spec.pop('length')} m"
        elif api_version.endswith("/v1") and "size" in spec:
            spec["length"] = int(spec.pop("size").removesuffix(" m"))
        converted.append({**obj, "apiVersion": api_version, "spec": spec})
    return converted


class CustomWebhookTests(SynchronousTestCase):
    """Tests of a kind with two versions."""

    def setUp(self) -> None:
        """Create a CRD; clients use v2 and webhooks v1."""
        clock: list[Any] = []
        conversion = lambda crd: CRConverter("test", convert, clock[0])  # noqa: E731 # shorter than a function
        self.outgoing = ClientFactory()
        self.server = CustomServer(
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
            make_converter=conversion,
            admission=configured(MutatingAdmissionWebhook, ValidatingAdmissionWebhook),
            outgoing=self.outgoing,
        )
        clock.append(self.server.clock)
        self.client = self.server.client()

        def version(name: str, field: str, kind: str, stored: bool) -> dict[str, Any]:
            spec = {"type": "object", "properties": {field: {"type": kind}, "colour": {"type": "string"}}}
            spec["properties"]["colour"]["default"] = "red"
            schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
            return {"name": name, "served": True, "storage": stored, "schema": schema}

        crd = definition()
        crd["spec"]["versions"] = [version("v1", "length", "integer", True), version("v2", "size", "string", False)]
        self.server.define(self.client, crd)

    def send_request(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return the body of a successful response."""
        code, answer = self.client.ask(method, path, body, **headers)
        self.assertLess(code, 300, answer)
        return answer

    def configure(self, resource: str) -> None:
        """Create a webhook for v1."""
        rule = {"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["*"]}
        path = f"/apis/admissionregistration.k8s.io/v1/{resource}"
        self.send_request("POST", path, {"metadata": {"name": "hooks"}, "webhooks": [webhook(rules=[rule])]})

    def kite(self, **spec: Any) -> dict[str, Any]:
        """Return an object in v2."""
        return {"apiVersion": "example.com/v2", "kind": "Kite", "metadata": {"name": "k"}, "spec": spec}

    def test_converted(self) -> None:
        """The old and new objects are converted to the version of the webhook."""
        self.configure("validatingwebhookconfigurations")
        self.send_request("POST", NEW, self.kite(size="3 m"))
        self.send_request("PATCH", f"{NEW}/k", {"spec": {"size": "4 m"}}, Content_Type="application/merge-patch+json")
        self.send_request("DELETE", f"{NEW}/k")
        create, update, delete = (review["request"] for _, review in self.outgoing.calls)
        self.assertEqual((create["kind"]["version"], create["requestKind"]["version"]), ("v1", "v2"))
        self.assertEqual(create["object"]["apiVersion"], "example.com/v1")
        self.assertEqual(create["object"]["spec"], {"length": 3, "colour": "red"})
        self.assertEqual((update["oldObject"]["spec"]["length"], update["object"]["spec"]["length"]), (3, 4))
        self.assertEqual((delete["object"], delete["oldObject"]["spec"]["length"]), (None, 4))

    def test_changed_definition(self) -> None:
        """After a change of the CRD the equivalent resources are computed again."""
        self.configure("validatingwebhookconfigurations")
        self.send_request("POST", NEW, self.kite(size="3 m"))
        self.assertEqual(len(self.outgoing.calls), 1)
        change = [{"op": "replace", "path": "/spec/versions/0/served", "value": False}]
        path = f"{DEFINITIONS}/kites.example.com"
        self.send_request("PATCH", path, change, Content_Type="application/json-patch+json")
        self.server.settle()
        self.send_request("PATCH", f"{NEW}/k", {"spec": {"size": "4 m"}}, Content_Type="application/merge-patch+json")
        self.assertEqual(len(self.outgoing.calls), 1)

    def test_changed(self) -> None:
        """A patch of a webhook is converted to the version of the request, pruned and defaulted."""
        self.configure("mutatingwebhookconfigurations")
        self.outgoing.answer = lambda url, review: patch(
            ("replace", "/spec/length", 7), ("add", "/spec/bogus", 1), ("remove", "/spec/colour", None)
        )
        made = self.send_request("POST", NEW, self.kite(size="3 m", colour="blue"))
        self.assertEqual(made["spec"], {"size": "7 m", "colour": "red"})
        self.outgoing.answer = lambda url, review: patch(("replace", "/kind", "Other"))
        change = {"spec": {"size": "9 m"}}
        code, answer = self.client.ask("PATCH", f"{NEW}/k", change, Content_Type="application/merge-patch+json")
        self.assertGreaterEqual(code, 400, answer)
        self.assertEqual(self.send_request("GET", f"{NEW}/k")["spec"]["size"], "7 m")
