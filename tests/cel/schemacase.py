"""An object with a schema, for tests of expressions."""

from __future__ import annotations

from typing import Any

from kubetwist.cel.environment import Environment
from kubetwist.cel.schemas import DeclType, schema_decl_type
from tests.cel.support import CelTestCase

STRING = {"type": "string"}


SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["count"],
            "properties": {
                "count": {"type": "integer"},
                "ratio": {"type": "number"},
                "name": {"type": "string", "maxLength": 10},
                "phase": {"type": "string", "enum": ["On", "Off"]},
                "when": {"type": "string", "format": "date-time"},
                "day": {"type": "string", "format": "date"},
                "lasts": {"type": "string", "format": "duration"},
                "data": {"type": "string", "format": "byte"},
                "port": {"x-kubernetes-int-or-string": True},
                "foo-bar": STRING,
                "namespace": STRING,
                "1st": STRING,
                "note": {"type": "string", "nullable": True},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
                "rules": {
                    "type": "array",
                    "maxItems": 4,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["key"],
                    "items": {
                        "type": "object",
                        "properties": {"key": STRING, "ratio": {"type": "number"}},
                    },
                },
                "limits": {"type": "object", "additionalProperties": {"type": "number"}},
                "labels": {"type": "object", "maxProperties": 3, "additionalProperties": STRING},
                "times": {"type": "array", "items": {"type": "string", "format": "date-time"}},
                "blob": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "anything": {"x-kubernetes-preserve-unknown-fields": True},
                "template": {"type": "object", "x-kubernetes-embedded-resource": True},
            },
        }
    },
}


OBJECT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Thing",
    "metadata": {"name": "thing"},
    "spec": {
        "count": 3,
        "ratio": 2,
        "name": "abc",
        "phase": "On",
        "when": "2024-01-02T03:04:05.5Z",
        "day": "2024-01-02",
        "lasts": "1h",
        "data": "aGk=",
        "port": "80%",
        "foo-bar": "dashed",
        "namespace": "ns",
        "note": None,
        "tags": ["a", "b"],
        "rules": [{"key": "x", "ratio": 1}, {"key": "y", "ratio": 2.5}],
        "limits": {"cpu": 2},
        "labels": {"l": "v"},
        "times": ["2024-01-01T00:00:00Z", "2023-01-01T00:00:00+02:00"],
        "blob": {"hidden": 1},
        "anything": {"x": 1},
        "template": {"kind": "Pod", "metadata": {"name": "pod"}},
    },
}


def declared(schema: dict[str, Any], **options: Any) -> DeclType:
    """Return the CEL type of a schema that has one."""
    found = schema_decl_type(schema, "self", **options)
    assert found is not None
    return found


DECLARATION = declared(SCHEMA, resource_root=True)


class SchemaTestCase(CelTestCase):
    """Assertions on expressions over an object with a schema."""

    environment = Environment({"self": DECLARATION.type})

    def evaluate(self, text: str, **values: Any) -> Any:
        """Return the value of an expression over the object."""
        return self.compile(text).evaluate({"self": DECLARATION.to_cel(values.get("raw", OBJECT))})[0]
