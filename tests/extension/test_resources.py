"""Tests for L{kubetwist.extension._resources}."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.extension._resources import (
    BadResource,
    Resource,
    validate_resources,
)
from kubetwist.schema.definitions import Definitions

FORTUNE = Resource(
    group="fun.example.com",
    version="v1",
    kind="Fortune",
    plural="fortunes",
    schema={"spec": {"type": "object", "properties": {"text": {"type": "string"}}}},
)


class ResourceTests(SynchronousTestCase):
    """Definitions of resources."""

    def setUp(self) -> None:
        """Load the definitions of the newest release."""
        self.definitions = Definitions.load("1.36")

    def error_of(self, **wrong: Any) -> str:
        """Return the error message for a resource with wrong attributes."""
        with self.assertRaises(BadResource) as caught:
            evolve(FORTUNE, **wrong).definition(self.definitions)
        return str(caught.exception)

    def test_definition(self) -> None:
        """The definition of a resource is equal to a CustomResourceDefinition with its names and schema."""
        definition = evolve(FORTUNE, required=["spec"], short_names=["fo"]).definition(self.definitions)
        self.assertEqual(definition["metadata"]["name"], "fortunes.fun.example.com")
        self.assertEqual(definition["status"]["acceptedNames"]["listKind"], "FortuneList")
        self.assertEqual(definition["status"]["acceptedNames"]["singular"], "fortune")
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        self.assertEqual(schema["required"], ["spec"])
        self.assertEqual(set(schema["properties"]), {"apiVersion", "kind", "metadata", "spec"})

    def test_schema(self) -> None:
        """A schema must be structural, and its rules must compile."""
        self.assertIn("properties[spec].type: Required value", self.error_of(schema={"spec": {"properties": {}}}))
        rules = {"type": "object", "x-kubernetes-validations": [{"rule": "self.nothing > 1"}]}
        self.assertIn("undefined field 'nothing'", self.error_of(schema={"spec": rules}))

    def test_names(self) -> None:
        """Names must be valid names of resources."""
        self.assertIn("spec.names.plural", self.error_of(plural="For tunes"))
        self.assertIn("spec.versions[0].name", self.error_of(version="V1"))

    def test_together(self) -> None:
        """At least one resource is required, and duplicates are rejected."""
        self.assertEqual(validate_resources(iter([FORTUNE])), [FORTUNE])
        for resources in ([], [FORTUNE, evolve(FORTUNE, version="v2")]):
            with self.assertRaises(BadResource):
                validate_resources(resources)
