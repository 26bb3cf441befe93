"""
The text of a patched object in errors, as the reference writes it.

The error about an invalid result quotes it. The reference patches JSON text and decodes only the objects on the paths
of the patch: these have sorted keys, all further objects have the order of Go's structs, and values of the patch are
unchanged.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ...schema.gofieldorder import child_type, go_ordered
from ...schema.nodes import TypeNode

#: Marks a value that the patch does not touch.
_UNTOUCHED: Final = object()
#: Marks a value that was decoded completely.
_SORTED: Final = object()
#: Marks a value of the patch itself.
_AS_SENT: Final = object()

_HTML: Final = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def merged_text(value: JSONValue, patch: JSONValue, node: TypeNode | None) -> str:
    """
    Return the result of a merge patch as errors quote it.

    @param node: The type of the object; L{None} for custom resources, whose keys are always sorted.
    """
    return _text(_ordered(value, _SORTED if node is None else _touched_by_merge(patch), node))


def stepwise_text(value: JSONValue, operations: JSONValue, node: TypeNode | None) -> str:
    """Return the result of a JSON patch as errors quote it; see L{merged_text}."""
    if node is None:
        return _text(_ordered(value, _SORTED, node))
    touched: dict[str, Any] = {}
    for step in operations or ():
        op = step.get("op")
        _touch(touched, step.get("path") or "", _AT_TARGET.get(op, _UNTOUCHED))
        if op in ("move", "copy"):
            _touch(touched, step.get("from") or "", _UNTOUCHED)
    return _text(_ordered(value, touched, node))


_AT_TARGET: Final = {"add": _AS_SENT, "replace": _AS_SENT, "test": _SORTED}


def _touched_by_merge(patch: JSONValue) -> JSONValue:
    return {name: _touched_by_merge(item) for name, item in patch.items()} if isinstance(patch, dict) else _SORTED


def _touch(touched: JSONObject, pointer: str, target: JSONValue) -> None:
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
    for token in tokens[:-1]:
        within = touched.get(token)
        if not isinstance(within, dict):
            within = touched[token] = {}
        touched = within
    if tokens and target is not _UNTOUCHED:
        touched[tokens[-1]] = target


def _ordered(value: JSONValue, touched: JSONValue, node: TypeNode | None) -> JSONValue:
    if touched is _UNTOUCHED:
        return go_ordered(value, node)
    if touched is _AS_SENT or not isinstance(value, (dict, list)):
        return value
    if touched is _SORTED:
        return orjson.loads(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
    if isinstance(value, list):
        within = {_index(token, value): item for token, item in touched.items()}
        item_node = child_type(node, "")
        return [_ordered(item, within.get(index, _UNTOUCHED), item_node) for index, item in enumerate(value)]
    return {
        name: _ordered(value[name], touched.get(name, _UNTOUCHED), child_type(node, name)) for name in sorted(value)
    }


def _index(token: str, items: list[JSONValue]) -> int:
    """Return the index of the item that a token of a path refers to, approximately."""
    if token == "-" or token.startswith("-"):
        return len(items) - 1
    return int(token) if token.isdecimal() else len(items)


def _text(value: JSONValue) -> str:
    return orjson.dumps(value).decode().translate(_HTML)
