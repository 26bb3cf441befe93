"""Tests for L{kubetwist.cel.library.namedformats}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import sampled_from, text

from kubetwist.cel.library.namedformats import FORMATS

from .support import ExpressionTestCase

#: A valid and an invalid string of each format.
_EXAMPLES = {
    "dns1123Label": ("my-name", "my.name"),
    "dns1123Subdomain": ("my.name", "My.Name"),
    "dns1035Label": ("my-name", "1name"),
    "qualifiedName": ("example.com/My_Name", "/x"),
    "dns1123LabelPrefix": ("my-name-", "my.name-"),
    "dns1123SubdomainPrefix": ("my.name-", "My.Name-"),
    "dns1035LabelPrefix": ("my-name-", "1name-"),
    "labelValue": ("", "-x"),
    "uri": ("https://example.com/", "../x"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123e4567"),
    "byte": ("aGVsbG8=", "aGVsbG8"),
    "date": ("2021-01-01", "2021-02-30"),
    "datetime": ("2021-01-01T00:00:00Z", "2021-01-01"),
}


class NamedFormatTests(ExpressionTestCase):
    """Tests for named formats."""

    def test_examples(self) -> None:
        """Every format accepts valid strings and rejects invalid ones, by function and by name."""
        self.assertEqual(set(_EXAMPLES), set(FORMATS))
        for name, (good, bad) in _EXAMPLES.items():
            self.assertHolds(
                (
                    f"!format.{name}().validate(good).hasValue() && format.{name}().validate(bad).value().size() > 0",
                    f"format.named('{name}').value() == format.{name}()",
                ),
                good=good,
                bad=bad,
            )

    def test_unknown(self) -> None:
        """C{format.named} of an unknown name is empty, and different formats are not equal."""
        self.assertHolds(
            ("!format.named('email').hasValue()", "format.dns1123Label() != format.dns1035Label()"),
        )
        self.assertRefused({"format.email()": "undeclared reference to 'format' (in container '')"})

    def test_messages(self) -> None:
        """Error messages equal apimachinery's."""
        self.assertHolds(
            (
                "format.uuid().validate('x').value() == ['does not match the UUID format']",
                "format.byte().validate('!').value() == ['invalid base64']",
                "format.date().validate('x').value() == ['invalid date']",
                "format.datetime().validate('x').value() == ['invalid datetime']",
                "format.uri().validate('x').value() == ['parse \"x\": invalid URI for request']",
                "format.dns1123Label().validate('a.b').value() == ['must not contain dots']",
            )
        )

    @given(sampled_from(sorted(_EXAMPLES)), text(max_size=20))
    def test_any_text(self, name: str, one: str) -> None:
        """An arbitrary string is valid or has error messages."""
        self.assertHolds(
            ("format.named(n).value().validate(x).orValue(['']).all(reason, reason == '' || reason.size() > 5)",),
            n=name,
            x=one,
        )

    def test_costs(self) -> None:
        """Validation costs as much as matching a regular expression of the format's length."""
        self.assertCosts(
            {
                "format.dns1123Label().validate('a')": 1 + 1 * 8,
                "format.uri().validate('12345678901')": 1 + 2 * 276,
                "format.named('uuid')": 1,
            }
        )
