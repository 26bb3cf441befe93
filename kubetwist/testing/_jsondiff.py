"""The difference between two JSON values as a JSON patch."""

from __future__ import annotations

from collections.abc import Iterator

from ..api.jsontypes import JSONObject, JSONValue


def json_patch(before: JSONValue, after: JSONValue, path: str = "") -> list[JSONObject]:
    """
    Return the operations of RFC 6902 that make C{after} from C{before}.

    Items of lists are compared by their positions.

    @param path: The JSON pointer of the values.
    """
    return list(_operations(before, after, path))


def _operations(before: JSONValue, after: JSONValue, path: str) -> Iterator[JSONObject]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before:
            if name not in after:
                yield {"op": "remove", "path": f"{path}/{_escape(name)}"}
        for name, value in after.items():
            place = f"{path}/{_escape(name)}"
            if name in before:
                yield from _operations(before[name], value, place)
            else:
                yield {"op": "add", "path": place, "value": value}
    elif isinstance(before, list) and isinstance(after, list):
        shared = min(len(before), len(after))
        for index in range(shared):
            yield from _operations(before[index], after[index], f"{path}/{index}")
        for index in range(len(before) - 1, shared - 1, -1):
            yield {"op": "remove", "path": f"{path}/{index}"}
        for value in after[shared:]:
            yield {"op": "add", "path": f"{path}/-", "value": value}
    elif type(before) is not type(after) or before != after:
        yield {"op": "replace", "path": path, "value": after}


def _escape(name: str) -> str:
    """Return a key as a token of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")
