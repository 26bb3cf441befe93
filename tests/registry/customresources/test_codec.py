"""Tests for L{kubetwist.registry.customresources.codec}, over HTTP in memory."""

from __future__ import annotations

import orjson

from tests.resources.customcase import CustomTestCase
from tests.resources.customserver import KITES, definition, kite


class VersionTests(CustomTestCase):
    """Tests for several versions of one kind."""

    def setUp(self) -> None:
        """Create a CRD with two versions; the older one is deprecated and has other fields."""
        super().setUp()
        crd = definition()
        crd["spec"]["versions"].append(
            {
                "name": "v1beta1",
                "served": True,
                "storage": False,
                "deprecated": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"tail": {"type": "integer"}, "old": {"type": "string"}},
                            }
                        },
                    }
                },
            }
        )
        self.server.define(self.client, crd)
        self.old = KITES.replace("/v1/", "/v1beta1/")

    def test_conversion(self) -> None:
        """An object is equal in all versions except for its apiVersion and fields that a version lacks."""
        body = {**kite("a", spec={"tail": 1, "old": "x"}), "apiVersion": "example.com/v1beta1"}
        answer = self.client.answer("POST", self.old, body)
        self.assertEqual(
            answer.headers["warning"],
            ['299 - "example.com/v1beta1 Kite is deprecated; use example.com/v1 Kite"'],
        )
        made = orjson.loads(answer.body)
        self.assertEqual((made["apiVersion"], made["spec"]), ("example.com/v1beta1", {"tail": 1}))
        _, result = self.client.ask("GET", f"{KITES}/a")
        self.assertEqual((result["apiVersion"], result["spec"]), ("example.com/v1", {"tail": 1, "colour": "red"}))
        _, listed = self.client.ask("GET", self.old)
        self.assertEqual(listed["items"][0]["apiVersion"], "example.com/v1beta1")

    def test_wrong_version(self) -> None:
        """A body in another version than the path is a bad request."""
        code, status = self.client.ask("POST", self.old, kite("a"))
        self.assertEqual(code, 400)
        self.assertIn("does not match the expected API version (example.com/v1beta1)", status["message"])
