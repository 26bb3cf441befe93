"""Correlation of the values of an update with the old values."""

from __future__ import annotations

from typing import Final

from ...api.jsontypes import JSONValue
from .conditions import Conditions
from .constraints import encoded

_SCALARS: Final = frozenset((bool, int, float, str))


class CorrelatedObject:
    """
    A value of an update and the old value that it replaces.

    @ivar schema: The schema of the value, which defines how list items are identified.
    @see: kubernetes, C{apiserver/pkg/cel/common/equality.go} and C{maplist.go}.
    """

    __slots__ = ("_by_keys", "_fields", "_unchanged", "old", "schema", "value")

    def __init__(self, value: JSONValue, old: JSONValue, schema: Conditions) -> None:
        self.value = value
        self.old = old
        self.schema = schema
        self._by_keys: dict[JSONValue, JSONValue] | None = None
        self._fields: dict[str, CorrelatedObject] = {}
        self._unchanged: bool | None = None

    @property
    def unchanged(self) -> bool:
        """
        Return whether the two values are equal.

        Lists of type map are compared regardless of their order if all items have their keys. Objects with fields
        without a schema are never equal.
        """
        if self._unchanged is None:
            self._unchanged = self._compare()
        return self._unchanged

    def _compare(self) -> bool:
        value, old = self.value, self.old
        if value.__class__ is not old.__class__:
            return False
        if value.__class__ is dict:
            if len(value) != len(old):
                return False
            fields = (self.key(name) for name in value)
            return all(field is not None and field.unchanged for field in fields)
        if value.__class__ is list and self.schema.list_type == "map":
            if len(value) != len(old):
                return False
            items = (self.index(index) for index in range(len(value)))
            return all(item is not None and item.unchanged for item in items)
        return value is old or encoded(value) == encoded(old)

    def key(self, name: str) -> CorrelatedObject | None:
        """Return the values of a field, or L{None} unless both objects have the field and it has a schema."""
        existing = self._fields.get(name)
        if existing is not None:
            return existing
        if not isinstance(self.value, dict) or not isinstance(self.old, dict):
            return None
        if name not in self.value or name not in self.old:
            return None
        schema = self.schema.properties.get(name) or self.schema.additional
        if schema is None:
            return None
        correlated = self._fields[name] = CorrelatedObject(self.value[name], self.old[name], schema)
        return correlated

    def index(self, index: int) -> CorrelatedObject | None:
        """Return the values of an item of a list of type map, or L{None} without an old item with its keys."""
        schema = self.schema
        if schema.list_type != "map" or schema.items is None or not isinstance(self.old, list):
            return None
        if self._by_keys is None:
            self._by_keys = {}
            for item in self.old:
                keys = _keys_of(item, schema.list_map_keys)
                if keys is not None:
                    self._by_keys.setdefault(keys, item)
        keys = _keys_of(self.value[index], schema.list_map_keys)
        old = None if keys is None else self._by_keys.get(keys)
        return None if old is None else CorrelatedObject(self.value[index], old, schema.items)


def _keys_of(item: JSONValue, names: tuple[str, ...]) -> tuple[JSONValue, ...] | None:
    """Return the keys of an item with their types, or L{None} if a key is missing or not a scalar."""
    if not isinstance(item, dict) or not names:
        return None
    keys = tuple((value.__class__, value) for name in names if (value := item.get(name)).__class__ in _SCALARS)
    return keys if len(keys) == len(names) else None
