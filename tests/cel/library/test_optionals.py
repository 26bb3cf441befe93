"""Tests for L{kubetwist.cel.library.optionals}, and of what else the environment of Kubernetes has."""

from __future__ import annotations

from kubetwist.cel.library.environments import kubernetes_environment

from .support import ExpressionTestCase


class OptionalTests(ExpressionTestCase):
    """Optional values."""

    def test_values(self) -> None:
        """An optional holds any value, or none."""
        self.assertHolds(
            (
                "optional.of(null).hasValue() && !optional.none().hasValue() && optional.of(1).value() == 1",
                "optional.of(1) == optional.of(1) && optional.of(1) != optional.of(2)",
                "optional.none() == optional.none() && optional.of(1) != optional.none()",
                "type(optional.of(1)) == optional_type",
            )
        )
        self.assertFails({"optional.none().value()": "optional.none() dereference"})

    def test_zero(self) -> None:
        """What a type begins with counts as nothing, where that is asked for."""
        self.assertHolds(
            (
                "['', 'x'].map(v, optional.ofNonZeroValue(v).hasValue()) == [false, true]",
                "[0, 1].map(v, optional.ofNonZeroValue(v).hasValue()) == [false, true]",
                "!optional.ofNonZeroValue(null).hasValue() && !optional.ofNonZeroValue(false).hasValue()",
                "!optional.ofNonZeroValue([]).hasValue() && !optional.ofNonZeroValue({}).hasValue()",
                "!optional.ofNonZeroValue(b'').hasValue() && !optional.ofNonZeroValue(0.0).hasValue()",
                "!optional.ofNonZeroValue(duration('0s')).hasValue() && optional.ofNonZeroValue([0]).hasValue()",
                "!optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z')).hasValue()",
                "optional.ofNonZeroValue(timestamp(0)).hasValue() && optional.ofNonZeroValue(0u) == optional.none()",
            )
        )

    def test_alternatives(self) -> None:
        """The first that has a value is taken; the others are not looked at."""
        self.assertHolds(
            (
                "optional.none().orValue(3) == 3 && optional.of(1).orValue(1 / 0) == 1",
                "optional.none().or(optional.of(4)).value() == 4 && optional.of(1).or(optional.of(1 / 0)).value() == 1",
                "{'a': 1}[?'b'].orValue(2) == 2 && {'a': {'b': 1}}.?a.?b.value() == 1 && [1][?3].orValue(5) == 5",
                "{'a': 1}.?a.optMap(v, v + 1).value() == 2 && !{'a': 1}.?b.optMap(v, v + 1).hasValue()",
                "{'a': [1]}.?a.optFlatMap(v, v[?0]).value() == 1",
                "optional.unwrap([optional.of(1), optional.none(), optional.of(2)]) == [1, 2]",
                "[optional.none(), optional.of('x')].unwrapOpt() == ['x']",
                "{?'a': optional.none(), ?'b': optional.of(1)} == {'b': 1} && [?optional.none(), 1] == [1]",
            )
        )
        self.assertFails({"optional.none().orValue(1 / 0)": "division by zero"})


class EnvironmentTests(ExpressionTestCase):
    """What the environment is made of."""

    def test_made_once(self) -> None:
        """The environment is made once; those with variables share its declarations."""
        self.assertIs(kubernetes_environment(), kubernetes_environment())

    def test_two_variables(self) -> None:
        """Comprehensions may have the index or key as well as the value."""
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
        """Numbers of different types compare, but are not said to be equal."""
        self.assertHolds(("1 < 2.5 && 2u > 1 && 1u <= 1.0 && 1.5 >= 1u",))
        self.assertRefused({"1 == 1.0": "found no matching overload for '_==_' applied to '(int, double)'"})

    def test_absent(self) -> None:
        """What is for policies alone, or came with later releases, is not there."""
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
        """A list that is written down has elements of one type."""
        self.assertRefused({"[1, 'a']": "expected type 'int' but found 'string'"})
