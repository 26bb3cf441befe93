"""
Label and field selectors: parsing with the reference's error messages, and compiled matching.

See kubernetes/apimachinery, C{pkg/labels/selector.go} and C{pkg/fields/selector.go}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeVar, overload

from attrs import frozen

from .go.quote import quoted
from .jsontypes import JSONValue
from .names import is_qualified_name, validate_label_value, validate_qualified_name

Labels = Mapping[str, str]
Predicate = Callable[[Labels], bool]

#: Operators as in texts, not as in C{matchExpressions}.
_BINARY: Final = "in, notin, =, ==, !=, gt, lt"


#: The operators of C{LabelSelectorRequirement}, by the operators of the text form, which also compares numbers.
OPERATOR_NAMES: Final = {
    "=": "In",
    "==": "In",
    "in": "In",
    "!=": "NotIn",
    "notin": "NotIn",
    "exists": "Exists",
    "!": "DoesNotExist",
}


class SelectorError(ValueError):
    """An invalid selector; C{str} of it is the message for the client."""


@frozen
class Requirement:
    """
    One requirement on a label.

    @ivar operator: C{=}, C{==}, C{!=}, C{in}, C{notin}, C{exists}, C{!}, C{gt} or C{lt}.
    @ivar values: Sorted, without duplicates.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        key, operator = self.key, self.operator
        if operator == "exists":
            return key
        if operator == "!":
            return f"!{key}"
        values = ",".join(self.values)
        if operator in ("in", "notin"):
            return f"{key} {operator} ({values})"
        return f"{key}{ {'gt': '>', 'lt': '<'}.get(operator, operator) }{values}"

    @property
    def is_equality(self) -> bool:
        """Return whether it requires one value."""
        return self.operator in ("=", "==", "in") and len(self.values) == 1

    def predicate(self) -> Predicate:
        """Return a function that checks whether labels satisfy this requirement."""
        return _PREDICATES[self.operator](self.key, self.values)


class LabelSelector:
    """
    Requirements that must all be satisfied; without any it selects everything.

    @ivar matches: Returns whether an object with these labels is selected.
    @ivar requirements: The requirements, sorted by key.
    @ivar nothing: Whether it matches no labels at all.
    """

    __slots__ = ("matches", "nothing", "requirements")

    def __init__(self, requirements: Sequence[Requirement] = (), nothing: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self.nothing = nothing
        self.matches: Predicate = _nothing if nothing else _all([one.predicate() for one in self.requirements])

    @property
    def empty(self) -> bool:
        """Return whether it selects everything."""
        return not self.requirements and not self.nothing

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"<LabelSelector {str(self)!r}{' nothing' if self.nothing else ''}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSelector):
            return NotImplemented
        return (self.requirements, self.nothing) == (other.requirements, other.nothing)

    def __hash__(self) -> int:
        return hash((self.requirements, self.nothing))


#: Maximum length of cached selectors, to bound the memory of the cache.
_CACHED_LENGTH: Final = 1024


def parse_label_selector(text: str) -> LabelSelector:
    """
    Parse a selector such as C{env in (qa,prod),tier!=web,!legacy}.

    @raise SelectorError: The value is invalid.
    """
    return _cached_selector(text) if len(text) <= _CACHED_LENGTH else _selector(text)


def _selector(text: str) -> LabelSelector:
    requirements = _plain_requirements(text)
    return LabelSelector(_Parser(text).requirements() if requirements is None else requirements)


_cached_selector = lru_cache(maxsize=1024)(_selector)


def label_selector_from_object(selector: Mapping[str, JSONValue] | None) -> LabelSelector:
    """
    Return the selector in an object's field, C{{matchLabels, matchExpressions}}.

    @param selector: L{None} selects nothing, an empty one everything.
    @raise SelectorError: The selector is invalid.
    """
    if selector is None:
        return NOTHING
    labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    requirements = [_requirement(key, "=", [value]) for key, value in labels.items()]
    for one in expressions:
        operator = one.get("operator") or ""
        word = _EXPRESSION_OPERATORS.get(operator)
        if word is None:
            raise SelectorError(f"{quoted(operator)} is not a valid label selector operator")
        requirements.append(_requirement(one.get("key") or "", word, one.get("values") or ()))
    return LabelSelector(requirements)


_EXPRESSION_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def _requirement(key: str, operator: str, values: Sequence[str]) -> Requirement:
    """
    Return a validated requirement.

    @raise SelectorError: The requirement is invalid.
    """
    problems = []
    if not is_qualified_name(key):
        detail = validate_qualified_name(key)
        problems.append(f"key: Invalid value: {quoted(key)}: {'; '.join(detail)}")
    if operator in ("in", "notin"):
        if not values:
            problems.append("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
    elif operator in ("exists", "!"):
        if values:
            shown = f"[{','.join(map(quoted, values))}]"
            problems.append(f"values: Invalid value: {shown}: values set must be empty for exists and does not exist")
    elif operator in ("gt", "lt"):
        problems += [
            f"values[{index}]: Invalid value: {quoted(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
            for index, value in enumerate(values)
            if _int64(value) is None
        ]
    for index, value in enumerate(values):
        detail = validate_label_value(value)
        if detail:
            problems.append(f"values[{index}][{key}]: Invalid value: {quoted(value)}: {'; '.join(detail)}")
    if problems:
        problems = list(dict.fromkeys(problems))
        raise SelectorError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return Requirement(key, operator, tuple(sorted(set(values))))


def _int64(text: str) -> int | None:
    """Parse an integer (Go: C{strconv.ParseInt(text, 10, 64)}); L{None} if the text is invalid."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 64:
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


# Predicates. Labels are looked up once each; most selectors are a single equality.


def _everything(labels: Labels) -> bool:
    return True


def _nothing(labels: Labels) -> bool:
    return False


def _all(predicates: Sequence[Predicate]) -> Predicate:
    if not predicates:
        return _everything
    if len(predicates) == 1:
        return predicates[0]
    if len(predicates) == 2:
        first, second = predicates
        return lambda labels: first(labels) and second(labels)

    def every(labels: Labels) -> bool:
        for predicate in predicates:  # noqa: SIM110 - a generator would cost more than the predicates
            if not predicate(labels):
                return False
        return True

    return every


def _is_in(key: str, values: tuple[str, ...]) -> Predicate:
    if len(values) == 1:
        (value,) = values
        return lambda labels: labels.get(key) == value
    allowed = frozenset(values)
    return lambda labels: labels.get(key) in allowed


def _is_not_in(key: str, values: tuple[str, ...]) -> Predicate:
    if len(values) == 1:
        (value,) = values
        return lambda labels: labels.get(key) != value
    unwanted = frozenset(values)
    return lambda labels: labels.get(key) not in unwanted


def _exists(key: str, values: tuple[str, ...]) -> Predicate:
    return lambda labels: key in labels


def _is_missing(key: str, values: tuple[str, ...]) -> Predicate:
    return lambda labels: key not in labels


def _compares(sign: int) -> Callable[[str, tuple[str, ...]], Predicate]:
    def make(key: str, values: tuple[str, ...]) -> Predicate:
        limit = sign * int(values[0])

        def compares(labels: Labels) -> bool:
            value = labels.get(key)
            number = None if value is None else _int64(value)
            return number is not None and sign * number > limit

        return compares

    return make


_PREDICATES: Final[dict[str, Callable[[str, tuple[str, ...]], Predicate]]] = {
    "=": _is_in,
    "==": _is_in,
    "in": _is_in,
    "!=": _is_not_in,
    "notin": _is_not_in,
    "exists": _exists,
    "!": _is_missing,
    "gt": _compares(1),
    "lt": _compares(-1),
}

EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(nothing=True)

# The parser. Tokens are pairs of a kind and the text; kinds are the symbols themselves, "in", "notin", and:

_WORD: Final = "word"
_END: Final = "end"
_ERROR: Final = "error"

#: Matches a symbol or a word; any other character except a space ends the text.
_TOKEN: Final = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),><])|([^ \t\r\n=!(),><\0]+))")

_OPERATORS: Final = {
    "in": "in",
    "=": "=",
    "==": "==",
    ">": "gt",
    "<": "lt",
    "notin": "notin",
    "!=": "!=",
}


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens = []
    position = 0
    # A NUL ends the text, as in the reference's lexer, which reads bytes up to a zero.
    while (result := _TOKEN.match(text, position)) is not None:
        position = result.end()
        symbol, word = result.groups()
        if symbol:
            tokens.append((symbol, symbol))
        else:
            tokens.append((word if word in ("in", "notin") else _WORD, word))
    tokens.append((_END, ""))
    return tokens


#: Matches a requirement in its common form, up to the following comma.
_PLAIN: Final = re.compile(
    r"[ \t\r\n]*(!?)[ \t\r\n]*([A-Za-z0-9][A-Za-z0-9_./-]*)"
    r"(?:[ \t\r\n]*(==?|!=)[ \t\r\n]*([A-Za-z0-9_.-]+)|[ \t\r\n]+(in|notin)[ \t\r\n]*\(([A-Za-z0-9_., \t\r\n-]+)\))?"
    r"[ \t\r\n]*(,|\Z)"
)


def _plain_requirements(text: str) -> list[Requirement] | None:
    """
    Parse a selector whose requirements are all in their common form, five times as fast as the parser.

    @return: The result of the parser; L{None} if the parser is needed.
    """
    requirements: list[Requirement] = []
    position, end = 0, len(text)
    while True:
        match = _PLAIN.match(text, position)
        if match is None:
            return None
        negated, key, operator, value, within, several, comma = match.groups()
        if key in ("in", "notin") or not is_qualified_name(key):
            return None
        if operator:
            if negated or validate_label_value(value):
                return None
            requirements.append(Requirement(key, operator, (value,)))
        elif within:
            values = sorted({one.strip(" \t\r\n") for one in several.split(",")})
            if negated or not values[0] or any(map(validate_label_value, values)):
                return None
            requirements.append(Requirement(key, within, tuple(values)))
        else:
            requirements.append(Requirement(key, "!" if negated else "exists"))
        position = match.end()
        if not comma:
            return requirements
        if position == end:
            return None


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def _peek(self) -> tuple[str, str]:
        """Return the next token, with C{in} and C{notin} as ordinary words."""
        if self._position >= len(self._tokens):
            return _END, ""
        kind, text = self._tokens[self._position]
        return (_WORD if kind in ("in", "notin") else kind), text

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._position += 1
        return token

    def requirements(self) -> list[Requirement]:
        result: list[Requirement] = []
        while True:
            kind, text = self._peek()
            if kind == _END:
                return result
            if kind not in (_WORD, "!"):
                raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                result.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            kind, text = self._next()
            if kind == _END:
                return result
            if kind != ",":
                raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
            kind, text = self._peek()
            if kind not in (_WORD, "!"):
                raise SelectorError(f"found '{text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        kind, text = self._next()
        negated = kind == "!"
        if negated:
            kind, text = self._next()
        if kind != _WORD:
            raise SelectorError(f"found '{text}', expected: identifier")
        key = text
        if not is_qualified_name(key):
            detail = validate_qualified_name(key)
            raise SelectorError(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(detail)}")
        if negated:
            return _requirement(key, "!", ())
        if self._peek()[0] in (_END, ","):
            return _requirement(key, "exists", ())
        kind, text = self._tokens[self._position]
        self._position += 1
        operator = _OPERATORS.get(kind)
        if operator is None:
            raise SelectorError(f"found '{text}', expected: {_BINARY}")
        if operator in ("in", "notin"):
            values = self._values()
        else:
            values = self._value()
        return _requirement(key, operator, sorted(values))

    def _value(self) -> set[str]:
        if self._peek()[0] in (_END, ","):
            return {""}
        kind, text = self._next()
        if kind != _WORD:
            raise SelectorError(f"found '{text}', expected: identifier")
        return {text}

    def _values(self) -> set[str]:
        kind, text = self._next()
        if kind != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        kind, text = self._peek()
        if kind == ")":
            self._next()
            return {""}
        if kind not in (_WORD, ","):
            raise SelectorError(f"found '{text}', expected: ',', ')' or identifier")
        values = self._listed()
        self._next()
        return values

    def _listed(self) -> set[str]:
        """Return the values up to the closing bracket; an empty position between commas is the empty value."""
        values: set[str] = set()
        while True:
            kind, text = self._next()
            if kind == _WORD:
                values.add(text)
                kind, text = self._peek()
                if kind == ")":
                    return values
                if kind != ",":
                    raise SelectorError(f"found '{text}', expected: ',' or ')'")
            elif kind == ",":
                if not values:
                    values.add("")
                kind = self._peek()[0]
                if kind == ")":
                    values.add("")
                    return values
                if kind == ",":
                    values.add("")
            else:
                raise SelectorError(f"found '{text}', expected: ',', or identifier")


# Field selectors.


def parse_field_selector(text: str) -> tuple[tuple[str, str, bool], ...]:
    r"""
    Read a selector such as C{status.phase!=Running,metadata.name=a}; in values C{\}, C{,} and C{=} are escaped by C{\}.

    @return: For every term the field, the value, and whether the two must be equal or different; sorted.
    @raise SelectorError: The value is invalid.
    """
    terms = []
    for term in sorted(_split_terms(text)):
        if not term:
            continue
        split = _split_term(term)
        if split is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        field, value, equal = split
        plain = _unescaped(value)
        if field or plain:
            # As in the reference, terms with an empty field and value are ignored.
            terms.append((field, plain, equal))
    return tuple(terms)


def format_field_selector(terms: Sequence[tuple[str, str, bool]]) -> str:
    """Return the text that L{parse_field_selector} reads as these terms."""
    return ",".join(f"{field}{'=' if equal else '!='}{_escape(value)}" for field, value, equal in terms)


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def _split_terms(text: str) -> list[str]:
    if "\\" not in text:
        return text.split(",")
    terms, start, escaped = [], 0, False
    for position, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            terms.append(text[start:position])
            start = position + 1
    terms.append(text[start:])
    return terms


def _split_term(term: str) -> tuple[str, str, bool] | None:
    for position, character in enumerate(term):
        if character == "!" and term[position + 1 : position + 2] == "=":
            return term[:position], term[position + 2 :], False
        if character == "=":
            after = position + 2 if term[position + 1 : position + 2] == "=" else position + 1
            return term[:position], term[after:], True
    return None


def _unescaped(value: str) -> str:
    if "\\" not in value and "=" not in value:
        return value
    plain, escaped = [], False
    for character in value:
        if escaped:
            if character not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{character}")
            plain.append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in ",=":
            # The reference prints the code point: C{%v} of a rune.
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            plain.append(character)
    if escaped:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(plain)


T = TypeVar("T")


class ParsedLater(Sequence[T]):
    """
    The terms of a selector, parsed on first access; none if the selector is invalid.

    Most authorizers never access the selector of a request, so it is usually not parsed before authorization.
    """

    __slots__ = ("_parse", "_terms", "_text")

    def __init__(self, text: str, parse: Callable[[str], Sequence[T]]) -> None:
        """@param parse: Raises L{SelectorError}."""
        self._text = text
        self._parse = parse
        self._terms: tuple[T, ...] | None = None

    def _parsed(self) -> tuple[T, ...]:
        if self._terms is None:
            try:
                self._terms = tuple(self._parse(self._text))
            except SelectorError:
                self._terms = ()
        return self._terms

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._parsed()[index]

    def __len__(self) -> int:
        return len(self._parsed())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParsedLater | tuple) and self._parsed() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._parsed())

    def __repr__(self) -> str:
        return f"<ParsedLater {self._text!r}>"
