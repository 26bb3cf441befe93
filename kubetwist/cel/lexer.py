"""Splits an expression into tokens, and reports invalid characters as the reference's generated lexer does."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

EOF: Final = "<EOF>"
INT: Final = "NUM_INT"
UINT: Final = "NUM_UINT"
FLOAT: Final = "NUM_FLOAT"
STRING: Final = "STRING"
BYTES: Final = "BYTES"
IDENTIFIER: Final = "IDENTIFIER"
ESCAPED: Final = "ESC_IDENTIFIER"

#: All kinds of tokens in the order in which errors list what they expected. Operators are their own kind.
ORDER: Final = (
    "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":",
    "+", "*", "/", "%", "true", "false", "null", FLOAT, INT, UINT, STRING, BYTES, IDENTIFIER, ESCAPED,
)  # fmt: skip

_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})
_NAMED: Final = frozenset({EOF, INT, UINT, FLOAT, STRING, BYTES, IDENTIFIER, ESCAPED})

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_TEXT = (
    rf'"""(?:{_ESCAPE}|[^\\])*?"""'
    rf"|'''(?:{_ESCAPE}|[^\\])*?'''"
    r'|[rR]"""(?s:.)*?"""'
    r"|[rR]'''(?s:.)*?'''"
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*'"
    r'|[rR]"[^"\n\r]*"'
    r"|[rR]'[^'\n\r]*'"
)
_TOKEN = re.compile(
    r"(?P<skip>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<{BYTES}>[bB](?:{_TEXT}))"
    rf"|(?P<{STRING}>{_TEXT})"
    rf"|(?P<{FLOAT}>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    rf"|(?P<{UINT}>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])"
    rf"|(?P<{INT}>0x[0-9a-fA-F]+|[0-9]+)"
    rf"|(?P<{IDENTIFIER}>[A-Za-z_][A-Za-z0-9_]*)"
    rf"|(?P<{ESCAPED}>`[A-Za-z0-9_.\-/ ]+`)"
    r"|(?P<op>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])"
)
#: The longest start of a token that the text could still become.
_VIABLE = re.compile(
    rf'"(?:{_ESCAPE}|[^\\"\n\r])*(?:\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}})?)?'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*(?:\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}})?)?"
    r"|`[A-Za-z0-9_.\-/ ]*"
    r"|[=&|]"
)


class Token(NamedTuple):
    """A piece of the text; C{kind} is the text itself for operators and key words."""

    kind: str
    text: str
    offset: int


def tokenize(text: str) -> tuple[list[Token], list[tuple[int, str]]]:
    """
    Cut a text.

    @return: The tokens, the last of kind L{EOF}; and the skipped characters with their offsets.
    """
    found: list[Token] = []
    errors: list[tuple[int, str]] = []
    match = _TOKEN.match
    offset, end = 0, len(text)
    while offset < end:
        matched = match(text, offset)
        if matched is None:
            viable = _VIABLE.match(text, offset)
            # The character that cannot follow is skipped with what stands before it.
            stop = (viable.end() if viable else offset) + 1
            errors.append((offset, f"token recognition error at: '{text[offset:stop]}'"))
            offset = stop
            continue
        kind = matched.lastgroup or ""
        piece = matched[0]
        if kind != "skip":
            if kind == "op" or (kind == IDENTIFIER and piece in _KEYWORDS):
                kind = piece
            found.append(Token(kind, piece, offset))
        offset = matched.end()
    found.append(Token(EOF, EOF, end))
    return found, errors


def expected(kinds: frozenset[str] | set[str]) -> str:
    """Return the name of a set of token kinds as used in errors."""
    names = [EOF] if EOF in kinds else []
    names += [kind if kind in _NAMED else f"'{kind}'" for kind in ORDER if kind in kinds]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
