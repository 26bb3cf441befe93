"""Escaping of property names as CEL identifiers: C{foo-bar} is C{foo__dash__bar}."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

RESERVED: Final = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip

_WORDS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_CHARACTERS: Final = {word[2:-2]: character for character, word in _WORDS.items()}
_plain = re.compile(r"(?!.*__)[A-Za-z_][A-Za-z0-9_]*").fullmatch
_supported = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*").fullmatch
_special = re.compile(r"__|[-./]")
_escaped = re.compile(r"__([^_]+)__")


@lru_cache(maxsize=4096)
def escape(name: str) -> str | None:
    """Return the identifier of a property, or C{None} if it has none."""
    if name in RESERVED:
        return f"__{name}__"
    if _plain(name):
        return name
    return _special.sub(lambda match: _WORDS[match[0]], name) if _supported(name) else None


@lru_cache(maxsize=4096)
def unescape(identifier: str) -> str | None:
    """Return the property name of an identifier, or C{None} if the escape is invalid."""
    if "__" not in identifier:
        return identifier
    out: list[str] = []
    end = 0
    for match in _escaped.finditer(identifier):
        word = match[1]
        if word in RESERVED:
            if len(match[0]) != len(identifier):
                return None
            out.append(word)
        elif word in _CHARACTERS:
            out += (identifier[end : match.start()], _CHARACTERS[word])
        else:
            return None
        end = match.end()
    return "".join(out) + identifier[end:]
