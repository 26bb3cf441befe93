"""Tests for L{kubetwist.resources.openapi.protobufv3}."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import JSONObject
from kubetwist.resources.openapi.protobufv3 import encode_v3, pieces_v3

from .test_protobufv2 import every, extensions, fields, one, pairs

DOCUMENT: JSONObject = {
    "openapi": "3.0.0",
    "info": {"title": "Kubernetes", "version": "v1.36"},
    "paths": {
        "/apis/apps/v1/": {
            "get": {
                "tags": ["apps_v1"],
                "description": "What there is.",
                "operationId": "getAppsV1APIResources",
                "responses": {
                    "200": {
                        "description": "OK",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pod"}}},
                    },
                    "default": {"description": "Else"},
                },
                "x-kubernetes-action": "list",
            },
            "post": {"requestBody": {"required": True, "content": {"*/*": {"schema": {"type": "string"}}}}},
            "parameters": [
                {"name": "pretty", "in": "query", "description": "How?", "schema": {"type": "string"}},
                {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}},
            ],
        }
    },
    "components": {
        "schemas": {
            "Pod": {
                "description": "A pod.",
                "type": "object",
                "required": ["spec"],
                "properties": {
                    "spec": {"allOf": [{"$ref": "#/components/schemas/Spec", "description": "Inside."}], "default": {}},
                    "count": {"type": "integer", "format": "int32", "default": 0, "minimum": -1.5},
                    "on": {"type": "boolean", "default": False, "nullable": True},
                    "name": {"type": "string", "default": "", "maxLength": 300, "pattern": "^x"},
                    "either": {"oneOf": [{"type": "string"}, {"type": "integer"}], "not": {"enum": ["a"]}},
                    "items": {"type": "array", "items": {"$ref": "#/components/schemas/Spec"}},
                    "open": {"additionalProperties": True},
                    "closed": {"additionalProperties": False},
                    "map": {"additionalProperties": {"type": "string"}},
                },
                "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
            },
            "Spec": {},
        },
        "securitySchemes": {
            "BearerToken": {"type": "apiKey", "description": "Who?", "name": "authorization", "in": "header"}
        },
    },
}


class ProtobufTests(SynchronousTestCase):
    """Encoded documents."""

    def setUp(self) -> None:
        """Encode the document."""
        self.document = encode_v3(DOCUMENT)
        self.schemas = pairs(every(self.document, 5, 1, 1))
        self.properties = pairs(every(self.schemas["Pod"], 1, 31, 1))

    def schema(self, name: str) -> list[tuple[int, object]]:
        """Return the fields of a property."""
        return list(fields(one(self.properties[name], 1)))

    def test_head(self) -> None:
        """A document has its version and info."""
        self.assertEqual(one(self.document, 1), b"3.0.0")
        self.assertEqual((one(self.document, 2, 1), one(self.document, 2, 6)), (b"Kubernetes", b"v1.36"))

    def test_paths(self) -> None:
        """A path has its operations and parameters, and an operation its responses and extensions."""
        item = pairs(every(self.document, 4, 1))["/apis/apps/v1/"]
        get = one(item, 4)
        self.assertEqual((one(get, 1), one(get, 5)), (b"apps_v1", b"getAppsV1APIResources"))
        self.assertEqual(extensions(get, 13), {"x-kubernetes-action": "list"})
        answers = pairs(every(get, 8, 2))
        content = pairs(every(answers["200"], 1, 3, 1))
        self.assertEqual(one(content["application/json"], 1, 2, 1), b"#/components/schemas/Pod")
        self.assertEqual(one(get, 8, 1, 1, 1), b"Else")
        body = one(item, 6, 7, 1)
        self.assertEqual((one(body, 3), one(pairs(every(body, 2, 1))["*/*"], 1, 1, 25)), (1, b"string"))
        self.assertEqual(every(item, 13, 1, 1), [b"pretty", b"name"])
        self.assertEqual(every(item, 13, 1, 4), [1])
        self.assertEqual(every(item, 13, 1, 10, 1, 20), [1])

    def test_schemas(self) -> None:
        """A schema has its description, type, required fields, and extensions; an empty schema is encoded, too."""
        pod = one(self.schemas["Pod"], 1)
        self.assertEqual((one(pod, 34), one(pod, 25), one(pod, 23)), (b"A pod.", b"object", b"spec"))
        kinds = {"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}]}
        self.assertEqual(extensions(pod, 36), kinds)
        self.assertEqual(every(self.schemas["Spec"], 1), [b""])

    def test_references(self) -> None:
        """A reference has another field number than a schema, and its description another number than in v2."""
        spec = dict(self.schema("spec"))
        self.assertEqual(one(spec[26], 2, 1), b"#/components/schemas/Spec")
        self.assertEqual(one(spec[26], 2, 3), b"Inside.")
        self.assertEqual(every(dict(self.schema("items"))[30], 1, 2, 1), [b"#/components/schemas/Spec"])

    def test_defaults(self) -> None:
        """The oneof field of a default is encoded even for a zero value; a default of an object is an empty message."""
        found = {name: list(fields(dict(self.schema(name))[33])) for name in ("spec", "count", "on", "name")}
        self.assertEqual(found, {"spec": [], "count": [(1, 0.0)], "on": [(2, 0)], "name": [(3, b"")]})

    def test_limits(self) -> None:
        """Numbers and booleans keep their types."""
        self.assertEqual(dict(self.schema("count"))[13], -1.5)
        self.assertEqual(dict(self.schema("on"))[1], 1)
        self.assertEqual((dict(self.schema("name"))[15], dict(self.schema("name"))[17]), (300, b"^x"))

    def test_combined(self) -> None:
        """Combined schemas are nested."""
        either = one(self.properties["either"], 1)
        self.assertEqual(every(either, 27, 1, 25), [b"string", b"integer"])
        self.assertEqual(one(either, 29, 24, 2).strip(), b'"a"')
        more = {name: list(fields(dict(self.schema(name))[32])) for name in ("open", "closed")}
        self.assertEqual(more, {"open": [(2, 1)], "closed": [(2, 0)]})
        self.assertEqual(one(dict(self.schema("map"))[32], 1, 1, 25), b"string")

    def test_security(self) -> None:
        """The security scheme is encoded."""
        scheme = one(pairs(every(self.document, 5, 7, 1))["BearerToken"], 1)
        self.assertEqual(dict(fields(scheme)), {1: b"apiKey", 2: b"Who?", 3: b"authorization", 4: b"header"})

    def test_pieces(self) -> None:
        """A document that is encoded in pieces equals one that is encoded at once."""
        pieces = b"".join(pieces_v3(json.dumps(DOCUMENT, indent=1).encode()))
        self.assertEqual(pairs(every(pieces, 4, 1)), pairs(every(self.document, 4, 1)))
        self.assertEqual(pairs(every(pieces, 5, 1, 1)), self.schemas)
        self.assertEqual(every(pieces, 5, 7, 1), every(self.document, 5, 7, 1))
        self.assertEqual((every(pieces, 1), every(pieces, 2)), (every(self.document, 1), every(self.document, 2)))
