"""
Tests for OpenAPI documents of custom resources, compared with the documents of kube-apiserver v1.36.2.

C{customdocuments.json.gz} contains definitions, and the documents that kube-apiserver publishes for them: paths without
descriptions, with resolved parameters; and schemas, with the first eight digits of its SHA-1 instead of each
description.
"""

from __future__ import annotations

import gzip
import json
from hashlib import sha1
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.openapi.builder import Builder
from tests.resources.customserver import CustomServer
from tests.resources.server import definitions

RECORDED = Path(__file__).with_name("customdocuments.json.gz")


def stripped(value: Any, parameters: dict[str, Any], described: bool) -> Any:
    """
    Return a part of a document in the recorded form.

    @param described: Whether descriptions are kept, as digests.
    """
    if isinstance(value, list):
        return [stripped(item, parameters, described) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/parameters/"):
        return stripped(parameters[reference.removeprefix("#/parameters/")], parameters, described)
    found = {}
    for name, item in value.items():
        if name != "description" or not isinstance(item, str):
            found[name] = stripped(item, parameters, described)
        elif described:
            found[name] = f"#{sha1(item.encode()).hexdigest()[:8]}"
    return found


def ordered(value: Any) -> Any:
    """Return the same with sorted parameters, whose order has no meaning."""
    if isinstance(value, dict):
        found = {name: ordered(item) for name, item in value.items()}
        if isinstance(found.get("parameters"), list):
            found["parameters"].sort(key=lambda one: (one.get("in", ""), one.get("name", "")))
        return found
    return [ordered(item) for item in value] if isinstance(value, list) else value


class RecordedTests(SynchronousTestCase):
    """Definitions with every extension and schema feature."""

    maxDiff = 4000

    def setUp(self) -> None:
        """Create all definitions, and build both documents."""
        recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
        self.expected = recorded["documents"]
        server = CustomServer()
        client = server.client()
        for crd in recorded["definitions"]:
            server.define(client, crd)
        served_resources = server.installer.served_resources
        snapshot = [(one, tuple(served_resources.resources(one))) for one in served_resources.group_versions()]
        builder = Builder(definitions(), "1.36")
        self.v2 = json.loads(builder.v2(snapshot).decompress())
        self.v3 = {name: json.loads(packed.decompress()) for name, (_, packed) in builder.v3(snapshot, {}).items()}

    def compare(self, paths: Any, schemas: Any, expected: Any, parameters: dict[str, Any]) -> None:
        """Compare the recorded parts, one path and one schema at a time."""
        for name, item in expected["paths"].items():
            self.assertEqual(ordered(stripped(paths[name], parameters, False)), ordered(item), name)
        for name, schema in expected["schemas"].items():
            self.assertEqual(stripped(schemas[name], parameters, True), schema, name)

    def test_v2(self) -> None:
        """OpenAPI 2 equals the reference's."""
        self.assertGreater(len(self.expected["v2"]["paths"]), 50)
        self.compare(self.v2["paths"], self.v2["definitions"], self.expected["v2"], self.v2["parameters"])

    def test_v3(self) -> None:
        """OpenAPI 3 equals the reference's, in the documents of all versions, with no other paths and schemas."""
        for name, expected in self.expected["v3"].items():
            document = self.v3[name]
            schemas = document["components"]["schemas"]
            self.compare(document["paths"], schemas, expected, {})
            self.assertEqual(document["paths"].keys(), expected["paths"].keys())
            self.assertEqual({one for one in schemas if not one.startswith("io.k8s.")}, expected["schemas"].keys())
