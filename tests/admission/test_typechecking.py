"""Tests for L{kubetwist.admission.typechecking}."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission.typechecking import MAX_KINDS_PER_RULE, expression_warnings, kinds_to_check
from kubetwist.api.resource import GroupVersionKind, GroupVersionResource, JSONObject
from tests.cel.schemacase import declared

WIDGET = GroupVersionKind("example.com", "v1", "Widget")
DECLARATION = declared({"type": "object", "properties": {"size": {"type": "integer"}}})


def kinds_of(resource: GroupVersionResource) -> Iterable[GroupVersionKind]:
    """Return a kind for each resource."""
    return [GroupVersionKind(resource.group, resource.version, resource.resource.title())]


def policy(*validations: JSONObject, **spec: Any) -> JSONObject:
    """Return a policy."""
    return {"spec": {"validations": list(validations), **spec}}


def rules(*resources: str, groups: Iterable[str] = ("",), versions: Iterable[str] = ("v1",)) -> JSONObject:
    """Return a policy for some resources."""
    rule = {"apiGroups": list(groups), "apiVersions": list(versions), "resources": list(resources)}
    return policy(matchConstraints={"resourceRules": [rule]})


class KindTests(SynchronousTestCase):
    """Tests for L{kinds_to_check}."""

    def test_named(self) -> None:
        """The kinds of all listed resources are checked, in order; subresources are skipped."""
        result = kinds_to_check(rules("pods", "configmaps", "pods/status"), kinds_of)
        self.assertEqual([kind.kind for kind in result], ["Configmaps", "Pods"])

    def test_wildcards(self) -> None:
        """Rules with wildcards are skipped."""
        for obj in (rules("*"), rules("pods", groups=["*"]), rules("pods", versions=["*"]), policy()):
            self.assertEqual(kinds_to_check(obj, kinds_of), [])

    def test_bounded(self) -> None:
        """The number of kinds is limited."""
        result = kinds_to_check(rules(*(f"r{number:02}" for number in range(50))), kinds_of)
        self.assertEqual(len(result), MAX_KINDS_PER_RULE)


class WarningTests(SynchronousTestCase):
    """Tests for L{expression_warnings}."""

    def test_good(self) -> None:
        """A valid expression has no warning."""
        self.assertEqual(
            expression_warnings(policy({"expression": "object.size > 1"}), [(WIDGET, DECLARATION)], None), []
        )

    def test_bad(self) -> None:
        """A misspelled field has a warning with the path of the expression and the kind."""
        obj = policy({"expression": "true"}, {"expression": "object.sise > 1", "messageExpression": "object.nam"})
        result = expression_warnings(obj, [(WIDGET, DECLARATION)], None)
        self.assertEqual(
            [one["fieldRef"] for one in result],
            ["spec.validations[1].expression", "spec.validations[1].messageExpression"],
        )
        self.assertIn("example.com/v1, Kind=Widget: ERROR: <input>:1:7: undefined field 'sise'", result[0]["warning"])

    def test_variables(self) -> None:
        """Variables have the types of their expressions."""
        variables = [{"name": "size", "expression": "object.size"}]
        valid = policy({"expression": "variables.size > 1"}, variables=variables)
        bad = policy({"expression": "variables.size == 'a'"}, variables=variables)
        self.assertEqual(expression_warnings(valid, [(WIDGET, DECLARATION)], None), [])
        self.assertEqual(len(expression_warnings(bad, [(WIDGET, DECLARATION)], None)), 1)

    def test_params(self) -> None:
        """Parameters are checked if their type is known."""
        obj = policy({"expression": "params.nope == 1"}, paramKind={"apiVersion": "v1", "kind": "X"})
        self.assertEqual(expression_warnings(obj, [(WIDGET, DECLARATION)], None), [])
        self.assertEqual(len(expression_warnings(obj, [(WIDGET, DECLARATION)], DECLARATION)), 1)
