"""Tests for L{kubetwist.registry.generic.validation}: what objects of thousands of parts cost."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.pod.validation.affinity import validate_topology_spread
from kubetwist.registry.core.resourcequota.validation import validate_resource_quota
from kubetwist.registry.strategies import strategy_for


class ManyTests(SynchronousTestCase):
    """Work is in proportion to what is sent, not to its square."""

    def test_many_scopes(self) -> None:
        """Thousands of scopes that are wrong are told of by one text, which quotes all of them, and not too often."""
        hard = {f"count/a{number}": "1" for number in range(20)} | {"secrets": "1", "services": "1"}
        unknown = [f"x{number}" for number in range(5)]
        obj = {"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "q"}}
        causes = validate_resource_quota({**obj, "spec": {"hard": hard, "scopes": [*unknown, "Terminating"]}})
        texts = {cause.message for cause in causes}
        self.assertEqual((len(causes), len(texts), len({id(cause) for cause in causes})), (7, 2, 2))
        expressions = [{"scopeName": "Terminating", "operator": "Exists"}] * 3
        spec = {"hard": hard, "scopeSelector": {"matchExpressions": expressions}}
        causes = validate_resource_quota({**obj, "spec": spec})
        self.assertEqual((len(causes), len({id(cause) for cause in causes})), (6, 1))
        hard = {f"hugepages-{number}": "1" for number in range(3000)}
        causes = validate_resource_quota({**obj, "spec": {"hard": hard, "scopes": ["BestEffort"] * 5000}})
        self.assertTrue(5000 <= len(causes) < 7000, len(causes))

    def test_constraints_that_are_alike(self) -> None:
        """Of constraints for the same topology all but the last are duplicates."""
        constraint = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
        constraints = [{**constraint, "topologyKey": key} for key in ("a", "b", "a", "a")]
        causes: list[Any] = []
        validate_topology_spread(constraints, "c", causes)
        self.assertEqual([cause.field.partition(".")[0] for cause in causes], ["c[0]", "c[2]"])

    def test_types_of_variables(self) -> None:
        """Variables that are lists of other variables, each short, end in a message and not in a traceback."""
        group, kind = "admissionregistration.k8s.io", "ValidatingAdmissionPolicy"
        variables = [{"name": "v0", "expression": "[1]"}]
        for number in range(1200):
            expression = f"[variables.v{number}, variables.v{number}]"
            variables.append({"name": f"v{number + 1}", "expression": expression})
        spec = {"variables": variables, "validations": [{"expression": "true"}]}
        policy = {"kind": kind, "apiVersion": f"{group}/v1", "metadata": {"name": "p"}, "spec": spec}
        strategy_for(group, kind).default(policy)
        texts = [cause.message for cause in strategy_for(group, kind).validate(policy)]
        self.assertTrue(any("the types nest too deep" in text for text in texts), texts[:3])
