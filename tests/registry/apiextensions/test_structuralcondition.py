"""Tests for L{kubetwist.registry.apiextensions.structuralcondition}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.apiextensions.structuralcondition import non_structural_condition


def definition(*schemas: Any, **spec: Any) -> dict[str, Any]:
    """Return a CRD whose versions have these schemas."""
    versions = [
        {"name": f"v{number}", "schema": None if schema is None else {"openAPIV3Schema": schema}}
        for number, schema in enumerate(schemas, 1)
    ]
    return {"spec": {"versions": versions, **spec}}


class StructureTests(SynchronousTestCase):
    """Tests for L{non_structural_condition}."""

    def test_structural(self) -> None:
        """Structural schemas, and versions without a schema, give no condition."""
        self.assertIsNone(non_structural_condition(definition({"type": "object"}, None)))

    def test_violations(self) -> None:
        """A violation is reported with its path."""
        result = non_structural_condition(definition({"type": "object"}, {"properties": {"a": {}}}))
        assert result is not None
        self.assertEqual(result[:2], ("True", "Violations"))
        self.assertIn("spec.versions[1].schema.openAPIV3Schema", result[2])

    def test_preserved(self) -> None:
        """Preserved unknown fields are a violation."""
        result = non_structural_condition(definition(preserveUnknownFields=True))
        self.assertEqual(
            result, ("True", "Violations", "spec.preserveUnknownFields: Invalid value: true: must be false")
        )
