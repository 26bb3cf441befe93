"""Tests for L{kubetwist.cel.schemas}, C{schemavalues} and C{names}."""

from __future__ import annotations

from typing import Any

from kubetwist.cel.environment import Environment
from kubetwist.cel.errors import CompileErrors
from kubetwist.cel.estimates import Estimate
from kubetwist.cel.schemas import schema_decl_type
from tests.cel.schemacase import DECLARATION, STRING, SchemaTestCase, declared


class TypeTests(SchemaTestCase):
    """Tests for the types of schemas."""

    def test_types(self) -> None:
        """Types and formats of the schema have corresponding CEL types."""
        for field, shown in {
            "count": "int",
            "ratio": "double",
            "name": "string",
            "when": "google.protobuf.Timestamp",
            "day": "google.protobuf.Timestamp",
            "lasts": "google.protobuf.Duration",
            "data": "bytes",
            "port": "dyn",
            "tags": "list(string)",
            "rules": "list(self.spec.rules.@idx)",
            "limits": "map(string, double)",
            "blob": "self.spec.blob",
        }.items():
            self.assertEqual(str(self.compile(f"self.spec.{field}").output_type), shown, field)

    def test_unseen(self) -> None:
        """Fields that the schema does not declare cannot be selected."""
        for text in ("self.spec.anything", "self.spec.blob.hidden", "self.metadata.labels", "self.spec.nosuch"):
            error = self.assertRaises(CompileErrors, self.compile, text)
            self.assertIn("undefined field", str(error))
        self.assertIsNone(schema_decl_type({"x-kubernetes-preserve-unknown-fields": True}, "self"))
        self.assertIsNone(schema_decl_type({"type": "array", "items": {}}, "self"))

    def test_resources(self) -> None:
        """Kind, version and names of a resource are declared, also of an embedded one."""
        self.assertValues(
            {
                "self.kind + self.apiVersion + self.metadata.name": "Thingv1thing",
                "self.spec.template.kind + self.spec.template.metadata.name": "Podpod",
                "has(self.metadata.generateName)": False,
            }
        )

    def test_references(self) -> None:
        """References are resolved; a recursive schema becomes an object without fields."""
        schemas: dict[str, Any] = {
            "#/Node": {
                "type": "object",
                "properties": {"name": STRING, "next": {"allOf": [{"$ref": "#/Node"}]}},
            }
        }
        declaration = declared(
            {"type": "object", "properties": {"head": {"$ref": "#/Node"}, "lost": {"$ref": "#/Lost"}}},
            resolve=schemas.get,
        )
        environment = Environment({"self": declaration.type})
        self.assertEqual(str(environment.compile("self.head.name").output_type), "string")
        self.assertRaises(CompileErrors, environment.compile, "self.head.next.name")
        self.assertRaises(CompileErrors, environment.compile, "self.lost")


class SizeTests(SchemaTestCase):
    """Tests for sizes from schemas."""

    def test_sizes(self) -> None:
        """Sizes are limited by the schema, otherwise by the size of a request."""
        spec = DECLARATION.at(("spec",))
        assert spec is not None and spec.fields is not None
        request = 3 * 1024 * 1024
        for field, most in {
            "name": 40,
            "phase": 3,
            "__namespace__": request - 2,
            "when": 32,
            "day": 12,
            "lasts": 32,
            "rules": 4,
            "labels": 3,
            "tags": (request - 2) // 3,
            "limits": (request - 2) // 7,
            "port": request - 2,
            "count": 0,
        }.items():
            self.assertEqual(spec.fields[field].max_elements, most, field)
        self.assertEqual(spec.min_size, 2 + len("count") + 1 + 4)

    def test_paths(self) -> None:
        """Sizes are found by the paths of cost estimates."""
        for path, size in {
            ("self", "spec", "rules"): Estimate(0, 4),
            ("self", "spec", "rules", "@items", "key"): Estimate(0, 3 * 1024 * 1024 - 2),
            ("self", "spec", "labels", "@keys"): Estimate(0, 0),
            ("self", "spec", "count"): Estimate(0, 0),
            ("self", "nosuch"): None,
        }.items():
            self.assertEqual(DECLARATION.size_of(path, DECLARATION.type), size, path)

    def test_estimates(self) -> None:
        """The estimated cost of a rule is limited by the limits of the schema."""
        program = self.compile("self.spec.rules.all(r, r.ratio > 0.5)")
        self.assertEqual(program.estimated_cost(DECLARATION.size_of), Estimate(4, 28))
