"""Tests for L{kubetwist.cel.library.quantities} and L{kubetwist.cel.library.versions}."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis.strategies import SearchStrategy, builds, integers, sampled_from

from kubetwist.api.quantity import parse_quantity
from tests.cel.library.support import ExpressionTestCase


def quantities() -> SearchStrategy[str]:
    """Strategy of strings of quantities."""
    suffixes = sampled_from(("", "n", "u", "m", "k", "M", "G", "E", "Ki", "Mi", "Ei", "e3", "E-2"))
    return builds("{}{}".format, integers(-(10**19), 10**19) | integers(-9, 9), suffixes)


class QuantityTests(ExpressionTestCase):
    """Tests for quantities."""

    def test_scalars(self) -> None:
        """A quantity has a sign, and is converted to numbers where possible."""
        self.assertHolds(
            (
                "sign(quantity('5')) == 1 && sign(quantity('-5m')) == -1 && sign(quantity('0')) == 0",
                "quantity('50k').isInteger() && quantity('50k').asInteger() == 50000",
                "quantity('50000000G').isInteger() && quantity('1Ki').asInteger() == 1024",
                "!quantity('9999999999999999999999999999999999999G').isInteger()",
                "!quantity('1000m').isInteger() && !quantity('0.5').isInteger()",
                "quantity('50k').sub(20000).asApproximateFloat() == 30000.0",
                "quantity('100m').asApproximateFloat() == 0.1",
                "isQuantity('1.3G') && isQuantity('1.3Gi') && isQuantity('10000k') && isQuantity('-0.5e3')",
                "!isQuantity('1,3G') && !isQuantity('200K') && !isQuantity('Three')",
                "!isQuantity('') && !isQuantity(' 1')",
                "type(quantity('1')) == type(quantity('2'))",
            )
        )

    def test_arithmetic(self) -> None:
        """Quantities and integers are added and subtracted regardless of their suffixes."""
        self.assertHolds(
            (
                "quantity('50k').add(quantity('20k')) == quantity('70k')",
                "quantity('50k').add(20) == quantity('50020')",
                "quantity('50k').sub(quantity('20k')) == quantity('30k')",
                "quantity('50k').add(20).sub(quantity('100k')).sub(-50000) == quantity('20')",
                "quantity('1Gi') == quantity('1024Mi') && quantity('1.5') == quantity('1500m')",
                "quantity('9223372036854775807').add(1) == quantity('9223372036854775808')",
                "quantity('1Mi') in [quantity('1048576')]",
            )
        )

    def test_comparisons(self) -> None:
        """Quantities can be compared."""
        self.assertHolds(
            (
                "quantity('200M').compareTo(quantity('0.2G')) == 0",
                "quantity('50M').compareTo(quantity('50Mi')) == -1 && quantity('50Mi').compareTo(quantity('50M')) == 1",
                "quantity('150Mi').isGreaterThan(quantity('100Mi')) && !quantity('1').isGreaterThan(quantity('1'))",
                "quantity('50M').isLessThan(quantity('100M')) && !quantity('100M').isLessThan(quantity('50M'))",
            )
        )

    def test_without_fields(self) -> None:
        """Selecting a field of a quantity is an error."""
        self.assertRefused({"quantity('1').value": "unexpected failed resolution of 'kubernetes.Quantity'"})

    def test_failures(self) -> None:
        """Parsing an invalid quantity, or converting a fraction to an integer, is an error of apimachinery."""
        form = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        self.assertFails(
            {
                "quantity('Three')": form,
                "quantity('')": form,
                "quantity('1 ')": form,
                "quantity('200K')": "unable to parse quantity's suffix",
                "quantity('0.5').asInteger()": "cannot convert value to integer",
                "quantity('9999999999999999999999999999999999999G').asInteger()": "cannot convert value to integer",
            }
        )
        # In kube-apiserver, too, this is not a member function.
        self.assertRefused(
            {"quantity('1').sign()": "found no matching overload for 'sign' applied to 'kubernetes.Quantity.()'"}
        )

    @given(quantities(), quantities())
    def test_algebra(self, one: str, other: str) -> None:
        """Sums, differences and comparisons agree with exact arithmetic."""
        left, right = parse_quantity(one), parse_quantity(other)
        order = (left > right) - (left < right)
        self.assertEqual(self.evaluate("quantity(x).compareTo(quantity(y))", x=one, y=other), order)
        self.assertHolds(
            (
                "quantity(x).add(quantity(y)) == quantity(y).add(quantity(x))",
                "quantity(x).add(quantity(y)).sub(quantity(y)) == quantity(x)",
                "sign(quantity(x).sub(quantity(y))) == quantity(x).compareTo(quantity(y))",
                "quantity(x).isLessThan(quantity(y)) == (quantity(x).compareTo(quantity(y)) < 0)",
                "!quantity(x).isInteger() || quantity(string(quantity(x).asInteger())) == quantity(x)",
            ),
            x=one,
            y=other,
        )
        approximate = self.evaluate("quantity(x).add(quantity(y)).asApproximateFloat()", x=one, y=other)
        self.assertLessEqual(abs(Fraction(approximate) - left - right), (abs(left) + abs(right)) / 10**9)

    def test_hostile(self) -> None:
        """Huge exponents and digits are rejected, and sums of valid quantities remain cheap."""
        self.assertHolds(
            (
                "!isQuantity('1e' + n)",
                "!isQuantity(n)",
                "quantity('1e900').add(quantity('1n')).isGreaterThan(quantity('1e899'))",
                "quantity('1e900').asApproximateFloat() == double('inf')",
            ),
            n="9" * 100_000,
        )

    def test_costs(self) -> None:
        """Parsing costs a tenth of the length, other functions 1."""
        self.assertCosts(
            {
                "quantity('12345678901')": 2,
                "quantity('1').add(1)": 2,
                "quantity('1') == quantity('2')": 3,
                "quantity('1').isLessThan(quantity('2'))": 3,
            }
        )
