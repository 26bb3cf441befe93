"""Tests for L{kubetwist.api.quantity}."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api import quantity
from kubetwist.api.quantity import Quantity, canonical, parse_quantity

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "e3": Fraction(10**3),
    "E-3": Fraction(1, 1000),
}

texts = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 10**9),
    st.just("") | st.integers(0, 10**7).map(".{}".format),
    st.sampled_from(sorted(SUFFIXES)),
)


class QuantityTests(SynchronousTestCase):
    """Tests for quantities."""

    def test_canonical(self) -> None:
        """Quantities keep their suffix family and are formatted as short as possible."""
        for text, stored in {
            "0": "0",
            "0Ki": "0",
            "-0": "0",
            "0.5": "500m",
            ".5": "500m",
            "1000m": "1",
            "1000": "1k",
            "1500m": "1500m",
            "1.5": "1500m",
            "100m": "100m",
            "5000000k": "5G",
            "1024Mi": "1Gi",
            "1.5Gi": "1536Mi",
            "0.5Ki": "512",
            "1.2Ki": "1228800m",
            "-1.5Ki": "-1536",
            "1e3": "1e3",
            "1e4": "10e3",
            "1000e3": "1e6",
            "1e-10": "1e-9",
            "0.0000000001": "1n",
            "-0.0000000001": "-1n",
            "2048Ei": "9223372036854775807",
            " 1 ": "1",
        }.items():
            self.assertEqual(canonical(text), stored, text)

    def test_kept_texts(self) -> None:
        """Texts that the reference considers canonical are kept."""
        for text in ("1.", "1.500", "+5", "1E3", "005", "0012Ki"):
            self.assertEqual(canonical(text), text)

    def test_numbers(self) -> None:
        """JSON numbers are quantities, and null is zero."""
        self.assertEqual([canonical(value) for value in (2, 0.5, 1500, 2.0, None)], ["2", "500m", "1500", "2", "0"])
        self.assertRaises(ValueError, canonical, True)
        self.assertRaises(ValueError, canonical, [])

    def test_errors(self) -> None:
        """An invalid quantity is rejected with the reference's message."""
        form = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        for text, message in {
            "": form,
            "1 Gi": form,
            "5x": form,
            "1.1.1": form,
            "٣": form,
            "1i": "unable to parse quantity's suffix",
            "1e": "unable to parse quantity's suffix",
            "1mm": "unable to parse quantity's suffix",
            "1e1001": "unable to parse numeric part of quantity",
            "1e99999999999999": "unable to parse numeric part of quantity",
            "1" * 2000: "unable to parse numeric part of quantity",
        }.items():
            self.assertEqual(str(self.assertRaises(ValueError, canonical, text)), message, text)

    def test_arithmetic(self) -> None:
        """Quantities of different families can be added and compared."""
        self.assertEqual(str(Quantity.parse("1Gi") + Quantity.parse("512Mi")), "1536Mi")
        self.assertEqual(str(Quantity(0) + Quantity.parse("2Gi")), "2Gi")
        self.assertEqual(str(Quantity.parse("1") - Quantity.parse("1500m")), "-500m")
        self.assertEqual(str(-Quantity.parse("1Ki")), "-1Ki")
        self.assertEqual(Quantity.parse("1000m"), Quantity.parse("1"))
        self.assertGreater(Quantity.parse("1Ki"), Quantity.parse("1k"))
        self.assertEqual([Quantity.parse(text).sign() for text in ("-1", "0", "1n")], [-1, 0, 1])
        self.assertEqual(Quantity.parse("1500m").scaled_value(), 2)
        self.assertEqual(Quantity.parse("-1500m").scaled_value(), -2)
        self.assertEqual(Quantity.parse("1.5").scaled_value(-3), 1500)
        self.assertFalse(Quantity.parse("0"))

    def test_cache_is_bounded(self) -> None:
        """Long texts are not cached."""
        before = quantity._cached.cache_info().currsize
        canonical("1" + "0" * 500)
        self.assertEqual(quantity._cached.cache_info().currsize, before)

    @given(texts)
    def test_amount(self, text: str) -> None:
        """The amount is the number times its suffix, rounded away from zero to a multiple of 10^-9."""
        suffix = max((one for one in SUFFIXES if text.endswith(one)), key=len)
        exact = Fraction(text.removesuffix(suffix)) * SUFFIXES[suffix]
        result = parse_quantity(text)
        self.assertTrue(abs(exact) <= abs(result) < abs(exact) + Fraction(1, 10**9))
        self.assertEqual(result >= 0, exact >= 0)

    @given(texts)
    def test_canonical_is_stable(self, text: str) -> None:
        """The canonical form has the same amount, and is canonical."""
        stored = canonical(text)
        self.assertEqual(parse_quantity(stored), parse_quantity(text))
        self.assertEqual(canonical(stored), stored)

    @given(st.text(st.sampled_from("0123456789.+-eEinumkKMGTP ")))
    def test_any_text(self, text: str) -> None:
        """Any text is a quantity, or is rejected with a message."""
        try:
            stored = canonical(text)
        except ValueError as error:
            self.assertRegex(str(error), "^(quantities must|unable to parse)")
        else:
            self.assertEqual(parse_quantity(stored), parse_quantity(text))
