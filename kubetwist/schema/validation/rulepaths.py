"""
Field paths of CEL rules. This module does not import CEL.

@see: kubernetes/apiextensions-apiserver, C{pkg/apiserver/schema/cel/validation.go}: C{ValidFieldPath}.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ...api.resource import JSONObject
from .listrules import child_path

#: The cost limit of all rules that one write evaluates, in CEL's units.
RULES_BUDGET: Final = 10_000_000
_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "'": "'",
    "\\": "\\",
}
_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+", re.DOTALL)


def has_rules(schema: JSONObject) -> bool:
    """Return whether a schema or its structure contains rules."""
    if schema.get("x-kubernetes-validations"):
        return True
    subschemas = [schema.get("items"), schema.get("additionalProperties"), *(schema.get("properties") or {}).values()]
    return any(has_rules(subschema) for subschema in subschemas if isinstance(subschema, dict))


def valid_field_path(path: str, schema: JSONObject) -> str:
    """
    Return a C{fieldPath} as formatted in errors: C{.spec.ports['a.b']} as C{spec.ports[a.b]}.

    @raise ValueError: The path does not exist in the schema.
    """
    return follow_field_path(path, schema)[0]


def follow_field_path(path: str, schema: JSONObject, *, brackets: bool = True) -> tuple[str, JSONObject]:
    """
    Return a path as formatted in errors, and the schema at its end.

    @param brackets: Whether names in brackets are allowed.
    @raise ValueError: The path does not exist in the schema; the message is kube-apiserver's.
    """
    tokens: Iterator[str] = iter(_TOKEN.findall(path))
    formatted = ""
    for token in tokens:
        if token == "[":
            if not brackets:
                raise ValueError("array notation is not allowed")
            name = _next_token(tokens)
            if len(name) < 2 or name[0] != "'" or name[-1] != "'":
                raise ValueError(f"expected single quoted string but got {name}")
            formatted, schema = _enter_field(formatted, _unescape(name[1:-1]), schema)
            closing = _next_token(tokens)
            if closing != "]":
                raise ValueError(f"expected ] but got {closing}")
        elif token == ".":
            formatted, schema = _enter_field(formatted, _next_token(tokens), schema)
        else:
            raise ValueError(f"expected [ or . but got: {token}")
    return formatted, schema


def _next_token(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise ValueError("unexpected end of JSON path")
    return token


def _enter_field(formatted: str, name: str, schema: JSONObject) -> tuple[str, JSONObject]:
    properties, additional = schema.get("properties"), schema.get("additionalProperties")
    if properties:
        if name not in properties:
            raise ValueError("does not refer to a valid field")
        return child_path(formatted, name), properties[name]
    if isinstance(additional, dict):
        return f"{formatted}[{name}]", additional
    raise ValueError("does not refer to a valid field")


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        token = _ESCAPES.get(match[0][1])
        if token is None:
            raise ValueError(f"invalid string literal: invalid escape char {match[0]}")
        return token

    return re.sub(r"\\.", replace, text, flags=re.DOTALL)
