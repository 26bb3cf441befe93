"""Tests for L{kubetwist.admission_plugins.pluginconfig}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.pluginconfig import (
    MAX_ITEMS,
    InvalidConfiguration,
    collect_causes,
    decode_configuration,
    list_field,
    release_minor,
    strict_object,
    string_field,
)
from kubetwist.api.errors import invalid
from tests.admission_plugins.fakes import Context

KIND = {"kind": "Limits", "apiVersion": "example.com/v1"}


class ConfigurationTests(SynchronousTestCase):
    """Tests of the decoding functions."""

    def test_kind(self) -> None:
        """A configuration must have its kind, a known version, and only the fields of the kind."""
        valid = {**KIND, "limit": 3}
        self.assertIs(decode_configuration(valid, "Limits", ("example.com/v1",), ("limit",)), valid)
        for bad, text_of in (
            ([], "expected Limits, got list"),
            ({**KIND, "kind": "Other"}, 'no kind "Other" is registered'),
            ({**KIND, "apiVersion": "example.com/v2"}, 'for version "example.com/v2"; it is Limits'),
            ({**valid, "more": 1}, 'strict decoding error: unknown field "more"'),
        ):
            error = self.assertRaises(
                InvalidConfiguration, decode_configuration, bad, "Limits", ("example.com/v1",), ("limit",)
            )
            self.assertIn(text_of, str(error))

    def test_fields(self) -> None:
        """An unknown field is reported with its path; null is an empty object."""
        self.assertEqual(strict_object(None, ("a",), "spec"), {})
        error = self.assertRaises(InvalidConfiguration, strict_object, {"b": 1, "c": 2}, ("a",), "spec")
        self.assertEqual(str(error), 'strict decoding error: unknown field "spec.b", unknown field "spec.c"')
        error = self.assertRaises(InvalidConfiguration, strict_object, 7, ("a",), "")
        self.assertEqual(str(error), "the configuration: expected an object")

    def test_values(self) -> None:
        """Lists and strings can be absent but must have their type; the length of lists is limited."""
        self.assertEqual((list_field(None, "l"), list_field([1], "l")), ([], [1]))
        self.assertEqual((string_field(None, "t"), string_field("a", "t")), ("", "a"))
        for function, value, message in (
            (list_field, {}, "p: expected a list"),
            (list_field, [0] * (MAX_ITEMS + 1), "p: more than 10000 items"),
            (string_field, 1, "p: expected a string"),
        ):
            self.assertEqual(str(self.assertRaises(InvalidConfiguration, function, value, "p")), message)

    def test_collected(self) -> None:
        """All causes are in one error; without causes there is no error."""
        with collect_causes():
            pass
        with self.assertRaises(InvalidConfiguration) as raised, collect_causes() as causes:
            causes += [invalid("a", 1, "no"), invalid("b", 2, "neither")]
        self.assertEqual(str(raised.exception), "[a: Invalid value: 1: no, b: Invalid value: 2: neither]")

    def test_minor(self) -> None:
        """The minor version is the one of the release that the server emulates."""
        self.assertEqual(release_minor(Context(release="1.34")), 34)
