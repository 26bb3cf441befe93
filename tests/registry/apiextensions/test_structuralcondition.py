"""Tests for L{kubetwist.registry.apiextensions.structuralcondition}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.apiextensions.structuralcondition import non_structural_condition


def definition(*schemas: Any, **spec: Any) -> dict[str, Any]:
    """A definition of versions with schemas."""
    versions = [
        {"name": f"v{number}", "schema": None if schema is None else {"openAPIV3Schema": schema}}
        for number, schema in enumerate(schemas, 1)
    ]
    return {"spec": {"versions": versions, **spec}}


class StructureTests(SynchronousTestCase):
    """Tests for L{non_structural_condition}."""

    def test_structural(self) -> None:
        """There is nothing to tell of schemas that are structural, and of versions without one."""
        self.assertIsNone(non_structural_condition(definition({"type": "object"}, None)))

    def test_violations(self) -> None:
        """What is wrong with a schema is told with its place."""
        found = non_structural_condition(definition({"type": "object"}, {"properties": {"a": {}}}))
        assert found is not None
        self.assertEqual(found[:2], ("True", "Violations"))
        self.assertIn("spec.versions[1].schema.openAPIV3Schema", found[2])

    def test_preserved(self) -> None:
        """Unknown fields that are kept are a violation."""
        found = non_structural_condition(definition(preserveUnknownFields=True))
        self.assertEqual(
            found, ("True", "Violations", "spec.preserveUnknownFields: Invalid value: true: must be false")
        )
