"""Tests for L{kubetwist.controllers.autoscaling.scaletargets}."""

from __future__ import annotations

from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import UserInfo
from kubetwist.controllers.autoscaling.scaletargets import NoScale, ScaleTarget, ScaleTargets
from kubetwist.controllers.machinery.context import ControllerContext
from kubetwist.testing.memory import MemoryServer

OBJECTS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  names: {plural: shops, kind: Shop}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .status.selector}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, properties: {size: {type: integer}, selector: {type: string}}}
---
apiVersion: example.com/v1
kind: Shop
metadata: {name: s, namespace: default}
spec: {size: 2}
status: {size: 1, selector: app=shop}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: default}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: c}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: default}
"""


class ScaleTargetsTests(SynchronousTestCase):
    """Scales of built-in and custom resources."""

    def setUp(self) -> None:
        """Create the objects."""
        self.server = MemoryServer(OBJECTS)
        self.server.start()
        self.addCleanup(self.server.stop)
        context = ControllerContext(self.server.registry, cast("Clock", self.server.clock), custom=self.server)
        self.addCleanup(lambda: Deferred.fromCoroutine(context.stop()))
        self.targets = ScaleTargets(context, UserInfo("u", groups=("system:masters",)))

    def find(self, api_version: str, kind: str, name: str) -> ScaleTarget:
        """Return a target."""
        reference = {"apiVersion": api_version, "kind": kind, "name": name}
        return self.server.run(self.targets.get("default", reference))

    def check(self, resource: str, target: ScaleTarget, replicas: Any) -> None:
        """Check that a target can be scaled, and not twice from one state."""
        self.server.run(self.targets.update(target, 5))
        stored = self.server.get(resource, target.name, "default")
        assert stored is not None
        self.assertEqual(replicas(stored), 5)
        with self.assertRaises(APIStatusError) as caught:
            self.server.run(self.targets.update(target, 6))
        self.assertEqual(caught.exception.code, 409)

    def test_built_in(self) -> None:
        """A StatefulSet is found by its group and kind, in any version."""
        target = self.find("apps/v1beta1", "StatefulSet", "db")
        self.assertEqual((target.replicas, target.current, target.selector), (3, 0, "app=db"))
        self.check("statefulsets.apps", target, lambda obj: obj["spec"]["replicas"])

    def test_custom(self) -> None:
        """A custom resource is scaled by the paths of its definition."""
        target = self.find("example.com/v1", "Shop", "s")
        self.assertEqual((target.replicas, target.current, target.selector), (2, 1, "app=shop"))
        self.check("shops.example.com", target, lambda obj: obj["spec"]["size"])

    def test_missing(self) -> None:
        """Unknown kinds, kinds without scale, and unknown objects are errors."""
        cases = [
            ("a.b/v1", "X", "x", 'no matches for kind "X" in group "a.b"'),
            ("v1", "ConfigMap", "c", "the server could not find the requested resource"),
            ("apps/v1", "Deployment", "x", 'deployments.apps "x" not found'),
        ]
        for version, kind, name, text in cases:
            with self.assertRaises((NoScale, APIStatusError)) as caught:
                self.find(version, kind, name)
            self.assertEqual(str(caught.exception), text)
