"""
Removal of fields whose feature gates are disabled.

The table of an area (the spec of pods, the spec of Jobs, ...) lists its fields with their gates. A strategy selects the
disabled ones when it is configured, so that enabled gates cost nothing per request. Fields that the stored object uses
are kept: objects remain valid if a gate is disabled later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from attrs import frozen

from ...api.featuregates import FeatureGates, Release, known_gates
from ...api.resource import JSONObject

#: Returns the occurrences of a field in an object: the object that contains it, and its name.
Find = Callable[[JSONObject], Iterator[tuple[JSONObject, str]]]
#: Returns whether a stored object uses a field.
InUse = Callable[[JSONObject], bool]
#: Removes a field from an object.
Drop = Callable[[JSONObject], None]

#: Stands for the items of a list in the path of a field.
ITEMS: Final = "*"


@frozen(kw_only=True)
class GatedField:
    """
    A field with a feature gate.

    @ivar gate: The name of the gate.
    @ivar find: Returns the occurrences of the field.
    @ivar in_use: Returns whether a stored object uses the field; by default, whether it occurs.
    @ivar drop: Removes the field; by default, all occurrences.
    @ivar since: The first release with this rule, if the gate is older.
    @ivar until: The last release with this rule.
    """

    gate: str
    find: Find
    in_use: InUse | None = None
    drop: Drop | None = None
    since: Release = (1, 0)
    until: Release | None = None

    def applies(self, release: Release) -> bool:
        """Return whether a release has this rule; releases before the gate have none."""
        first = max(self.since, known_gates()[self.gate][0].since)
        return first <= release and (self.until is None or release <= self.until)

    def is_used(self, obj: JSONObject) -> bool:
        """Return whether a stored object uses the field."""
        return any(self.find(obj)) if self.in_use is None else self.in_use(obj)

    def remove(self, obj: JSONObject) -> None:
        """Remove the field from an object."""
        if self.drop is not None:
            self.drop(obj)
            return
        for holder, name in list(self.find(obj)):
            del holder[name]


class DisabledFields:
    """The fields of a table whose gates are disabled on a server."""

    __slots__ = ("_fields",)

    def __init__(self, table: Iterable[GatedField], features: FeatureGates) -> None:
        """
        @param table: The fields of an area.
        @param features: The feature gates of the server.
        """
        self._fields = tuple(
            gated for gated in table if not features.enabled(gated.gate) and gated.applies(features.release)
        )

    def drop(self, obj: JSONObject, old: JSONObject | None = None) -> None:
        """
        Remove the fields from an object.

        @param obj: The object; modified.
        @param old: The stored object, whose fields are kept; L{None} if C{obj} is created.
        """
        for gated in self._fields:
            if old is None or not gated.is_used(old):
                gated.remove(obj)


def field_at(*path: str) -> Find:
    """
    Return a function that finds a field by its path.

    @param path: The names of the fields to follow; L{ITEMS} stands for all items of a list.
    """
    *parents, name = path

    def find(obj: JSONObject) -> Iterator[tuple[JSONObject, str]]:
        holders: list[Any] = [obj]
        for step in parents:
            if step == ITEMS:
                holders = [item for items in holders for item in items]
            else:
                holders = [value for holder in holders if (value := holder.get(step))]
        for holder in holders:
            if holder.get(name) is not None:
                yield holder, name

    return find


def fields_of(*finds: Find) -> Find:
    """Return a function that finds several fields of one gate."""

    def find(obj: JSONObject) -> Iterator[tuple[JSONObject, str]]:
        for one in finds:
            yield from one(obj)

    return find


def not_empty(find: Find) -> InUse:
    """Return a function that returns whether a field occurs and is not empty, for lists and numbers in Go."""

    def in_use(obj: JSONObject) -> bool:
        return any(holder[name] for holder, name in find(obj))

    return in_use


def never(_: JSONObject) -> bool:
    """Return C{False}: the field is dropped even if the stored object has it."""
    return False
