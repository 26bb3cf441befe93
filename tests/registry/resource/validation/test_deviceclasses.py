"""Tests for L{kubetwist.registry.resource.validation.deviceclasses}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.resource.validation import deviceclasses
from tests.registry.resource.validation.devices import fields


class ClassTests(SynchronousTestCase):
    """Tests for L{validate_device_class}."""

    def test_valid(self) -> None:
        """A class has selectors, configuration and an extended resource name."""
        config = {"opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}
        spec = {
            "selectors": [{"cel": {"expression": "true"}}],
            "config": [config],
            "extendedResourceName": "example.com/gpu",
        }
        self.assertEqual(deviceclasses.validate_device_class({"spec": spec}), [])

    def test_invalid(self) -> None:
        """Empty selectors and configurations are invalid, and so are extended resources of Kubernetes."""
        config = [{"opaque": {"driver": "Bad Driver", "parameters": "str"}}, {}, {"opaque": {"driver": "d"}}]
        spec = {"selectors": [{}], "config": config, "extendedResourceName": "bad name"}
        self.assertEqual(
            fields(deviceclasses.validate_device_class({"spec": spec})),
            [
                "spec.selectors[0].cel",
                "spec.config[0].opaque.driver",
                "spec.config[0].opaque.parameters",
                "spec.config[1].opaque",
                "spec.config[2].opaque.parameters",
                "spec.extendedResourceName",
            ],
        )
