"""Formatting of JSON values with Go's C{fmt}, for error messages that quote them."""

from __future__ import annotations

from ..jsontypes import JSONValue
from .quote import quoted
from .syntax import float_text


def go_text(value: JSONValue) -> str:
    """Return a value as C{%v} prints it: C{map[a:1 b:[x y]]}."""
    if value is None:
        return "<nil>"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    return float_text(value) if isinstance(value, float) else str(value)


def go_type(value: JSONValue) -> str:
    """Return the Go type of an untyped JSON value."""
    if value is None:
        return "%!s(<nil>)"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return "float64" if isinstance(value, float) else "int64"


def go_string(value: JSONValue) -> str:
    """Format a value with C{%s}, which is meant for strings: C{%!s(int64=7)}."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_string(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_string, value))}]"
    if isinstance(value, str):
        return value
    return go_type(value) if value is None else f"%!s({go_type(value)}={go_text(value)})"


def go_syntax(value: JSONValue) -> str:
    """Return a value as C{%#v} prints it: C{map[string]interface {}{"a":1}}."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return f"{go_type(value)}{{{', '.join(f'{quoted(key)}:{go_syntax(value[key])}' for key in sorted(value))}}}"
    if isinstance(value, list):
        return f"{go_type(value)}{{{', '.join(map(go_syntax, value))}}}"
    return go_text(value)
