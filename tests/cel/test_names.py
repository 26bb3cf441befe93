"""Tests for L{kubetwist.cel.names}."""

from __future__ import annotations

from hypothesis import given, strategies

from kubetwist.cel import types
from kubetwist.cel.environment import Environment
from kubetwist.cel.errors import CompileErrors
from kubetwist.cel.names import escape, unescape
from kubetwist.cel.types import map_of
from tests.cel.checkingcase import CheckingTestCase
from tests.cel.support import CelTestCase


class ResolutionTests(CheckingTestCase):
    """Tests for the resolution of variables."""

    def test_container(self) -> None:
        """Names are resolved in the container first, from the innermost to the outermost namespace."""
        environment = Environment({"a.b.x": types.INT, "a.y": types.STRING, "x": types.BOOL}, container="a.b")
        for text, shown in {"x": "int", ".x": "bool", "y": "string"}.items():
            self.assertEqual(str(environment.compile(text).output_type), shown, text)
        error = self.assertRaises(CompileErrors, environment.compile, "z")
        self.assertIn("undeclared reference to 'z' (in container 'a.b')", str(error))

    def test_dotted_names(self) -> None:
        """The longest qualified name that is a variable takes precedence over a selection."""
        environment = Environment({"a": map_of(types.STRING, types.STRING), "a.b": types.INT})
        program = environment.compile("a.b + 1")
        self.assertEqual(program.evaluate({"a.b": 1, "a": {"b": "text"}}), (2, 2))

    def test_scopes(self) -> None:
        """A variable of a macro shadows another one within the macro only."""
        self.assertTypes(
            {"ints.map(line, line + 1)": "list(int)", "[1].exists(i, [2].all(i, i == 2)) && i == 7": "bool"}
        )


class NameTests(CelTestCase):
    """Tests for L{escape} and L{unescape}."""

    def test_examples(self) -> None:
        """Characters that identifiers cannot contain are escaped, and reserved words are marked."""
        for name, identifier in {
            "plain_1": "plain_1",
            "a-b": "a__dash__b",
            "a.b/c": "a__dot__b__slash__c",
            "a__b": "a__underscores__b",
            "namespace": "__namespace__",
            "inner": "inner",
        }.items():
            self.assertEqual((escape(name), unescape(identifier)), (identifier, name))
        for name in ("1a", "a b", "é", "$", ""):
            self.assertIsNone(escape(name), name)
        for identifier in ("__nothing__", "a__in__", "x__dot__y__zzz__"):
            self.assertIsNone(unescape(identifier), identifier)

    @given(strategies.text("ab_-./1", min_size=1, max_size=8))
    def test_round_trip(self, name: str) -> None:
        """Unescaping an escaped name returns the name."""
        identifier = escape(name)
        if identifier is not None and "___" not in name:
            self.assertEqual(unescape(identifier), name)
