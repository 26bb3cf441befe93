"""Tests of feature gates of HorizontalPodAutoscalers."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.gatetools import create_errors, created, gated, update_errors, updated

KIND = ("autoscaling", "HorizontalPodAutoscaler")
SPEC: dict[str, Any] = {
    "maxReplicas": 2,
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
}
METRIC = {
    "type": "External",
    "external": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}},
}


class GateTests(SynchronousTestCase):
    """Tests of the fields and the validation."""

    def test_tolerance(self) -> None:
        """The tolerance is dropped if its gate is disabled, unless it is in use."""
        for name in ("scaleUp", "scaleDown"):
            spec = {**SPEC, "behavior": {name: {"tolerance": "100m"}}}
            on, off = (gated(*KIND, HPAConfigurableTolerance=value) for value in (True, False))
            used, unused = created(on, spec=spec), created(off, spec=spec)
            self.assertEqual(used["spec"]["behavior"][name]["tolerance"], "100m")
            self.assertNotIn("tolerance", unused["spec"]["behavior"][name])
            self.assertIn("tolerance", updated(off, used, spec=spec)["spec"]["behavior"][name])
            self.assertNotIn("tolerance", updated(off, unused, spec=spec)["spec"]["behavior"][name])

    def test_scale_to_zero(self) -> None:
        """The least number of replicas is 0 if the gate is enabled, or if the stored object has it."""
        spec = {**SPEC, "minReplicas": 0, "metrics": [METRIC]}
        on, off = (gated(*KIND, HPAScaleToZero=value) for value in (True, False))
        self.assertEqual(create_errors(on, spec=spec), [])
        text = "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"
        self.assertEqual(create_errors(off, spec=spec), [text])
        self.assertEqual(update_errors(off, created(on, spec=spec), spec=spec), [])
        self.assertEqual(update_errors(off, created(on, spec={**spec, "minReplicas": 1}), spec=spec), [text])
        self.assertEqual(create_errors(gated(*KIND, (1, 37)), spec=spec), [])

    def test_generation(self) -> None:
        """Autoscalers have generations since 1.37, by their gate."""
        self.assertTrue(gated(*KIND, (1, 37)).has_generation)
        self.assertFalse(gated(*KIND, (1, 37), HPAGeneration=False).has_generation)
        self.assertFalse(gated(*KIND, (1, 36)).has_generation)

    def test_releases(self) -> None:
        """Until 1.33, API versions of targets were not validated; the text about replicas changed in 1.36."""
        target = {"apiVersion": "", "kind": "Deployment", "name": "d"}
        spec = {"maxReplicas": 0, "scaleTargetRef": target, "metrics": [METRIC]}
        replicas = [
            "spec.maxReplicas: Invalid value: 0: must be greater than 0",
            "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
        ]
        version = 'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group'
        self.assertEqual(create_errors(gated(*KIND, (1, 33)), spec=spec), replicas)
        self.assertEqual(create_errors(gated(*KIND, (1, 35)), spec=spec), [*replicas, version])
        required = "spec.maxReplicas: Required value: must be set and greater than 0"
        self.assertEqual(create_errors(gated(*KIND), spec=spec), [required, replicas[1], version])
