"""Tests for L{kubetwist.schema.validation.rulepaths}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.validation.rulepaths import follow_field_path, has_rules, valid_field_path

SCHEMA: dict[str, Any] = {
    "properties": {
        "spec": {
            "properties": {"a.b": {"type": "string"}, "it's": {}, "map": {"additionalProperties": {"type": "array"}}}
        },
    }
}


class PathTests(SynchronousTestCase):
    """Tests for L{kubetwist.schema.validation.rulepaths}."""

    def test_form(self) -> None:
        """Names follow dots, or are quoted in brackets; errors have only map keys in brackets."""
        for path, expected in (
            (".spec", "spec"),
            ("['spec']['a.b']", "spec.a.b"),
            (r".spec['it\'s']", "spec.it's"),
            (".spec.map.any", "spec.map[any]"),
            (".spec.map['any']", "spec.map[any]"),
        ):
            self.assertEqual(valid_field_path(path, SCHEMA), expected, path)
        self.assertEqual(follow_field_path(".spec.map.x", SCHEMA), ("spec.map[x]", {"type": "array"}))

    def test_nowhere(self) -> None:
        """A path that does not exist is rejected with kube-apiserver's message."""
        for path, why in (
            ("spec", "expected [ or . but got: spec"),
            (".", "unexpected end of JSON path"),
            (".lost", "does not refer to a valid field"),
            (".spec.map.x.y", "does not refer to a valid field"),
            ("[spec]", "expected single quoted string but got spec"),
            ("['spec'", "unexpected end of JSON path"),
            ("['spec'.", "expected ] but got ."),
            (r"['\q']", r"invalid string literal: invalid escape char \q"),
        ):
            self.assertEqual(str(self.assertRaises(ValueError, valid_field_path, path, SCHEMA)), why, path)
        error = self.assertRaises(ValueError, follow_field_path, "['spec']", SCHEMA, brackets=False)
        self.assertEqual(str(error), "array notation is not allowed")

    def test_rules(self) -> None:
        """Rules are found at any depth of the structure."""
        rule = {"x-kubernetes-validations": [{"rule": "true"}]}
        for schema in (rule, {"items": rule}, {"additionalProperties": {"properties": {"a": rule}}}):
            self.assertTrue(has_rules(schema), schema)
        for none in ({}, {"x-kubernetes-validations": []}, {"additionalProperties": True}, {"allOf": [rule]}):
            self.assertFalse(has_rules(none), none)
