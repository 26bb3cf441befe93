"""Tests for L{kubetwist.cel.parser}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import lists, sampled_from, text

from kubetwist.cel.environment import Environment
from kubetwist.cel.errors import CompileErrors
from tests.cel.operands import OPERAND
from tests.cel.support import ENVIRONMENT, CelTestCase

_WORDS = "( ) [ ] { } , . ? : + - * ! == && || in 1 1.5 'x' i s any ints counts all map has x true null size"


TOKENS = tuple(_WORDS.split(" "))


def _try(environment: Environment, expression: str) -> None:
    try:
        environment.compile(expression)
    except CompileErrors as error:
        assert str(error)


class GrammarTests(CelTestCase):
    """Tests for the precedence of operators."""

    def test_precedence(self) -> None:
        """Operators have the precedence of the specification, and are left-associative."""
        self.assertValues(
            {
                "1 + 2 * 3 - 4": 3,
                "20 / 2 / 5": 2,
                "-2 * -3": 6,
                "- - 2": 2,
                "!!true": True,
                "1 < 2 == true": True,
                "false && true || true": True,
                "true || false && false": True,
                "true ? 1 : false ? 2 : 3": 1,
                "(1 + 2) * 3": 9,
                "[1, 2,][1]": 2,
                "{'a': 1,}.a": 1,
                "1 in [1] && !(2 in [1])": True,
            }
        )


class SyntaxErrorTests(CelTestCase):
    """Tests for the messages of syntax errors."""

    def test_messages(self) -> None:
        """Messages contain the unexpected token and the expected tokens."""
        self.assertRefused(
            {
                "i >": f"1:4: Syntax error: mismatched input '<EOF>' expecting {OPERAND}",
                "any.(": "1:5: Syntax error: no viable alternative at input '.('",
                "any.": "1:5: Syntax error: no viable alternative at input '.'",
                "any.null": "1:5: Syntax error: mismatched input 'null' expecting IDENTIFIER",
                "any.?(": "1:6: Syntax error: mismatched input '(' expecting {IDENTIFIER, ESC_IDENTIFIER}",
                "(i": "1:3: Syntax error: missing ')' at '<EOF>'",
                "size(i]": "1:7: Syntax error: mismatched input ']' expecting ')'",
                "i i": "1:3: Syntax error: extraneous input 'i' expecting <EOF>",
                "i i i": "1:3: Syntax error: mismatched input 'i' expecting <EOF>",
                "&& i": f"1:1: Syntax error: extraneous input '&&' expecting {OPERAND}",
                "[1 2]": "1:4: Syntax error: extraneous input '2' expecting {']', ','}",
                "{1}": "1:3: Syntax error: mismatched input '}' expecting ':'",
                "true ? 1": "1:9: Syntax error: mismatched input '<EOF>' expecting ':'",
                "i = 1": "1:3: Syntax error: token recognition error at: '= '",
                "'abc": "1:1: Syntax error: token recognition error at: ''abc'",
                "!-i": "1:2: Syntax error: no viable alternative at input '-i'",
                "": f"1:0: Syntax error: mismatched input '<EOF>' expecting {OPERAND}",
            }
        )


class LimitTests(CelTestCase):
    """Tests for the limits of the parser."""

    def test_nesting(self) -> None:
        """Brackets and operators may be nested 250 deep; deeper expressions are rejected with an error."""
        self.assertEqual(self.evaluate("(" * 249 + "1" + ")" * 249), 1)
        self.assertEqual(self.evaluate("[" * 200 + "]" * 200 + ".size()"), 1)
        self.assertEqual(self.evaluate("1" + " + 1" * 250), 251)
        self.assertRefused(
            {
                "(" * 250 + "1" + ")" * 250: "-1:0: expression recursion limit exceeded: 250",
                "1" + " + 1" * 251: "-1:0: max recursion depth exceeded",
                "any" + ".a" * 251: "-1:0: max recursion depth exceeded",
            }
        )

    def test_long_chains(self) -> None:
        """Chains of logical operators have no limit, since they are parsed to balanced trees."""
        self.assertIs(self.evaluate(" && ".join(["flag"] * 3000)), True)
        self.assertIs(self.evaluate(" || ".join(["!flag"] * 3000)), False)

    @given(text(max_size=40))
    def test_any_text(self, expression: str) -> None:
        """Compiling an arbitrary string succeeds or fails with L{CompileErrors}."""
        _try(ENVIRONMENT, expression)

    @given(
        lists(
            sampled_from(TOKENS),
            max_size=14,
        )
    )
    def test_any_tokens(self, tokens: list[str]) -> None:
        """Compiling an arbitrary sequence of tokens succeeds or fails with L{CompileErrors}."""
        _try(ENVIRONMENT, " ".join(tokens))
