"""JSON objects with duplicate keys, as written and as decoded."""

from __future__ import annotations

from collections.abc import Iterator

from .jsontypes import JSONObject, JSONValue

__all__ = ["DuplicateKeyDict", "duplicate_key_paths", "entries", "merged"]


class DuplicateKeyDict(dict[str, JSONValue]):
    """
    An object with duplicate keys; as a dictionary it has the last value of each key.

    @ivar pairs: All keys with their values, in document order.
    """

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, JSONValue]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def entries(value: JSONObject) -> Iterator[tuple[str, JSONValue, bool]]:
    """Yield the keys and values of an object in document order, and whether the key is a duplicate."""
    if not isinstance(value, DuplicateKeyDict):
        for key, item in value.items():
            yield key, item, False
        return
    seen: set[str] = set()
    for key, item in value.pairs:
        yield key, item, key in seen
        seen.add(key)


def merged(value: JSONValue) -> JSONValue:
    """Return a value as Go decodes it: the last of duplicate keys wins, but objects are merged."""
    if isinstance(value, list):
        return [merged(item) for item in value]
    if not isinstance(value, dict):
        return value
    result: JSONObject = {}
    for key, item, again in entries(value):
        item = merged(item)
        result[key] = _into(result[key], item) if again else item
    return result


def _into(before: JSONValue, after: JSONValue) -> JSONValue:
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return after
    result = dict(before)
    for key, item in after.items():
        result[key] = _into(result[key], item) if key in result else item
    return result


def duplicate_key_paths(value: JSONValue, path: str = "") -> Iterator[str]:
    """Yield the paths of duplicate keys, in document order."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from duplicate_key_paths(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, item, again in entries(value):
            below = f"{path}.{key}" if path else key
            if again:
                yield below
            yield from duplicate_key_paths(item, below)
