"""Server-side apply of custom resources, for tests of field ownership."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from tests.resources.customserver import DEFINITIONS, KITES, CustomServer, definition

Schema = dict[str, Any]


APPLY, MERGE, JSON = "application/apply-patch+yaml", "application/merge-patch+json", "application/json-patch+json"


TEXT: Schema = {"type": "string"}


OLD = KITES.replace("/v1/", "/v1beta1/")


def struct(**properties: Schema) -> Schema:
    """Return the schema of an object with these fields."""
    return {"type": "object", "properties": properties}


class CustomApplyTestCase(SynchronousTestCase):
    """Test case with a server and objects C{a} of the kind Kite."""

    def setUp(self) -> None:
        """Start the server."""
        self.server = CustomServer()
        self.client = self.server.client()

    def define(self, schema: Schema, **version: Any) -> None:
        """Create a definition with one version."""
        self.server.define(self.client, definition(schema, **version))

    def define_versions(self, stored: Schema, other: Schema, **version: Any) -> None:
        """Create a definition with the storage version C{v1}, with the fields of C{version}, and with C{v1beta1}."""
        crd = definition(stored, **version)
        schema = {"openAPIV3Schema": other}
        crd["spec"]["versions"].append({"name": "v1beta1", "served": True, "storage": False, "schema": schema})
        self.server.define(self.client, crd)

    def redefine(self, change: Any) -> None:
        """Replace the versions of the definition by the result of a function."""
        path = f"{DEFINITIONS}/kites.example.com"
        versions = self.client.ask("GET", path)[1]["spec"]["versions"]
        code, found = self.client.ask("PATCH", path, {"spec": {"versions": change(versions)}}, Content_Type=MERGE)
        self.assertEqual(code, 200, found)
        self.server.settle()

    def body(self, path: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Return an object of the path's version."""
        version = path.split("/")[3]
        return {"kind": "Kite", "apiVersion": f"example.com/{version}", "metadata": {"name": "a"}, **fields}

    def apply(
        self, fields: dict[str, Any], manager: str = "me", path: str = KITES, query: str = "", sub: str = ""
    ) -> tuple[int, dict[str, Any]]:
        """Apply an object."""
        url = f"{path}/a{sub}?fieldManager={manager}{query}"
        code, found = self.client.ask("PATCH", url, orjson.dumps(self.body(path, fields)), Content_Type=APPLY)
        return code, found

    def applied(self, fields: dict[str, Any], manager: str = "me", path: str = KITES, **more: Any) -> dict[str, Any]:
        """Apply an object successfully."""
        code, found = self.apply(fields, manager, path, **more)
        self.assertIn(code, (200, 201), found)
        return found

    def create(self, fields: dict[str, Any], path: str = KITES, query: str = "") -> dict[str, Any]:
        """Create an object."""
        code, found = self.client.ask("POST", f"{path}?fieldManager=maker{query}", self.body(path, fields))
        self.assertEqual(code, 201, found)
        return dict(found)

    def merge(self, fields: dict[str, Any], path: str = KITES, sub: str = "") -> dict[str, Any]:
        """Change an object by a merge patch."""
        url = f"{path}/a{sub}?fieldManager=changer"
        code, found = self.client.ask("PATCH", url, fields, Content_Type=MERGE)
        self.assertEqual(code, 200, found)
        return dict(found)

    def get(self, path: str = KITES) -> dict[str, Any]:
        """Read an object."""
        code, found = self.client.ask("GET", f"{path}/a")
        self.assertEqual(code, 200, found)
        return dict(found)

    def owners(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Return the owned fields by manager."""
        return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", ())}
