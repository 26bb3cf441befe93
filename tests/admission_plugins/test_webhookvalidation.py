"""Tests of the validation of webhook configurations."""

from __future__ import annotations

from typing import Any

from kubetwist.api.options import UpdateOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.registry.generic.updates import UpdateRules
from tests.admission_plugins.webhooks.webhookserver import WebhookTestCase, webhook
from tests.admission_plugins.webhooks.webhooktools import rule


class ConfigurationTests(WebhookTestCase):
    """Tests of invalid webhook configurations."""

    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

    def problems(self, **fields: Any) -> str:
        """Return the causes of the rejection of a webhook."""
        code, message = self.request_error(
            "POST", self.path, {"metadata": {"name": "bad"}, "webhooks": [webhook(**fields)]}
        )
        self.assertEqual(code, 422)
        return message.partition(" is invalid: ")[2]

    def test_resources(self) -> None:
        """Resources of a rule must not overlap."""
        field = "webhooks[0].rules[0].resources"
        for resources, text in (
            (
                ("pods/*", "pods/log"),
                f"{field}[1]: Invalid value: \"pods/log\": if 'pods/*' is present, must not specify ",
            ),
            (
                ("*/log", "pods/log"),
                f"{field}[1]: Invalid value: \"pods/log\": if '*/log' is present, must not specify ",
            ),
            (
                ("*/*", "x"),
                f'{field}: Invalid value: ["*/*","x"]: if \'*/*\' is present, must not specify other resources',
            ),
            (
                ("*", "x"),
                f'{field}: Invalid value: ["*","x"]: if \'*\' is present, must not specify other resources without',
            ),
            (("",), f"{field}[0]: Required value"),
        ):
            self.assertIn(text, self.problems(**rule(*resources)))
        self.configure(webhook(**rule("pods", "pods/log", "*/scale", "x/*")))

    def test_versions(self) -> None:
        """One of the review versions must be known, and all must be valid names of versions."""
        field = "webhooks[0].admissionReviewVersions"
        self.assertIn(
            f'{field}: Invalid value: ["v2"]: must include at least one of v1, v1beta1',
            self.problems(admissionReviewVersions=["v2"]),
        )
        self.assertIn(
            f'{field}[1]: Invalid value: "v1": duplicate version', self.problems(admissionReviewVersions=["v1", "v1"])
        )
        self.assertIn(
            f'{field}[1]: Invalid value: "V 1": a DNS-1035 label must',
            self.problems(admissionReviewVersions=["v1", "V 1"]),
        )

    def test_ratcheting(self) -> None:
        """Invalid values that an existing webhook has are accepted in updates."""
        self.configure(webhook(), webhook("b.example.org"))
        store = self.server.stores.get("admissionregistration.k8s.io", "validatingwebhookconfigurations")

        def older(obj: Any) -> Any:
            obj["webhooks"][1]["name"] = "a.example.org"
            for hook in obj["webhooks"]:
                hook.update(sideEffects="Some", admissionReviewVersions=["v0"])
                hook["matchConditions"] = [{"name": "c", "expression": "no longer known"}]
            return obj

        anything = UpdateRules("", lambda obj, old: None, lambda obj, old: ())
        self.successResultOf(store.update(RequestScope(), "hooks", older, UpdateOptions(), anything, patching=True))
        label = {"metadata": {"labels": {"a": "b"}}}
        self.send_request("PATCH", f"{self.path}/hooks", label, Content_Type="application/merge-patch+json")
        worse = [{"op": "replace", "path": "/webhooks/0/sideEffects", "value": "Many"}]
        code, message = self.request_error(
            "PATCH", f"{self.path}/hooks", worse, Content_Type="application/json-patch+json"
        )
        self.assertEqual(code, 422)
        self.assertIn('supported values: "None", "NoneOnDryRun", "Some", "Unknown"', message)
