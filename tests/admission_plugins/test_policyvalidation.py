"""What is wrong with policies."""

from __future__ import annotations

from typing import Any

from tests.admission_plugins.policies.policycase import GROUP, PolicyTestCase, rule


class ValidationTests(PolicyTestCase):
    """Policies that can not be are refused."""

    def wrong(self, kind: str, **spec: Any) -> list[str]:
        """The causes of a policy's refusal."""
        spec.setdefault("matchConstraints", {"resourceRules": [rule("configmaps")]})
        if kind == "mutating":
            spec.setdefault("reinvocationPolicy", "Never")
        body = {"metadata": {"name": "p"}, "spec": spec}
        code, answer = self.client.ask("POST", f"{GROUP}/{kind}admissionpolicies", body)
        self.assertEqual(code, 422, answer)
        return [f"{one['field']}: {one['message']}" for one in answer["details"]["causes"]]

    def test_expressions(self) -> None:
        """Expressions that do not compile, or give the wrong type, are told with the place in them."""
        (found,) = self.wrong("validating", validations=[{"expression": "object.x =="}])
        self.assertIn('spec.validations[0].expression: Invalid value: "object.x ==": compilation failed: ERROR', found)
        self.assertEqual(
            self.wrong("validating", validations=[{"expression": "1"}]),
            ['spec.validations[0].expression: Invalid value: "1": must evaluate to bool but got int'],
        )
        (found,) = self.wrong("validating", validations=[{"expression": "true", "messageExpression": "authorizer"}])
        self.assertIn("undeclared reference to 'authorizer'", found)

    def test_mutations(self) -> None:
        """A mutation is of one type, and its expression gives that."""
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

    def test_deletion_can_not_be_mutated(self) -> None:
        """A mutating policy is not for deletions."""
        (found,) = self.wrong(
            "mutating",
            matchConstraints={"resourceRules": [{**rule("configmaps"), "operations": ["DELETE"]}]},
            mutations=[{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
        )
        self.assertIn('resourceRules.operations: Unsupported value: "DELETE"', found)
