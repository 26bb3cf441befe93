"""
Names of fields that are no identifiers of CEL: C{my-field} is C{my__dash__field} in expressions.

See kubernetes/apiserver, C{pkg/cel/escaping.go}.
"""

from __future__ import annotations

import re
from typing import Final

#: What the grammar keeps for itself. That C{namespace} is among them is felt in Kubernetes.
RESERVED: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_PLAIN: Final = {escape[2:-2]: text for text, escape in _ESCAPES.items()}

_escapable = re.compile("[a-zA-Z_./-][a-zA-Z0-9_./-]*").fullmatch
_special = re.compile("__|[-./]").sub
_escaped = re.compile("__([^_]+)__").sub


def escape(name: str) -> str | None:
    """The identifier for a field; L{None} when there is none, and the field is not to be had."""
    if name in RESERVED:
        return f"__{name}__"
    if not _escapable(name):
        return None
    return _special(lambda match: _ESCAPES[match[0]], name)


def unescape(identifier: str) -> str | None:
    """The field that an identifier stands for; L{None} when it has escapes that there are not."""
    if "__" not in identifier:
        return identifier
    known = True

    def plain(match: re.Match[str]) -> str:
        nonlocal known
        text = _PLAIN.get(match[1])
        if text is None:
            text = match[1]
            known = known and text in RESERVED and match[0] == identifier
        return text

    name = _escaped(plain, identifier)
    return name if known else None
