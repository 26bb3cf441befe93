"""Tests for L{kubetwist.cel.parser}, C{lexer}, C{literals} and C{source}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import lists, sampled_from, text

from kubetwist.cel.environment import Environment
from kubetwist.cel.errors import CompileErrors
from kubetwist.cel.values import UInt

from .support import ENVIRONMENT, CelTestCase

OPERAND = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_WORDS = "( ) [ ] { } , . ? : + - * ! == && || in 1 1.5 'x' i s any ints counts all map has x true null size"
TOKENS = tuple(_WORDS.split(" "))


class LiteralTests(CelTestCase):
    """Literals of all forms."""

    def test_numbers(self) -> None:
        """Integers are decimal or hexadecimal, and go to the ends of their range."""
        self.assertValues(
            {
                "0x1F": 31,
                "-9223372036854775808": -(2**63),
                "18446744073709551615u": UInt(2**64 - 1),
                "0xFFu": UInt(255),
                "1.5e2": 150.0,
                ".25": 0.25,
                "-.5": -0.5,
                "1e3": 1000.0,
            }
        )

    def test_texts(self) -> None:
        """Texts and bytes know escapes, raw forms and three quotes; in bytes the numbers are bytes."""
        self.assertValues(
            {
                r"'a\n\t\"\\\x41\101\u00e9\U0001F600'": 'a\n\t"\\AAé😀',
                r"r'a\n'": "a\\n",
                '"""one "quoted"\ntwo"""': 'one "quoted"\ntwo',
                r"b'\xff\101é'": b"\xffA\xc3\xa9",
                r"B'''raw?'''": b"raw?",
                "'''it's'''": "it's",
                "'a\\r\\nb'": "a\r\nb",
            }
        )

    def test_out_of_range(self) -> None:
        """A literal beyond its range is refused where it stands."""
        self.assertRefused(
            {
                "1 + 9223372036854775808": "1:5: invalid int literal",
                "18446744073709551616u": "1:1: invalid uint literal",
                "1e999": "1:1: invalid double literal",
                r"'\ud800'": "1:1: invalid unicode code point",
                r"b'\u0041'": "1:1: unable to unescape string",
                "1" * 5000: "1:1: invalid int literal",
            }
        )


class GrammarTests(CelTestCase):
    """Which operator takes which operands."""

    def test_precedence(self) -> None:
        """Operators bind as in the specification, and those of one rank from left to right."""
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

    def test_comments_and_blanks(self) -> None:
        """Blanks, lines and comments stand between tokens and mean nothing."""
        self.assertValues({"1 // one\n\t+\r\n 2 // two": 3})

    def test_reserved(self) -> None:
        """Words kept for other languages are no names, but may be fields."""
        self.assertRefused(
            {
                "while": "1:1: reserved identifier: while",
                "1 + if(2)": "1:5: reserved identifier: if",
                "in": f"1:1: Syntax error: mismatched input 'in' expecting {OPERAND}",
            }
        )
        self.assertEqual(self.evaluate("any.package", any={"package": 1}), 1)

    def test_fields_in_backquotes(self) -> None:
        """The newer way to write odd names of fields is not known, as in the reference."""
        self.assertRefused({"any.`dash-ed`": "1:5: unsupported syntax: '`'"})


class SyntaxErrorTests(CelTestCase):
    """What is said of texts that are no expressions."""

    def test_messages(self) -> None:
        """Errors name what was found and what might have been there."""
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

    def test_display(self) -> None:
        """Every error is shown with its line and a mark, in the order of the text; wide characters move the mark."""
        error = self.assertRaises(CompileErrors, self.compile, "nosuch +\n\t'é' + other")
        self.assertEqual(
            str(error),
            "ERROR: <input>:1:1: undeclared reference to 'nosuch' (in container '')\n"
            " | nosuch +\n"
            " | ^\n"
            "ERROR: <input>:2:8: undeclared reference to 'other' (in container '')\n"
            " |  'é' + other\n"
            " | ..．....^",
        )
        self.assertEqual([(issue.line, issue.column) for issue in error.issues], [(1, 0), (2, 7)])

    def test_macros(self) -> None:
        """Macros tell which of their arguments they cannot use."""
        self.assertRefused(
            {
                "has(i)": "1:5: invalid argument to has() macro",
                "ints.all(1, true)": "1:10: argument must be a simple name",
                "ints.map(any.a, 1)": "1:13: argument is not an identifier",
                "ints.filter(__result__, true)": "1:13: iteration variable overwrites accumulator variable",
                "ints.all(x, x, true)": "1:13: duplicate variable name: x",
                "cel.bind(any.a, 1, 2)": "1:13: cel.bind() variable names must be simple identifiers",
            }
        )


class LimitTests(CelTestCase):
    """Texts that would take too much."""

    def test_size(self) -> None:
        """A text may have so many code points."""
        self.assertRefused(
            {"1" + " " * 100_000: "-1:0: expression code point size exceeds limit: size: 100001, limit 100000"}
        )
        self.assertEqual(self.evaluate("1" + " " * 99_999), 1)

    def test_nesting(self) -> None:
        """Brackets may be nested 250 deep and operators as often; deeper is refused and not a traceback."""
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

    def test_growing_macros(self) -> None:
        """Macros that repeat their target cannot make more of a short text than can be taken."""
        self.assertRefused({"any.?a" + ".optMap(x, x)" * 40: "-1:0: expression node count exceeds limit: 150000"})

    def test_long_chains(self) -> None:
        """Logical operators may be chained without limit, for their trees are balanced."""
        self.assertIs(self.evaluate(" && ".join(["flag"] * 3000)), True)
        self.assertIs(self.evaluate(" || ".join(["!flag"] * 3000)), False)

    @given(text(max_size=40))
    def test_any_text(self, expression: str) -> None:
        """No text makes the compiler fail in any other way than with errors."""
        _try(ENVIRONMENT, expression)

    @given(
        lists(
            sampled_from(TOKENS),
            max_size=14,
        )
    )
    def test_any_tokens(self, tokens: list[str]) -> None:
        """Nor does any row of tokens."""
        _try(ENVIRONMENT, " ".join(tokens))


def _try(environment: Environment, expression: str) -> None:
    try:
        environment.compile(expression)
    except CompileErrors as error:
        assert str(error)
