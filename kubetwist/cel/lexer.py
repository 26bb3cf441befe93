"""Lexer of expressions; errors have the texts of cel-go's generated lexer."""

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

#: Kinds of tokens in the order in which errors list the expected tokens. The kind of an operator is its text.
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
#: Matches the longest prefix of a token that is incomplete.
_VIABLE = re.compile(
    rf'"(?:{_ESCAPE}|[^\\"\n\r])*(?:\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}})?)?'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*(?:\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}})?)?"
    r"|`[A-Za-z0-9_.\-/ ]*"
    r"|[=&|]"
)


class Token(NamedTuple):
    """A token; the kind of operators and keywords is their text."""

    kind: str
    text: str
    offset: int


def tokenize(text: str) -> tuple[list[Token], list[tuple[int, str]]]:
    """
    Split an expression into tokens.

    @return: The tokens, of which the last has the kind L{EOF}; and the errors with their offsets.
    """
    tokens: list[Token] = []
    errors: list[tuple[int, str]] = []
    match = _TOKEN.match
    offset, end = 0, len(text)
    while offset < end:
        matched = match(text, offset)
        if matched is None:
            viable = _VIABLE.match(text, offset)
            # The incomplete token is skipped together with the invalid character.
            stop = (viable.end() if viable else offset) + 1
            errors.append((offset, f"token recognition error at: '{text[offset:stop]}'"))
            offset = stop
            continue
        kind = matched.lastgroup or ""
        piece = matched[0]
        if kind != "skip":
            if kind == "op" or (kind == IDENTIFIER and piece in _KEYWORDS):
                kind = piece
            tokens.append(Token(kind, piece, offset))
        offset = matched.end()
    tokens.append(Token(EOF, EOF, end))
    return tokens, errors


def expected(kinds: frozenset[str] | set[str]) -> str:
    """Return a set of token kinds as shown in errors."""
    names = [EOF] if EOF in kinds else []
    names += [kind if kind in _NAMED else f"'{kind}'" for kind in ORDER if kind in kinds]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
