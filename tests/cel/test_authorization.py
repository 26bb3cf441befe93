"""Tests for L{kubetwist.cel.authorization}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.authorization import MatchConditionError, MatchConditions, compile_match_conditions

_SPEC = {
    "user": "alice",
    "groups": ["staff"],
    "extra": {"example.com/scope": ["a", "b"]},
    "resourceAttributes": {
        "namespace": "prod",
        "verb": "list",
        "resource": "pods",
        "fieldSelector": {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n"]}]},
        "labelSelector": {"rawSelector": "app=web"},
    },
}


class MatchConditionTests(SynchronousTestCase):
    """Tests for the match conditions of authorization webhooks."""

    def conditions(self, *expressions: str) -> MatchConditions:
        """Compile valid conditions."""
        conditions, causes = compile_match_conditions([{"expression": one} for one in expressions])
        self.assertEqual(causes, [])
        assert conditions is not None
        return conditions

    def errors(self, *conditions: Any) -> list[str]:
        """Return the errors of conditions."""
        return [str(cause) for cause in compile_match_conditions(conditions, "authorizers[0]")[1]]

    def test_request(self) -> None:
        """Conditions get the SubjectAccessReview of the webhook, with missing strings as empty ones."""
        for expression in (
            "request.user == 'alice' && request.uid == '' && 'staff' in request.groups",
            "request.extra['example.com/scope'] == ['a', 'b']",
            "has(request.resourceAttributes) && !has(request.nonResourceAttributes)",
            "request.resourceAttributes.verb == 'list' && request.resourceAttributes.subresource == ''",
            "request.resourceAttributes.fieldSelector.requirements[0].values == ['n']",
            "request.resourceAttributes.labelSelector.rawSelector == 'app=web'",
            "!has(request.resourceAttributes.labelSelector.requirements)",
        ):
            self.assertIs(self.conditions(expression).matches(_SPEC), True, expression)
        path = {"user": "alice", "nonResourceAttributes": {"path": "/healthz", "verb": "get"}}
        self.assertIs(self.conditions("request.nonResourceAttributes.path == '/healthz'").matches(path), True)
        self.assertIs(self.conditions("has(request.resourceAttributes)").matches(path), False)

    def test_all(self) -> None:
        """Conditions match only if all are true; one false condition is sufficient to skip the webhook."""
        error = "request.nonResourceAttributes.path == ''"
        self.assertIs(self.conditions("true", "request.user == 'bob'").matches(_SPEC), False)
        self.assertIs(self.conditions(error, "request.user == 'bob'").matches(_SPEC), False)
        self.assertIs(self.conditions("true", "request.user == 'alice'").matches(_SPEC), True)

    def test_errors(self) -> None:
        """An evaluation error is raised unless another condition is false."""
        first, second = "request.nonResourceAttributes.path == ''", "request.extra['x'] == []"
        with self.assertRaises(MatchConditionError) as raised:
            self.conditions(first, "true").matches(_SPEC)
        message = "cel evaluation error: expression '{}' resulted in error: no such key: {}"
        self.assertEqual(str(raised.exception), message.format(first, "nonResourceAttributes"))
        with self.assertRaises(MatchConditionError) as raised:
            self.conditions(first, second).matches(_SPEC)
        self.assertEqual(
            str(raised.exception),
            f"[{message.format(first, 'nonResourceAttributes')}, {message.format(second, 'x')}]",
        )

    def test_selectors(self) -> None:
        """Compiled conditions report whether they read selectors, so that unused selectors are not computed."""
        plain = self.conditions("request.resourceAttributes.verb == 'get'")
        self.assertEqual((plain.uses_field_selector, plain.uses_label_selector), (False, False))
        field = self.conditions("true", "has(request.resourceAttributes.fieldSelector)")
        self.assertEqual((field.uses_field_selector, field.uses_label_selector), (True, False))
        label = self.conditions("request.?resourceAttributes.?labelSelector.hasValue()")
        self.assertEqual((label.uses_field_selector, label.uses_label_selector), (False, True))

    def test_invalid(self) -> None:
        """Errors of invalid conditions have the path of their field."""
        where = "authorizers[0].matchConditions"
        self.assertEqual(
            self.errors({"expression": " "}, {"expression": "true"}, {"expression": "true"}),
            [f"{where}[0].expression: Required value", f'{where}[2].expression: Duplicate value: "true"'],
        )
        self.assertEqual(
            self.errors({"expression": "request.user"}, {"expression": "dyn(true)"}),
            [
                f'{where}[0].expression: Invalid value: "request.user": must evaluate to bool but got string',
                f'{where}[1].expression: Invalid value: "dyn(true)": must evaluate to bool but got dyn',
            ],
        )
        self.assertEqual(
            self.errors({"expression": "request.missing == ''"}),
            [
                f"{where}[0].expression: Invalid value: \"request.missing == ''\": compilation failed: "
                "ERROR: <input>:1:8: undefined field 'missing'\n | request.missing == ''\n | .......^"
            ],
        )
        self.assertEqual(
            self.errors(*({"expression": f"{number} == 1"} for number in range(65))),
            [f"{where}: Too many: 65: must have at most 64 items"],
        )
        self.assertEqual(compile_match_conditions([]), (None, []))
