"""Tests for L{kubetwist.controllers.validatingadmissionpolicystatus} and L{kubetwist.admission.typechecking}."""

from __future__ import annotations

from typing import Any

from kubetwist.controllers.validatingadmissionpolicystatus import (
    GROUP,
    RESOURCE,
    ValidatingAdmissionPolicyStatusController,
)
from tests.controllers.harness import ControllerTestCase


class PolicyStatusTests(ControllerTestCase):
    """Type checking in the status of policies."""

    resources = ("namespaces", "configmaps", "deployments", "validatingadmissionpolicies")

    def policy(self, *expressions: str, resources: tuple[str, ...] = ("deployments",), **spec: Any) -> Any:
        """Create a policy, and return its checked status."""
        rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [*resources]}
        spec.setdefault("matchConstraints", {"resourceRules": [rule]})
        validations = [{"expression": one} for one in expressions]
        self.start(ValidatingAdmissionPolicyStatusController)
        self.make(RESOURCE, "p", "", GROUP, spec={**spec, "validations": validations})
        self.settle()
        return self.find(RESOURCE, "p", "", GROUP)["status"]

    def test_right(self) -> None:
        """A policy with correct types has no warnings."""
        status = self.policy(
            "object.spec.replicas < 9",
            "variables.n == 'x'",
            variables=[{"name": "n", "expression": "object.metadata.name"}],
        )
        self.assertEqual(status, {"observedGeneration": 1, "typeChecking": {}})

    def test_wrong(self) -> None:
        """Warnings for unknown fields and type mismatches have the kind and the path."""
        status = self.policy("object.spec.replicas == '3'", "object.spec.nothing > 1")
        first, second = status["typeChecking"]["expressionWarnings"]
        self.assertEqual(first["fieldRef"], "spec.validations[0].expression")
        self.assertTrue(
            first["warning"].startswith("apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload")
        )
        self.assertIn("undefined field 'nothing'", second["warning"])

    def test_wildcards(self) -> None:
        """Rules without specific kinds are not checked."""
        self.assertEqual(self.policy("object.nothing == 1", resources=("*",))["typeChecking"], {})

    def test_params(self) -> None:
        """Parameters are type-checked, too."""
        status = self.policy(
            "params.data.x == 'y'", "params.nothing == 1", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}
        )
        (only,) = status["typeChecking"]["expressionWarnings"]
        self.assertEqual(only["fieldRef"], "spec.validations[1].expression")

    def test_changed(self) -> None:
        """A new generation is checked again."""
        self.policy("object.nothing == 1")
        rule = {"expression": "true"}
        self.change(RESOURCE, "p", lambda obj: obj["spec"].update(validations=[rule]), "", GROUP)
        self.settle()
        status = self.find(RESOURCE, "p", "", GROUP)["status"]
        self.assertEqual(status, {"observedGeneration": 2, "typeChecking": {}})
