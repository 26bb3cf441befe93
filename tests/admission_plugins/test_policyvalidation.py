"""Tests of the validation of policies."""

from __future__ import annotations

from typing import Any

from tests.admission_plugins.policies.policycase import GROUP, PolicyTestCase, rule


class ValidationTests(PolicyTestCase):
    """Tests of invalid policies."""

    def wrong(self, kind: str, **spec: Any) -> list[str]:
        """Return the causes of the rejection of a policy."""
        spec.setdefault("matchConstraints", {"resourceRules": [rule("configmaps")]})
        if kind == "mutating":
            spec.setdefault("reinvocationPolicy", "Never")
        body = {"metadata": {"name": "p"}, "spec": spec}
        code, answer = self.client.ask("POST", f"{GROUP}/{kind}admissionpolicies", body)
        self.assertEqual(code, 422, answer)
        return [f"{one['field']}: {one['message']}" for one in answer["details"]["causes"]]

    def test_expressions(self) -> None:
        """Expressions that do not compile or have the wrong type are reported with the position of the error."""
        (result,) = self.wrong("validating", validations=[{"expression": "object.x =="}])
        self.assertIn('spec.validations[0].expression: Invalid value: "object.x ==": compilation failed: ERROR', result)
        self.assertEqual(
            self.wrong("validating", validations=[{"expression": "1"}]),
            ['spec.validations[0].expression: Invalid value: "1": must evaluate to bool but got int'],
        )
        (result,) = self.wrong("validating", validations=[{"expression": "true", "messageExpression": "authorizer"}])
        self.assertIn("undeclared reference to 'authorizer'", result)

    def test_mutations(self) -> None:
        """A mutation has one patch type, and its expression must return that type."""
        self.assertEqual(
            self.wrong(
                "mutating",
                mutations=[
                    {"patchType": "JSONPatch", "jsonPatch": {"expression": "1"}},
                    {"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}},
                    {"patchType": "Other"},
                ],
            ),
            [
                'spec.mutations[0].jsonPatch.expression: Invalid value: "1": must evaluate to list(JSONPatch) but got '
                "int",
                "spec.mutations[1].jsonPatch: Required value: must be specified when patchType is JSONPatch",
                'spec.mutations[1].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified '
                "when patchType is JSONPatch",
                'spec.mutations[2].patchType: Unsupported value: "Other": supported values: "ApplyConfiguration", '
                '"JSONPatch"',
            ],
        )

    def test_delete_is_not_mutable(self) -> None:
        """A mutating policy cannot match DELETE."""
        (result,) = self.wrong(
            "mutating",
            matchConstraints={"resourceRules": [{**rule("configmaps"), "operations": ["DELETE"]}]},
            mutations=[{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
        )
        self.assertIn('resourceRules.operations: Unsupported value: "DELETE"', result)
