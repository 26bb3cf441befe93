"""Tests for L{kubetwist.api.selectors}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api import selectors
from kubetwist.api.selectors import (
    LabelSelector,
    ParsedLater,
    Requirement,
    SelectorError,
    format_field_selector,
    label_selector_from_object,
    parse_field_selector,
    parse_label_selector,
)

from .strategies import label_keys, label_values

requirements = st.one_of(
    st.builds(Requirement, label_keys, st.sampled_from(["exists", "!"])),
    st.builds(
        Requirement,
        label_keys,
        st.sampled_from(["=", "==", "!="]),
        label_values.map(lambda value: (value,)),
    ),
    st.builds(
        Requirement,
        label_keys,
        st.sampled_from(["in", "notin"]),
        st.sets(label_values, min_size=1, max_size=3).map(lambda values: tuple(sorted(values))),
    ),
    st.builds(
        Requirement,
        label_keys,
        st.sampled_from(["gt", "lt"]),
        st.integers(0, 1 << 62).map(lambda number: (str(number),)),
    ),
)


def naive_matches(requirement: Requirement, labels: dict[str, str]) -> bool:
    """Return whether labels satisfy a requirement, without optimizations."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "exists":
            return value is not None
        case "!":
            return value is None
        case "=" | "==" | "in":
            return value in requirement.values
        case "!=" | "notin":
            return value not in requirement.values
        case operator:
            if value is None or not value.isdigit() or int(value) >= 1 << 63:
                return False
            return (
                int(value) > int(requirement.values[0]) if operator == "gt" else int(value) < int(requirement.values[0])
            )


class LabelSelectorTests(SynchronousTestCase):
    """Tests for label selectors."""

    def test_operators(self) -> None:
        """Every operator selects the matching labels."""
        labels = {"env": "prod", "n": "5", "bare": ""}
        for text, matches in {
            "": True,
            "env=prod": True,
            "env==prod": True,
            "env = prod , n": True,
            "env!=prod": False,
            "other!=prod": True,
            "env in (qa,prod)": True,
            "env notin (qa,prod)": False,
            "other notin (qa)": True,
            "env": True,
            "!env": False,
            "!other": True,
            "bare=": True,
            "bare in ()": True,
            "env=": False,
            "n>4,n<6": True,
            "n>5": False,
            "env>4": False,
            "other<4": False,
            "env,n,bare,!x": True,
        }.items():
            self.assertEqual(parse_label_selector(text).matches(labels), matches, text)

    def test_canonical_text(self) -> None:
        """A selector is formatted with requirements sorted by key and sorted values."""
        for text, canonical in {
            "b,a": "a,b",
            "x in (c,a,b,a)": "x in (a,b,c)",
            "x   notin  ( b )": "x notin (b)",
            "a==b": "a==b",
            "n>4": "n>4",
            "! a": "!a",
            "x in (,)": "x in ()",
            "x in (a,,b)": "x in (,a,b)",
            "in in (in,notin)": "in in (in,notin)",
        }.items():
            self.assertEqual(str(parse_label_selector(text)), canonical)

    def test_errors(self) -> None:
        """An invalid selector is rejected with the reference's message."""
        for text, message in {
            ",": "found ',', expected: !, identifier, or 'end of string'",
            "a,": "found '', expected: identifier after ','",
            "a=b=c": "found '=', expected: ',' or 'end of string'",
            "a b": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            "a in b": "unable to parse requirement: found 'b' expected: '('",
            "a in (": "unable to parse requirement: found '', expected: ',', ')' or identifier",
            "a in (x": "unable to parse requirement: found '', expected: ',' or ')'",
            "!": "unable to parse requirement: found '', expected: identifier",
            "a=!": "unable to parse requirement: found '!', expected: identifier",
            "n>x": 'unable to parse requirement: values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        }.items():
            error = self.assertRaises(SelectorError, parse_label_selector, text)
            self.assertEqual(str(error), message)
        error = self.assertRaises(SelectorError, parse_label_selector, "-a")
        self.assertSubstring('unable to parse requirement: <nil>: Invalid value: "-a": name part must', str(error))
        error = self.assertRaises(SelectorError, parse_label_selector, "a=-b")
        self.assertSubstring('requirement: values[0][a]: Invalid value: "-b": a valid label must', str(error))

    def test_from_object(self) -> None:
        """Selectors in objects select in the same way; an absent one selects nothing."""
        selector = label_selector_from_object(
            {
                "matchLabels": {"a": "b"},
                "matchExpressions": [
                    {"key": "c", "operator": "In", "values": ["e", "d"]},
                    {"key": "f", "operator": "DoesNotExist"},
                ],
            }
        )
        self.assertEqual(str(selector), "a=b,c in (d,e),!f")
        self.assertTrue(selector.matches({"a": "b", "c": "d"}))
        self.assertTrue(label_selector_from_object({}).empty)
        nothing = label_selector_from_object(None)
        self.assertEqual((nothing.matches({}), nothing.empty), (False, False))

    def test_invalid_object(self) -> None:
        """Invalid operators, and operators with invalid values, are rejected."""
        for expression in (
            {"key": "a", "operator": "Maybe"},
            {"key": "a", "operator": "In"},
            {"key": "a", "operator": "Exists", "values": ["x"]},
            {"operator": "Exists"},
        ):
            self.assertRaises(SelectorError, label_selector_from_object, {"matchExpressions": [expression]})

    def test_equality(self) -> None:
        """Selectors with the same requirements are equal."""
        self.assertEqual(parse_label_selector("a,b"), parse_label_selector("b, a"))
        self.assertNotEqual(parse_label_selector(""), selectors.NOTHING)
        self.assertEqual(len({LabelSelector(), selectors.EVERYTHING, selectors.NOTHING}), 2)

    def test_cache_is_bounded(self) -> None:
        """Long selectors are not cached."""
        before = selectors._cached_selector.cache_info().currsize
        parse_label_selector(",".join(f"key{number}" for number in range(1000)))
        self.assertEqual(selectors._cached_selector.cache_info().currsize, before)

    @given(st.lists(requirements, max_size=4))
    def test_round_trip(self, several: list[Requirement]) -> None:
        """The text of a selector is parsed to that selector."""
        selector = LabelSelector(several)
        self.assertEqual(str(parse_label_selector(str(selector))), str(selector))

    @given(st.lists(requirements, max_size=4), st.dictionaries(label_keys, label_values, max_size=4), st.data())
    def test_matches(self, several: list[Requirement], labels: dict[str, str], data: st.DataObject) -> None:
        """Compiled selectors select the labels that satisfy the requirements."""
        for requirement in several:
            if data.draw(st.booleans()):
                values = [*requirement.values, "", "7"]
                labels[requirement.key] = data.draw(st.sampled_from(values))
        expected = all(naive_matches(requirement, labels) for requirement in several)
        self.assertEqual(LabelSelector(several).matches(labels), expected)

    @given(st.text(st.sampled_from("ab=!,()<> in-\0\t/é")))
    def test_any_text(self, text: str) -> None:
        """Any text is a selector, or is rejected with a message."""
        try:
            selector = parse_label_selector(text)
        except SelectorError as error:
            self.assertNotEqual(str(error), "")
        else:
            self.assertIsInstance(selector.matches({"a": "b"}), bool)
            self.assertEqual(parse_label_selector(str(selector)), selector)


class PlainTests(SynchronousTestCase):
    """Tests for the fast path of plain selectors."""

    @given(
        st.lists(st.sampled_from([*"a=!,() ><\t\0", "==", "in", "notin", " in (", "b", "x/y", "-", "key"]), max_size=12)
    )
    def test_same_as_parser(self, pieces: list[str]) -> None:
        """The fast path returns the result of the parser."""
        text = "".join(pieces)
        quick = selectors._plain_requirements(text)
        if quick is not None:
            self.assertEqual(quick, selectors._Parser(text).requirements())

    def test_plain(self) -> None:
        """Selectors in their common form use the fast path."""
        for text in ("a", "!a", "a=b", " a == b , c!=d", "a in (b, c),d notin (e)", "x.io/a in(b)", "a=in", "a-b_c.d"):
            quick = selectors._plain_requirements(text)
            self.assertIsNotNone(quick, text)
            self.assertEqual(quick, selectors._Parser(text).requirements())
        for text in ("", "a,", ",a", "a in ()", "a>1", "!a=b", "a in (b c)", "a=-", "in", "a" * 64, "a b", "a\0"):
            self.assertIsNone(selectors._plain_requirements(text), text)


class FieldSelectorTests(SynchronousTestCase):
    """Tests for field selectors."""

    def test_terms(self) -> None:
        """Terms are sorted, each with its field, value and sense."""
        self.assertEqual(
            parse_field_selector("status.phase!=Running,metadata.name==a,,b="),
            (("b", "", True), ("metadata.name", "a", True), ("status.phase", "Running", False)),
        )
        self.assertEqual(parse_field_selector(""), ())

    def test_empty_terms(self) -> None:
        """A term without field and value is ignored; one without a field is not."""
        for text in ("=", "==", "!=", "=,!="):
            self.assertEqual(parse_field_selector(text), (), text)
        self.assertEqual(parse_field_selector("=a"), (("", "a", True),))

    def test_escapes(self) -> None:
        r"""In values C{\} stands before C{\}, C{,} and C{=}."""
        self.assertEqual(parse_field_selector(r"a=\,\=\\"), (("a", ",=\\", True),))

    def test_errors(self) -> None:
        """An invalid field selector is rejected with the reference's message."""
        for text, message in {
            "a": "invalid selector: 'a'; can't understand 'a'",
            "a in (b,c)": "invalid selector: 'a in (b,c)'; can't understand 'a in (b'",
            r"a=\x": r"invalid field selector: invalid escape sequence: \x",
            "a=b\\": "invalid field selector: invalid escape sequence: \\",
            "a=b=c": "invalid field selector: unescaped character in value: 61",
        }.items():
            error = self.assertRaises(SelectorError, parse_field_selector, text)
            self.assertEqual(str(error), message)

    @given(st.lists(st.tuples(st.from_regex(r"\A[a-z.]+\Z"), st.text(), st.booleans()), max_size=3))
    def test_round_trip(self, terms: list[tuple[str, str, bool]]) -> None:
        """Any value can be escaped and selected."""
        self.assertEqual(sorted(parse_field_selector(format_field_selector(terms))), sorted(terms))

    @given(st.text(st.sampled_from("ab=!,\\é")))
    def test_any_text(self, text: str) -> None:
        """Any text is a selector, or is rejected with a message."""
        try:
            terms = parse_field_selector(text)
        except SelectorError as error:
            self.assertNotEqual(str(error), "")
        else:
            self.assertEqual(sorted(parse_field_selector(format_field_selector(terms))), sorted(terms))


class ParsedLaterTests(SynchronousTestCase):
    """Tests for selectors that are parsed at first access."""

    def test_later(self) -> None:
        """The text is parsed once, on first access; an invalid selector has no terms."""
        parsed: list[str] = []

        def parse(text: str) -> Any:
            parsed.append(text)
            return parse_field_selector(text)

        terms = ParsedLater("b!=2,a=1", parse)
        self.assertEqual(parsed, [])
        expected = (("a", "1", True), ("b", "2", False))
        self.assertEqual((terms, tuple(terms), len(terms), hash(terms)), (expected, expected, 2, hash(expected)))
        self.assertIn(("a", "1", True), terms)
        self.assertEqual(terms[:1], expected[:1])
        self.assertEqual(parsed, ["b!=2,a=1"])
        self.assertFalse(ParsedLater("oops", parse))
        self.assertIn("oops", repr(ParsedLater("oops", parse)))
