"""Tests for L{kubetwist.resources.openapi.schemas}."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.openapi.schemas import WithoutEnums, reachable, references
from kubetwist.schema.openapi import V3_REFERENCE
from tests.resources.fakeservedresources import APPS
from tests.resources.openapi.fakedefinitions import META, FakeDefinitions


class SchemasTests(SynchronousTestCase):
    """Tests for L{kubetwist.resources.openapi.schemas}."""

    def test_reachable(self) -> None:
        """A document has exactly the types that it needs, also recursive types."""
        schemas = FakeDefinitions().openapi_schemas(V3_REFERENCE)
        found = reachable(schemas, ["io.k8s.api.core.v1.PodList", "nowhere"], None)
        self.assertIn("io.k8s.api.core.v1.PodSpec", found)
        self.assertNotIn(f"{META}Unused", found)

    def test_kinds_of_every_group(self) -> None:
        """The kinds that belong to every group are shown in the document's group and in the core group."""
        name = f"{META}DeleteOptions"
        found = reachable(FakeDefinitions().openapi_schemas(V3_REFERENCE), [name], APPS)
        self.assertEqual([kind["group"] for kind in found[name]["x-kubernetes-group-version-kind"]], ["", "apps"])

    @settings(max_examples=50)
    @given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefg"), max_size=3)))
    def test_reachable_is_closed(self, graph: dict[str, list[str]]) -> None:
        """Every reference of a document resolves, if its type exists."""
        schemas = {name: {"items": [{"$ref": f"#/{to}"} for to in remaining]} for name, remaining in graph.items()}
        found = reachable(schemas, ["a"], None)
        for schema in found.values():
            for name in references(schema):
                self.assertTrue(name in found or name not in schemas)

    def test_without_enums(self) -> None:
        """Without enumerations, descriptions have no lists of values, and fields of this name stay."""
        described = {"description": 'A policy.\n\nPossible enum values:\n - `"A"` x', "enum": ["A"], "type": "string"}
        types = {
            "T": {
                "description": "T is a type.",
                "properties": {
                    "enum": {**described},
                    "list": {"items": {**described}, "type": "array"},
                    "map": {"additionalProperties": {**described}, "type": "object"},
                    "all": {"allOf": [{"$ref": "#/x"}], "description": "All."},
                },
            }
        }
        plain = {"description": "A policy.", "type": "string"}
        self.assertEqual(
            WithoutEnums(SimpleNamespace(openapi_schemas=lambda prefix: types)).openapi_schemas(V3_REFERENCE),
            {
                "T": {
                    "description": "T is a type.",
                    "properties": {
                        "enum": plain,
                        "list": {"items": plain, "type": "array"},
                        "map": {"additionalProperties": plain, "type": "object"},
                        "all": {"allOf": [{"$ref": "#/x"}], "description": "All."},
                    },
                }
            },
        )
