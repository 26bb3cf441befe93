"""Tests of L{kubetwist.api.go.parsebool}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.go.parsebool import format_bool, parse_bool


class ParseBoolTests(SynchronousTestCase):
    """L{parse_bool} and L{format_bool}."""

    def test_values(self) -> None:
        """The spellings of Go are accepted, in no other case."""
        for text in ("1", "t", "T", "true", "TRUE", "True"):
            self.assertIs(parse_bool(text), True)
        for text in ("0", "f", "F", "false", "FALSE", "False"):
            self.assertIs(parse_bool(text), False)
        self.assertEqual([format_bool(True), format_bool(False)], ["true", "false"])

    def test_malformed(self) -> None:
        """Other texts are refused with Go's message."""
        for text in ("", "yes", "tRUE", " true"):
            error = self.assertRaises(ValueError, parse_bool, text)
            self.assertEqual(str(error), f'strconv.ParseBool: parsing "{text}": invalid syntax')
