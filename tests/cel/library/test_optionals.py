"""Tests for L{kubetwist.cel.library.optionals} in the environment of Kubernetes."""

from __future__ import annotations

from tests.cel.library.support import ExpressionTestCase


class OptionalTests(ExpressionTestCase):
    """Tests for optional values."""

    def test_values(self) -> None:
        """An optional has a value of any type, or is empty."""
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
        """C{optional.ofNonZeroValue} is empty for the zero value of every type."""
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
        """C{or} and C{orValue} evaluate alternatives only until one has a value."""
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
