"""Tests for L{kubetwist.registry.customresources.scale}, over HTTP in memory."""

from __future__ import annotations

from typing import Any

import orjson

from tests.resources.customapply import APPLY, CustomApplyTestCase, struct
from tests.resources.customserver import KITES


class ScaleTests(CustomApplyTestCase):
    """Tests for applies to C{scale}."""

    def scale(self, replicas: int, query: str = "") -> tuple[int, dict[str, Any]]:
        """Apply a Scale."""
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "a"},
            "spec": {"replicas": replicas},
        }
        url = f"{KITES}/a/scale?fieldManager=scaler{query}"
        code, result = self.client.ask("PATCH", url, orjson.dumps(body), Content_Type=APPLY)
        return code, result

    def test_apply(self) -> None:
        """An apply that would change a Scale, or whose replicas have no owner yet, fails as in the reference."""
        paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        schema = struct(spec=struct(replicas={"type": "integer"}), status=struct(replicas={"type": "integer"}))
        self.define(schema, subresources={"scale": paths})
        self.create({"spec": {}})
        reason = "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
        code, status = self.scale(1)
        self.assertEqual(
            (code, status["message"]),
            (
                500,
                "failed to create manager for existing fields: failed to convert live object "
                f"(/; autoscaling/v1, Kind=Scale) {reason}",
            ),
        )
        self.applied({"spec": {"replicas": 1}})
        self.assertEqual(self.scale(1)[0], 200)
        self.assertEqual(self.scale(2)[0], 409)
        code, status = self.scale(2, "&force=true")
        self.assertEqual(
            (code, status["message"]), (500, f"failed to convert new object (/a; autoscaling/v1, Kind=Scale) {reason}")
        )
        self.assertEqual(self.get()["spec"], {"replicas": 1})
