"""
JSONPath for custom resources, in the dialect of kubernetes/client-go, C{util/jsonpath}.

It has fields (C{.spec.x}, C{['a.b']}), indexes, slices, wildcards, recursive descent and filters that compare with a
constant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from .jsontypes import JSONObject, JSONValue

#: One step of a path: maps values to values, within a budget.
Step = Callable[[Iterator[JSONValue], "Budget"], Iterator[JSONValue]]

_NAME: Final = re.compile(r"(?:[^.\[\]\\{}()|'\"\s]|\\.)+")
_QUOTED: Final = re.compile(r"""\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]""")
_INDEXES: Final = re.compile(r"\[\s*(-?[0-9]{1,18}(?:\s*,\s*-?[0-9]{1,18})*)\s*\]")
_SLICE: Final = re.compile(r"\[\s*(-?[0-9]{0,18})\s*:\s*(-?[0-9]{0,18})\s*(?::\s*(-?[0-9]{0,18})\s*)?\]")
_FILTER: Final = re.compile(
    r"""\[\?\(\s*@((?:[^=!<>\s'"()]|\\.)*)\s*(?:(==|!=|<=|>=|<|>)\s*(?:"([^"]*)"|'([^']*)'|([^\s()]+))\s*)?\)\]"""
)


#: The maximum number of values visited while a path is evaluated, including those that filters visit per item.
MAX_VISITED: Final = 10_000
MAX_VISITED_PER_ITEM: Final = 100
#: Result for a path without a value.
MISSING: Final = object()


class JSONPathError(ValueError):
    """A path that cannot be parsed."""


class Budget:
    """
    The number of values that may still be visited, on one path or several.

    @ivar remaining: The remaining number; below zero, no more values are found.
    """

    __slots__ = ("remaining",)

    def __init__(self, values: int = MAX_VISITED) -> None:
        self.remaining = values

    def consume(self, values: Sequence[JSONValue] | JSONObject) -> bool:
        """Charge values that are about to be visited; return whether the budget allows it."""
        # Visiting a value only skips it; sorting or storing takes a sixteenth of the time.
        self.remaining -= len(values) >> 4
        return self.remaining >= 0


class JSONPath:
    """
    A compiled path.

    @ivar text: The path as text.
    """

    def __init__(self, text: str) -> None:
        """
        @raise JSONPathError: The value is invalid.
        """
        self.text = text
        self._steps = tuple(_parsed(text))

    def find(self, value: JSONValue) -> list[JSONValue]:
        """
        Return all values at the path, possibly none; absent keys are not an error.

        If the evaluation exceeds L{MAX_VISITED}, the values found before are returned.
        """
        return list(self._within(value, Budget()))

    def first(self, value: JSONValue, budget: Budget | None = None) -> JSONValue:
        """
        Return the first value; L{MISSING} if there is none, or if the budget is exhausted first.

        @param budget: By default a new one of L{MAX_VISITED} values.
        """
        return next(self._within(value, budget or Budget()), MISSING)

    def _within(self, value: JSONValue, budget: Budget) -> Iterator[JSONValue]:
        """Yield the values until the limit is reached: nested recursive descents grow without bound."""

        def counted(values: Iterator[JSONValue]) -> Iterator[JSONValue]:
            for one in values:
                budget.remaining -= 1
                if budget.remaining < 0:
                    return
                yield one

        values: Iterator[JSONValue] = iter((value,))
        for step in self._steps:
            values = counted(step(values, budget))
        return values


def _parsed(text: str) -> Iterator[Step]:
    at = 0
    if text.startswith("$"):
        at = 1
    while at < len(text):
        if text.startswith("..", at):
            yield _descend
            at += 1
            if text.startswith("[", at + 1):
                at += 1
            continue
        if text[at] == ".":
            at += 1
            if at == len(text):
                return
            if text[at] == "[":
                continue
            if text[at] == "*":
                yield _wildcard
                at += 1
                continue
        if text[at] == "[":
            step, at = _bracket(text, at)
            yield step
            continue
        match = _NAME.match(text, at)
        if match is None:
            raise JSONPathError(f"unrecognized character in path: {text!r}")
        yield _field(re.sub(r"\\(.)", r"\1", match[0]))
        at = match.end()


def _bracket(text: str, at: int) -> tuple[Step, int]:
    if text.startswith("[*]", at):
        return _wildcard, at + 3
    match = _QUOTED.match(text, at)
    if match is not None:
        return _field(re.sub(r"\\(.)", r"\1", match[1] if match[1] is not None else match[2])), match.end()
    match = _INDEXES.match(text, at)
    if match is not None:
        return _indexes([int(one) for one in match[1].split(",")]), match.end()
    match = _SLICE.match(text, at)
    if match is not None:
        return _slice(*(int(one) if one else None for one in match.groups())), match.end()
    match = _FILTER.match(text, at)
    if match is not None:
        return _filter(match), match.end()
    raise JSONPathError(f"unterminated array or unrecognized filter in path: {text!r}")


def _field(name: str) -> Step:
    def step(values: Iterator[JSONValue], budget: Budget) -> Iterator[JSONValue]:
        for value in values:
            if isinstance(value, dict) and name in value:
                yield value[name]

    return step


def _wildcard(values: Iterator[JSONValue], budget: Budget) -> Iterator[JSONValue]:
    for value in values:
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict) and budget.consume(value):
            yield from (value[name] for name in sorted(value))


def _descend(values: Iterator[JSONValue], budget: Budget) -> Iterator[JSONValue]:
    pending = list(values)[::-1]
    while pending:
        value = pending.pop()
        yield value
        if isinstance(value, dict):
            if budget.consume(value):
                pending += [value[name] for name in sorted(value, reverse=True)]
        elif isinstance(value, list) and budget.consume(value):
            pending += value[::-1]


def _indexes(indexes: list[int]) -> Step:
    def step(values: Iterator[JSONValue], budget: Budget) -> Iterator[JSONValue]:
        for value in values:
            if isinstance(value, list):
                yield from (value[index] for index in indexes if -len(value) <= index < len(value))

    return step


def _slice(start: int | None, stop: int | None, stride: int | None) -> Step:
    if stride is not None and stride <= 0:
        raise JSONPathError("step must be > 0")

    def step(values: Iterator[JSONValue], budget: Budget) -> Iterator[JSONValue]:
        for value in values:
            if isinstance(value, list) and budget.consume(value):
                yield from value[start:stop:stride]

    return step


_COMPARE: Final[dict[str, Callable[[JSONValue, JSONValue], bool]]] = {
    "==": lambda one, other: bool(one == other),
    "!=": lambda one, other: bool(one != other),
    "<": lambda one, other: bool(one < other),
    "<=": lambda one, other: bool(one <= other),
    ">": lambda one, other: bool(one > other),
    ">=": lambda one, other: bool(one >= other),
}


def _filter(match: re.Match[str]) -> Step:
    path = JSONPath(match[1])
    compare = _COMPARE.get(match[2] or "")
    constant: JSONValue = match[3] if match[3] is not None else match[4]
    if constant is None and match[5] is not None:
        constant = _constant(match[5])

    def step(values: Iterator[JSONValue], budget: Budget) -> Iterator[JSONValue]:
        for value in values:
            if isinstance(value, list):
                for item in value:
                    if budget.remaining < 0:
                        return
                    if holds(item, budget):
                        yield item

    def holds(item: JSONValue, budget: Budget) -> bool:
        own = Budget(MAX_VISITED_PER_ITEM)
        result = path.first(item, own)
        budget.remaining -= MAX_VISITED_PER_ITEM - max(own.remaining, 0)
        if result is MISSING:
            return False
        if compare is None:
            return True
        try:
            return compare(result, constant)
        except TypeError:
            return False

    return step


def _constant(text: str) -> JSONValue:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise JSONPathError(f"unrecognized constant: {text!r}") from None
