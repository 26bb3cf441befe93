"""Tests of L{kubetwist.registry.core.pod.validation.affinity}, through the strategy of pods."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.registry.core.pod.validation.affinity import validate_topology_spread
from kubetwist.registry.core.pod.validation.options import PodValidationOptions
from kubetwist.registry.strategies import strategy_for
from tests.registry.pods import (
    CONTAINER,
    METADATA,
    problems,
)


class SpreadTests(SynchronousTestCase):
    """Tests of topology spread constraints and pod affinity."""

    def test_label_keys(self) -> None:
        """A label of matchLabelKeys must not be in the label selector."""
        for key, place, topology in (
            ("topologySpreadConstraints", "spec.topologySpreadConstraints[0]", {"whenUnsatisfiable": "DoNotSchedule"}),
            ("affinity", "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]", {}),
        ):
            term: dict[str, Any] = {"topologyKey": "t", "matchLabelKeys": ["a"], **topology}
            if topology:
                term["maxSkew"] = 1

            def found(name: str = key, term: dict[str, Any] = term, **more: Any) -> list[str]:
                part = {**term, **more}
                required = {"requiredDuringSchedulingIgnoredDuringExecution": [part]}
                value: Any = [part] if name != "affinity" else {"podAffinity": required}
                obj = {"metadata": {**METADATA, "labels": {"a": "1"}}, "spec": {"containers": [CONTAINER], name: value}}
                obj = orjson.loads(orjson.dumps(obj))
                strategy_for("", "Pod").default(obj)
                strategy_for("", "Pod").prepare_for_create(obj)
                return [str(cause) for cause in strategy_for("", "Pod").validate(obj)]

            self.assertEqual(found(labelSelector={"matchLabels": {"b": "1"}}), [])
            self.assertEqual(
                found(labelSelector={"matchLabels": {"a": "1"}}),
                [f'{place}[0]: Invalid value: "a": exists in both matchLabelKeys and labelSelector'],
            )
            self.assertEqual(
                found(matchLabelKeys=["a b"]),
                [f"{place}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
            )

    def test_domains(self) -> None:
        """All errors of minDomains are reported."""
        constraint = {"maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 0}
        self.assertEqual(len(problems(topologySpreadConstraints=[{**constraint, "labelSelector": {}}])), 2)

    def test_constraints_that_are_alike(self) -> None:
        """All but the last of equal constraints are duplicates."""
        constraint = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
        constraints = [{**constraint, "topologyKey": key} for key in ("a", "b", "a", "a")]
        causes: list[Any] = []
        validate_topology_spread(constraints, "c", causes, PodValidationOptions(FeatureGates()))
        self.assertEqual([cause.field.partition(".")[0] for cause in causes], ["c[0]", "c[2]"])
