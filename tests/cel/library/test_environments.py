"""Tests for L{kubetwist.cel.library.environments}."""

from __future__ import annotations

from kubetwist.cel.library.environments import kubernetes_environment
from tests.cel.library.support import ExpressionTestCase


class EnvironmentTests(ExpressionTestCase):
    """Tests for L{kubernetes_environment}."""

    def test_made_once(self) -> None:
        """The environment is created once; extensions share its declarations."""
        self.assertIs(kubernetes_environment(), kubernetes_environment())

    def test_two_variables(self) -> None:
        """Comprehensions may have two variables: index or key, and value."""
        self.assertHolds(
            (
                "[3, 2].all(i, v, i < v) && {'a': 1}.exists(k, v, k == 'a' && v == 1)",
                "[5, 6].existsOne(i, v, i == 1) && ![5, 6].exists(i, v, i == v)",
                "[1, 2].transformList(i, v, i + v) == [1, 3] && [1, 2].transformList(i, v, i > 0, v) == [2]",
                "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
                "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v) == {'b': 2}",
                "{'a': 'b'}.transformMapEntry(k, v, {v: k}) == {'b': 'a'}",
            )
        )
        self.assertFails(
            {
                "{'a': 'c', 'b': 'c'}.transformMapEntry(k, v, {v: k})": "insert failed: key c already exists",
            }
        )

    def test_numbers(self) -> None:
        """Numbers of different types can be ordered, but not compared for equality."""
        self.assertHolds(("1 < 2.5 && 2u > 1 && 1u <= 1.0 && 1.5 >= 1u",))
        self.assertRefused({"1 == 1.0": "found no matching overload for '_==_' applied to '(int, double)'"})

    def test_absent(self) -> None:
        """Functions for policies only, or of later releases, are not declared."""
        self.assertRefused(
            {
                "jsonpatch.escapeKey('a')": "undeclared reference to 'jsonpatch' (in container '')",
                "[1].includes(1)": "undeclared reference to 'includes' (in container '')",
                "math.greatest(1, 2)": "undeclared reference to 'math' (in container '')",
                "kubernetes.Quantity": "undeclared reference to 'kubernetes' (in container '')",
                "authorizer": "undeclared reference to 'authorizer' (in container '')",
            }
        )

    def test_mixed_literals(self) -> None:
        """The elements of a list literal must have one type."""
        self.assertRefused({"[1, 'a']": "expected type 'int' but found 'string'"})
