"""Tests of feature gates of custom resources and their definitions, over HTTP in memory."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from tests.registry.gatetools import created, gated, updated
from tests.resources.customapply import MERGE, TEXT, struct
from tests.resources.customserver import DEFINITIONS, KITES, CustomServer, definition

CRD = f"{DEFINITIONS}/kites.example.com"


class GateTests(SynchronousTestCase):
    """Gates in both positions."""

    def serve(self, release: tuple[int, int], schema: dict[str, Any], **gates: bool) -> None:
        """Start a server with gates, and define the kind Kite."""
        self.server = CustomServer(features=FeatureGates(release, gates))
        self.client = self.server.client()
        self.server.define(self.client, definition(schema))

    def test_ratcheting(self) -> None:
        """Errors of unchanged values are ignored if the gate is enabled."""
        for value, code in ((True, 200), (False, 422)):
            self.serve((1, 32), struct(spec=struct(a=TEXT, b=TEXT)), CRDValidationRatcheting=value)
            body = {"kind": "Kite", "apiVersion": "example.com/v1", "metadata": {"name": "a"}}
            self.assertEqual(self.client.ask("POST", KITES, {**body, "spec": {"a": "long", "b": "x"}})[0], 201)
            versions = self.client.ask("GET", CRD)[1]["spec"]["versions"]
            versions[0]["schema"]["openAPIV3Schema"] = struct(spec=struct(a={**TEXT, "maxLength": 2}, b=TEXT))
            found = self.client.ask("PATCH", CRD, {"spec": {"versions": versions}}, Content_Type=MERGE)
            self.assertEqual(found[0], 200, found)
            self.server.settle()
            change = {"spec": {"b": "y"}}
            self.assertEqual(self.client.ask("PATCH", f"{KITES}/a", change, Content_Type=MERGE)[0], code)

    def test_observed_generation(self) -> None:
        """The status and its conditions have the observed generation if the gate is enabled."""
        for value in (True, False):
            self.serve((1, 36), struct(spec=struct(a=TEXT)), CRDObservedGenerationTracking=value)
            for generation in (1, 2):
                crd = self.client.ask("GET", CRD)[1]
                self.assertEqual(crd["metadata"]["generation"], generation)
                status = crd["status"]
                expected = generation if value else None
                parts = [status, *status["conditions"]]
                self.assertEqual([one.get("observedGeneration") for one in parts], [expected] * len(parts))
                if generation == 1:
                    change = {"spec": {"names": {"shortNames": ["kt"]}}}
                    self.assertEqual(self.client.ask("PATCH", CRD, change, Content_Type=MERGE)[0], 200)
                    self.server.settle()

    def test_selectable_fields(self) -> None:
        """Selectable fields are kept if the gate is enabled or they are in use, and dropped otherwise."""
        versions = [{"name": "v1", "served": True, "storage": True, "selectableFields": [{"jsonPath": ".spec.a"}]}]
        on, off = (
            gated("apiextensions.k8s.io", "CustomResourceDefinition", (1, 31), CustomResourceFieldSelectors=value)
            for value in (True, False)
        )
        spec = {"group": "example.com", "versions": versions}
        used, unused = created(on, spec=spec), created(off, spec=spec)
        self.assertIn("selectableFields", used["spec"]["versions"][0])
        self.assertNotIn("selectableFields", unused["spec"]["versions"][0])
        self.assertIn("selectableFields", updated(off, used, spec=spec)["spec"]["versions"][0])
        self.assertNotIn("selectableFields", updated(off, unused, spec=spec)["spec"]["versions"][0])
