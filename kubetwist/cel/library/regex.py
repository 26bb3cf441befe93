"""
Functions on regular expressions: C{find} and C{findAll}.

See kubernetes/apiserver, C{pkg/cel/library/regex.go}.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from kubetwist.cel.errors import CelError
from kubetwist.cel.functions import Library, function, member
from kubetwist.cel.types import INT, STRING, list_of

if TYPE_CHECKING:
    from kubetwist.api.patterns import Pattern


def _compiled(pattern: str) -> Pattern:
    from kubetwist.api.patterns import PatternError, compile_pattern

    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise CelError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    match = _compiled(pattern).search(text)
    return "" if match is None else match[0]


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    matches = _matches(_compiled(pattern), text)
    return list(matches if limit < 0 else islice(matches, limit))


def _matches(pattern: Pattern, text: str) -> Iterator[str]:
    """Return all matches except, as in Go, empty ones at the end of the previous match."""
    end = -1
    for match in pattern.finditer(text):
        if match.start() != match.end() or match.start() != end:
            yield match[0]
        end = match.end()


REGEX: Final = Library(
    "kubernetes.regex",
    [
        function("find", member("string_find_string", (STRING, STRING), STRING, _find)),
        function(
            "findAll",
            member("string_find_all_string", (STRING, STRING), list_of(STRING), _find_all),
            member("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all),
        ),
    ],
)
