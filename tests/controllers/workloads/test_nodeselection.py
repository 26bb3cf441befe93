"""Tests for L{kubetwist.controllers.workloads.nodeselection}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.workloads.nodeselection import NO_EXECUTE, NO_SCHEDULE, node_is_selected, untolerated_taint


def node(**labels: str) -> Any:
    """Return a node."""
    return {"metadata": {"name": "n", "labels": labels}, "spec": {}}


def fits(spec: Any, candidate: Any) -> bool:
    """Return whether a node is selected."""
    return node_is_selected(spec, candidate["metadata"]["name"], candidate["metadata"]["labels"])


def requiring(*terms: Any) -> Any:
    """Return the spec of a pod that requires one of the terms."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


def expression(operator: str, *values: str) -> Any:
    """Return a term about the label a."""
    return {"matchExpressions": [{"key": "a", "operator": operator, "values": list(values)}]}


class AffinityTests(SynchronousTestCase):
    """Node selectors and required node affinity."""

    def test_selector(self) -> None:
        """All labels of a nodeSelector must match."""
        spec = {"nodeSelector": {"a": "1", "b": "2"}}
        self.assertTrue(fits(spec, node(a="1", b="2", c="3")))
        self.assertFalse(fits(spec, node(a="1")))
        self.assertFalse(fits(spec, node(a="1", b="3")))
        self.assertTrue(fits({}, node()))

    def test_operators(self) -> None:
        """Each operator is respected."""
        cases = [
            (("In", "1", "2"), True, False, False),
            (("NotIn", "1", "2"), False, True, True),
            (("Exists",), True, True, False),
            (("DoesNotExist",), False, False, True),
            (("Gt", "5"), False, True, False),
            (("Lt", "5"), True, False, False),
            (("Gt", "x"), False, False, False),
        ]
        for arguments, one, seven, absent in cases:
            spec = requiring(expression(*arguments))
            found = [fits(spec, candidate) for candidate in (node(a="1"), node(a="7"), node())]
            self.assertEqual(found, [one, seven, absent], arguments)
        self.assertFalse(fits(requiring(expression("Gt", "5")), node(a="1_0")))

    def test_terms(self) -> None:
        """One of the terms must match with all its expressions. An empty term never matches."""
        spec = requiring(expression("In", "1"), expression("In", "2"))
        self.assertTrue(fits(spec, node(a="2")))
        self.assertFalse(fits(spec, node(a="3")))
        self.assertFalse(fits(requiring({}), node(a="1")))
        self.assertFalse(fits(requiring(), node(a="1")))
        both = {**expression("In", "1"), **by_name("n")}
        self.assertTrue(fits(requiring(both), node(a="1")))
        self.assertFalse(fits(requiring({**both, **by_name("m")}), node(a="1")))


def by_name(name: str) -> Any:
    """Return a term about the name of the node."""
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


class TaintTests(SynchronousTestCase):
    """Taints and tolerations."""

    def test_tolerations(self) -> None:
        """A toleration matches taints with its key, value and effect. A missing field matches any value."""
        taint = {"key": "k", "value": "v", "effect": NO_SCHEDULE}
        good: list[Any] = [
            {"operator": "Exists"},
            {"key": "k", "operator": "Exists"},
            {"key": "k", "value": "v"},
            {"key": "k", "operator": "Equal", "value": "v", "effect": NO_SCHEDULE},
        ]
        bad: list[Any] = [
            {"key": "k"},
            {"key": "j", "operator": "Exists"},
            {"key": "k", "operator": "Exists", "effect": NO_EXECUTE},
        ]
        both = (NO_SCHEDULE, NO_EXECUTE)
        for one in good:
            self.assertIsNone(untolerated_taint([taint], [one], both), one)
        for one in bad:
            self.assertIs(untolerated_taint([taint], [one], both), taint, one)
        self.assertIs(untolerated_taint([taint], bad, both), taint)
        self.assertIsNone(untolerated_taint([taint], [*bad, good[0]], both))

    def test_effects(self) -> None:
        """Taints with other effects are ignored."""
        taint = {"key": "k", "effect": "PreferNoSchedule"}
        self.assertIsNone(untolerated_taint([taint], [], (NO_SCHEDULE, NO_EXECUTE)))
