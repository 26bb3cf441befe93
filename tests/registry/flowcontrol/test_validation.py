"""Tests for L{kubetwist.registry.flowcontrol.validation}."""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.flowcontrol.bootstrap import PRIORITY_LEVELS
from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import copy, new_status_problems, problems

FLOW = "flowcontrol.apiserver.k8s.io"


class FlowSchemaTests(SynchronousTestCase):
    """Tests for the validation of flow schemas."""

    RESOURCES: ClassVar[dict[str, Any]] = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
    USER: ClassVar[dict[str, Any]] = {"kind": "User", "user": {"name": "u"}}

    def schema(self, **rule: Any) -> list[str]:
        """Return the errors of a flow schema with one rule."""
        rule.setdefault("subjects", [self.USER])
        if "nonResourceRules" not in rule:
            rule.setdefault("resourceRules", [self.RESOURCES])
        spec = {"priorityLevelConfiguration": {"name": "l"}, "rules": [rule]}
        return [one.removeprefix("spec.rules[0].") for one in problems(FLOW, "FlowSchema", spec=spec)]

    def paths(self, *urls: str) -> list[str]:
        """Return the errors of paths."""
        return self.schema(nonResourceRules=[{"verbs": ["get"], "nonResourceURLs": list(urls)}])

    def test_paths(self) -> None:
        """Paths are absolute, with a wildcard at the end only."""
        path = "nonResourceRules[0].nonResourceURLs"
        self.assertEqual(self.paths("/", "/healthz", "/apis/*", "/*"), [])
        self.assertEqual(self.paths("*"), [])
        self.assertEqual(
            self.paths("", "a", "/a b", "/a//b", "/a*", "/*/b", "/*/*"),
            [
                f'{path}[0]: Invalid value: "": must not be empty',
                f'{path}[1]: Invalid value: "a": must start with slash',
                f'{path}[2]: Invalid value: "/a b": must not contain white-space',
                f'{path}[3]: Invalid value: "/a//b": must not contain double slash',
                f'{path}[4]: Invalid value: "/a*": wildcard can only do suffix matching',
                f'{path}[5]: Invalid value: "/*/b": wildcard can only do suffix matching',
                f'{path}[6]: Invalid value: "/*/*": wildcard can only do suffix matching',
            ],
        )
        text = "if '*' is present, must not specify other non-resource URLs"
        self.assertEqual(self.paths("*", "x"), [f'{path}: Invalid value: ["*","x"]: {text}'])

    def test_verbs(self) -> None:
        """A wildcard must be the only verb, and no further verb is validated then."""
        result = self.schema(resourceRules=[{**self.RESOURCES, "verbs": ["*", "eat"]}])
        text = "if '*' is present, must not specify other verbs"
        self.assertEqual(result, [f'resourceRules[0].verbs: Invalid value: ["*","eat"]: {text}'])

    def test_namespaces(self) -> None:
        """Namespaces are names, or a single wildcard."""
        path = "resourceRules[0].namespaces"
        result = self.schema(resourceRules=[{**self.RESOURCES, "namespaces": ["*", "A"]}])
        text = "if '*' is present, must not specify other namespaces"
        self.assertEqual(result, [f'{path}: Invalid value: ["*","A"]: {text}'])
        (message,) = self.schema(resourceRules=[{**self.RESOURCES, "namespaces": ["A"]}])
        text = "each member of this list must be '*' or a DNS-1123 label; a lowercase RFC 1123 label must"
        self.assertIn(f'{path}[0]: Invalid value: "A": {text}', message)

    def test_subjects(self) -> None:
        """A subject has the field of its kind, and no fields of other kinds."""
        self.assertEqual(
            self.schema(subjects=[{"kind": "ServiceAccount", "serviceAccount": {}}]),
            [
                "subjects[0].serviceAccount.name: Required value",
                "subjects[0].serviceAccount.namespace: Required value: must specify namespace for service account",
            ],
        )
        both = {"serviceAccount": {"name": "*", "namespace": "n"}, "user": {"name": "u"}, "group": {"name": "g"}}
        expected = {
            "ServiceAccount": ["user", "group"],
            "User": ["serviceAccount", "group"],
            "Group": ["serviceAccount", "user"],
        }
        for kind, names in expected.items():
            result = self.schema(subjects=[{"kind": kind, **both}])
            self.assertEqual([one.partition(":")[0] for one in result], [f"subjects[0].{name}" for name in names])

    def test_conditions(self) -> None:
        """Conditions have a type, which is unique."""
        for kind in ("FlowSchema", "PriorityLevelConfiguration"):
            conditions = [{"type": "A"}, {"type": "A"}, {}]
            self.assertEqual(
                new_status_problems(FLOW, kind, {"conditions": conditions}),
                [
                    'status.conditions[1].type: Duplicate value: "A"',
                    "status.conditions[2].type: Required value",
                ],
            )


class PriorityLevelTests(SynchronousTestCase):
    """Tests for the validation of priority levels."""

    def level(self, name: str, spec: dict[str, Any]) -> list[str]:
        """Return the errors of a level with this name."""
        strategy = strategy_for(FLOW, "PriorityLevelConfiguration")
        obj = copy({"metadata": {"name": name}, "spec": spec})
        strategy.default(obj)
        return [str(cause) for cause in strategy.validate(obj)]

    def queuing_errors(self, queues: int, hand: int) -> list[str]:
        """Return the errors of a hand size."""
        response = {"type": "Queue", "queuing": {"queues": queues, "handSize": hand}}
        return self.level("l", {"type": "Limited", "limited": {"limitResponse": response}})

    def test_hands(self) -> None:
        """The hand size is limited by the bits of a hash."""
        path = "spec.limited.limitResponse.queuing.handSize"
        self.assertEqual(self.queuing_errors(1024, 6), [])
        self.assertEqual(self.queuing_errors(10_000_000, 2), [])
        text = "required entropy bits of deckSize 512 and handSize 8 should not be greater than 60"
        self.assertEqual(self.queuing_errors(512, 8), [f"{path}: Invalid value: 8: {text}"])

    def test_fixed(self) -> None:
        """The two mandatory levels are immutable, except for the share of one."""
        for name, spec in PRIORITY_LEVELS.items():
            self.assertEqual(self.level(name, spec), [], name)
        self.assertEqual(self.level("exempt", {"type": "Exempt"}), [])
        self.assertEqual(self.level("exempt", {"type": "Exempt", "exempt": {"lendablePercent": 5}}), [])
        limited = {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}
        self.assertEqual(
            self.level("exempt", {"type": "Exempt", "limited": limited}),
            [
                "spec.limited: Forbidden: must be nil if the type is not Limited",
                'spec: Invalid value: {"Type":"Exempt","Limited":{"NominalConcurrencyShares":5,"LimitResponse":'
                '{"Type":"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: '
                "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value",
            ],
        )
        (result,) = self.level("catch-all", {"type": "Limited", "limited": {**limited, "lendablePercent": 1}})
        self.assertTrue(result.endswith(": spec of 'catch-all' must equal the fixed value"), result)
