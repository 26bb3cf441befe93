"""Values of an update, beside those that they replace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from ..api.resource import JSONObject
from .valuetests import encoded

if TYPE_CHECKING:
    from .schemavalues import ValueSchema


class Correlation:
    """
    A value of an update and the one that it replaces.

    @ivar schema: The schema at this place, which says how items of lists are told apart.
    """

    __slots__ = ("_by_keys", "old", "schema", "value")

    def __init__(self, value: Any, old: Any, schema: ValueSchema) -> None:
        self.value = value
        self.old = old
        self.schema = schema
        self._by_keys: dict[bytes, Any] | None = None

    @property
    def unchanged(self) -> bool:
        """Whether the two are the same."""
        if self.value.__class__ is not self.old.__class__:
            return False
        return self.value is self.old or encoded(self.value) == encoded(self.old)

    def field(self, name: str) -> Correlation | None:
        """The two values of a field, where both have it."""
        if not isinstance(self.value, dict) or not isinstance(self.old, dict):
            return None
        if name not in self.value or name not in self.old:
            return None
        schema = self.schema.properties.get(name) or self.schema.additional
        return None if schema is None else Correlation(self.value[name], self.old[name], schema)

    def item(self, index: int) -> Correlation | None:
        """The two values of an item, which only lists of type map can tell."""
        schema = self.schema
        if schema.list_type != "map" or schema.items is None or not isinstance(self.old, list):
            return None
        if self._by_keys is None:
            self._by_keys = {}
            for item in self.old:
                if isinstance(item, dict):
                    self._by_keys.setdefault(_keys_of(item, schema.list_map_keys), item)
        value = self.value[index]
        old = self._by_keys.get(_keys_of(value, schema.list_map_keys)) if isinstance(value, dict) else None
        return None if old is None else Correlation(value, old, schema.items)


def _keys_of(item: JSONObject, names: tuple[str, ...]) -> bytes:
    return orjson.dumps([item.get(name) for name in names])
