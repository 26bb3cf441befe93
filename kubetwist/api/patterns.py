"""Regular expressions from clients: RE2, whose time is linear in the lengths of expression and text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Protocol

import re2

#: Maximum memory of a compiled expression, in bytes.
_MEMORY: Final = 1 << 20
_options: Final = re2.Options()
_options.log_errors = False
_options.max_mem = _MEMORY

#: Error texts of Go's regexp that differ from RE2's.
_GO_WORDS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid character class range": "invalid character class range",
    "invalid escape sequence": "invalid escape sequence",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
}


class Match(Protocol):
    """A match of an expression, with the interface of L{re.Match}."""

    def group(self, index: int = 0, /) -> str | None:
        """Return the text of a group, 0 for the whole match; L{None} if the group did not match."""

    def __getitem__(self, index: int, /) -> str:
        """Return the text of a group; L{None} if the group did not match."""

    def groups(self) -> tuple[str | None, ...]:
        """Return the texts of all groups."""

    def start(self, index: int = 0, /) -> int:
        """Return the start of a group."""

    def end(self, index: int = 0, /) -> int:
        """Return the end of a group."""


class Pattern(Protocol):
    """A compiled expression."""

    #: Number of groups.
    groups: int

    def search(self, text: str, /) -> Match | None:
        """Return the first match anywhere in a text."""

    def finditer(self, text: str, /) -> Iterator[Match]:
        """Return all matches that do not overlap."""


class PatternError(ValueError):
    """An invalid regular expression; C{str} of it is Go's message."""


#: Maximum length of cached expressions, to bound the memory of the cache.
_CACHED_LENGTH: Final = 512


def compile_pattern(pattern: str) -> Pattern:
    """
    Compile an expression.

    @raise PatternError: The value is invalid.
    """
    return _cached(pattern) if len(pattern) <= _CACHED_LENGTH else _compile(pattern)


@lru_cache(maxsize=1024)
def _cached(pattern: str) -> Pattern:
    return _compile(pattern)


def _compile(pattern: str) -> Pattern:
    try:
        expression: Pattern = re2.compile(pattern, _options)
        return expression
    except re2.error as error:
        message = error.args[0]
        text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        what, _, path = text.partition(": ")
        words = _GO_WORDS.get(what, what)
        raise PatternError(f"error parsing regexp: {words}: `{path or pattern}`") from None
