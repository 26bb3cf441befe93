"""Tests for L{kubetwist.admission_plugins.webhooks.conditions}."""

from __future__ import annotations

from typing import Any

from tests.admission_plugins.webhooks.webhookserver import WebhookTestCase, webhook
from tests.admission_plugins.webhooks.webhooktools import MAPS
from tests.resources.server import config_map


class ConditionTests(WebhookTestCase):
    """Tests for L{kubetwist.admission_plugins.webhooks.conditions}."""

    def test_conditions(self) -> None:
        """Match conditions can use the request, both objects and the permissions of the user."""

        def condition(expression: str) -> dict[str, Any]:
            return {"matchConditions": [{"name": "c", "expression": expression}, {"name": "d", "expression": "true"}]}

        for index, (expression, called) in enumerate(
            (
                ("object.metadata.name.startsWith('m')", True),
                ("object.metadata.name == 'other'", False),
                ("oldObject == null && request.operation == 'CREATE'", True),
                ("request.userInfo.username == 'admin' && 'system:masters' in request.userInfo.groups", True),
                ("request.resource.resource == 'pods'", False),
                ("authorizer.requestResource.check('create').allowed()", True),
                ("authorizer.group('').resource('pods').check('get').allowed()", True),
                ("has(request.options.fieldManager)", False),
                ("!request.dryRun", True),
            )
        ):
            self.configure(webhook(**condition(expression)), name=f"c{index}")
            self.outgoing.calls.clear()
            self.config_map(f"m{index}")
            self.assertEqual(bool(self.requests), called, expression)
            self.send_request(
                "DELETE", f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/c{index}"
            )

    def test_bad_conditions(self) -> None:
        """
        A condition that fails to evaluate rejects the request or skips the webhook, by failurePolicy, unless another is
        false.
        """
        fails = {"name": "c", "expression": "object.data.missing == 'x'"}
        self.configure(webhook(matchConditions=[fails]))
        expected = (
            403,
            "configmaps \"m\" is forbidden: expression 'object.data.missing == 'x'' resulted in error: "
            "no such key: missing",
        )
        self.assertEqual(self.request_error("POST", MAPS, config_map("m", a="b")), expected)
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        self.send_request("DELETE", f"{path}/hooks")
        self.configure(webhook(matchConditions=[fails, {"name": "d", "expression": "false"}]))
        self.config_map("one")
        self.send_request("DELETE", f"{path}/hooks")
        self.configure(webhook(matchConditions=[fails], failurePolicy="Ignore"))
        self.config_map("two")
        self.assertEqual(self.requests, [])

    def test_condition_validation(self) -> None:
        """Conditions that do not compile to a boolean are rejected with their configuration."""
        for expression, text in (
            ("object.", "compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'"),
            ("params.x", "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')"),
            ("1 + 1", "must evaluate to bool but got int"),
        ):
            hook = webhook(matchConditions=[{"name": "c", "expression": expression}])
            body = {"metadata": {"name": "bad"}, "webhooks": [hook]}
            code, message = self.request_error(
                "POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", body
            )
            self.assertEqual(code, 422)
            self.assertIn(f'webhooks[0].matchConditions[0].expression: Invalid value: "{expression}": ', message)
            self.assertIn(text, message)
