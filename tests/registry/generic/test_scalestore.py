"""Tests of L{kubetwist.registry.generic.scalestore}."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.api.options import GetOptions, UpdateOptions
from kubetwist.interfaces import IPatcher
from kubetwist.registry.generic.scalestore import ScaleStore
from tests.registry.generic.updatetools import ViewTestCase


class ScaleTests(ViewTestCase):
    """Tests of L{kubetwist.registry.generic.scalestore}."""

    def test_scale(self) -> None:
        """A scale contains and sets the number of replicas, which increments the generation of the object."""
        scale = ScaleStore(self.deployments, "v1")
        verifyObject(IPatcher, scale)
        shown = scale.get(self.scope, "d", GetOptions())
        self.assertEqual((shown["kind"], shown["spec"]), ("Scale", {"replicas": 2}))
        self.assertEqual(shown["status"]["selector"], "app=d")
        self.assertEqual(shown["metadata"]["resourceVersion"], self.first["metadata"]["resourceVersion"])

        def change(obj: Any) -> Any:
            return {**obj, "spec": {"replicas": 5}}

        new, created = self.successResultOf(scale.update(self.scope, "d", change, UpdateOptions()))
        self.assertEqual((new["spec"], created), ({"replicas": 5}, False))
        stored = self.stored(self.deployments, "d")
        self.assertEqual((stored["spec"]["replicas"], stored["metadata"]["generation"]), (5, 2))

    def test_scale_conflict(self) -> None:
        """A scale with another resourceVersion is a conflict, a negative one invalid, one of a missing object a 404."""
        scale = ScaleStore(self.deployments, "v1")

        def of(version: str, replicas: int) -> Any:
            meta = {"name": "d", "namespace": "default", "resourceVersion": version}
            return scale.update(
                self.scope, "d", lambda old: {"metadata": meta, "spec": {"replicas": replicas}}, UpdateOptions()
            )

        self.assertEqual(self.refused(of("1", 3)).code, 409)
        error = self.refused(of("", -1))
        self.assertEqual((error.code, (error.details or {})["kind"]), (422, "Scale"))
        missing = scale.update(self.scope, "none", lambda old: {}, UpdateOptions())
        self.assertEqual(self.refused(missing).code, 404)
