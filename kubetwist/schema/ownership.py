"""
Who owns what after a write: the rules of server-side apply.

Objects are plain dicts without C{managedFields}; entries are L{kubetwist.schema.managedfields}'. Where entries are of
different versions of a kind, L{Versions} says what an object is in each.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import orjson

from ..api.resource import JSONObject
from .fieldset import (
    LEAF,
    FieldSet,
    difference,
    intersection,
    of_paths,
    paths,
    recursive_difference,
    union,
)
from .managedfields import Entry, Manager, Managers
from .mergetypes import MergeType

#: What nobody owns, since it is no part of what clients want.
NOBODYS: FieldSet = of_paths(
    [
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    ]
)


class Versions(Protocol):
    """The versions of a kind."""

    def type_of(self, api_version: str) -> MergeType | None:
        """The type of a version; L{None} when the kind has no such version (any more)."""

    def convert(self, obj: JSONObject, source: str, target: str) -> JSONObject:
        """
        An object in another version; C{obj} stays as it is.

        @raise ValueError: It can not be converted.
        """


class Filter(NamedTuple):
    """
    Which fields an endpoint lets its clients own.

    @ivar without: Neither these nor what is below them.
    """

    without: FieldSet = LEAF

    def __call__(self, fields: FieldSet) -> FieldSet:
        """What is left of a set."""
        return recursive_difference(fields, self.without) if self.without else fields


class Conflicts(Exception):
    """
    Someone else owns what an applier wants to change.

    @ivar found: What, and whose it is.
    """

    def __init__(self, found: dict[Manager, FieldSet]) -> None:
        super().__init__("conflicts")
        self.found = found

    def items(self) -> list[tuple[Manager, tuple[str, ...]]]:
        """Each path with its owner, in the order in which they are told."""
        return [
            (manager, path)
            for manager in sorted(self.found, key=Manager.identifier)
            for path in paths(self.found[manager])
        ]

    def fields(self) -> FieldSet:
        """All paths together."""
        fields: FieldSet = LEAF
        for found in self.found.values():
            fields = union(fields, found)
        return fields


class Ownership:
    """
    The rules, for one endpoint.

    @ivar versions: Those of its kind.
    @ivar version: That of the endpoint.
    @ivar type: Its type.
    """

    def __init__(self, versions: Versions, version: str, allowed: Filter) -> None:
        self.versions = versions
        self.version = version
        self._allowed = allowed

    @property
    def type(self) -> MergeType:
        """The type of the endpoint's version."""
        found = self.versions.type_of(self.version)
        assert found is not None, self.version
        return found

    def compare(self, old: JSONObject, new: JSONObject, version: str) -> tuple[FieldSet, FieldSet]:
        """What was added or modified from C{old} to C{new}, which are of C{version}, and what was removed."""
        kind = self.versions.type_of(version)
        assert kind is not None, version
        if old == new:
            return LEAF, LEAF
        changed, removed = kind.compare(old, new)
        return self._allowed(changed or LEAF), self._allowed(removed or LEAF)

    def reconcile(self, managers: Managers) -> None:
        """Bring entries that were written by other types of the same versions up to date."""
        for manager, entry in list(managers.items()):
            kind = self.versions.type_of(entry.api_version)
            if kind is None:
                del managers[manager]
                continue
            fields = kind.reconciled(entry.fields)
            if fields is not entry.fields:
                managers[manager] = entry._replace(fields=fields, source=None)

    def update(self, managers: Managers, old: JSONObject, new: JSONObject, manager: Manager, now: str) -> None:
        """
        Note, in C{managers}, that C{manager} made C{new} of C{old}.

        @param now: The time, as the entry has it if anything changed.
        """
        changed, removed = self.compare(old, new, self.version)
        if managers:
            self._release(managers, old, new, {self.version: (changed, removed)})
        own = difference(changed, NOBODYS)
        if own:
            previous = managers.get(manager)
            if previous is not None:
                own = union(own, previous.fields)
            managers[manager] = Entry(self.version, now, own)

    def _release(
        self,
        managers: Managers,
        old: JSONObject,
        new: JSONObject,
        known: dict[str, tuple[FieldSet, FieldSet]],
        keep: Manager | None = None,
    ) -> None:
        """Take from all but C{keep} what changed and what is gone, and drop who owns nothing."""
        for manager, entry in list(managers.items()):
            fields = entry.fields
            if manager != keep:
                changes = self._changes(entry.api_version, old, new, known)
                if changes is None:
                    del managers[manager]
                    continue
                changed, removed = changes
                if changed:
                    fields = difference(fields, changed)
                if removed:
                    fields = difference(fields, removed)
            if not fields:
                del managers[manager]
            elif fields is not entry.fields:
                managers[manager] = Entry(entry.api_version, entry.time, fields)

    def _changes(
        self, version: str, old: JSONObject, new: JSONObject, known: dict[str, tuple[FieldSet, FieldSet]]
    ) -> tuple[FieldSet, FieldSet] | None:
        """The changes as another version sees them; L{None} for one that is gone."""
        changes = known.get(version)
        if changes is None:
            if self.versions.type_of(version) is None:
                return None
            convert = self.versions.convert
            changes = known[version] = self.compare(
                convert(old, self.version, version), convert(new, self.version, version), version
            )
        return changes

    def apply(
        self, managers: Managers, live: JSONObject, applied: JSONObject, manager: Manager, now: str, force: bool
    ) -> JSONObject:
        """
        Merge what C{manager} applies, and note it in C{managers}.

        @param applied: Checked by the type.
        @param now: The time, as the entry has it if anything changed.
        @return: The object with it, which is C{live} itself when nothing changed.
        @raise Conflicts: Others own what would change, and it is not forced; C{managers} is spoilt.
        """
        merged: JSONObject = self.type.merge(live, applied)
        last = managers.get(manager)
        own = self._allowed(self.type.owned(applied))
        managers[manager] = Entry(self.version, last.time if last else "", own)
        if last is not None and last.fields and self._drops(last, own):
            merged = self._pruned(merged, managers, last)
        known = {self.version: self.compare(live, merged, self.version)}
        if not force:
            self._check_conflicts(managers, live, merged, manager, known)
        self._release(managers, live, merged, known, keep=manager)
        own = difference(own, NOBODYS)
        unchanged = same(live, merged)
        if not own:
            managers.pop(manager, None)
        elif unchanged:
            managers[manager] = Entry(self.version, last.time if last else "", own)
        else:
            managers[manager] = Entry(self.version, now, own)
        return live if unchanged else merged

    def _check_conflicts(
        self,
        managers: Managers,
        old: JSONObject,
        new: JSONObject,
        manager: Manager,
        known: dict[str, tuple[FieldSet, FieldSet]],
    ) -> None:
        found = {}
        for other, entry in managers.items():
            if other != manager:
                changes = self._changes(entry.api_version, old, new, known)
                if changes is not None and changes[0]:
                    disputed = intersection(entry.fields, changes[0])
                    if disputed:
                        found[other] = disputed
        if found:
            raise Conflicts(found)

    # --- what nobody applies any more

    def _drops(self, last: Entry, own: FieldSet) -> bool:
        """Whether an applier, who owned C{last}, does not own something of it any more."""
        if last.api_version != self.version:
            return True
        return bool(difference(self.type.named(last.fields), self.type.named(own)))

    def _pruned(self, merged: JSONObject, managers: Managers, last: Entry) -> JSONObject:
        """C{merged} less what its applier applied last time and, like everybody else, does not own now."""
        kind = self.versions.type_of(last.api_version)
        if kind is None:
            return merged
        convert = self.versions.convert
        before = convert(merged, self.version, last.api_version)
        named = kind.named(last.fields)
        pruned = kind.without(before, named)
        pruned = self._with_owned(before, pruned or {}, last.api_version, managers)
        has, keeps = kind.named(kind.owned(before)), kind.named(kind.owned(pruned))
        pruned = kind.without(before, intersection(difference(has, keeps), named))
        return convert(pruned or {}, last.api_version, self.version)

    def _with_owned(self, merged: JSONObject, pruned: JSONObject, version: str, managers: Managers) -> JSONObject:
        """C{pruned} with what of C{merged} somebody owns; both are of C{version}, and so is the result."""
        owned: dict[str, FieldSet] = {version: LEAF}
        for entry in managers.values():
            owned[entry.api_version] = union(owned.get(entry.api_version, LEAF), entry.fields)
        # The version of the objects comes first: others may not be able to show what lost too much.
        for other, fields in owned.items():
            kind = self.versions.type_of(other)
            if kind is None or not fields:
                continue
            whole = self.versions.convert(merged, version, other)
            part = self.versions.convert(pruned, version, other)
            kept = union(kind.named(kind.owned(part)), kind.named(fields))
            rest = kind.without(whole, difference(kind.named(kind.owned(whole)), kept))
            pruned = self.versions.convert(rest or {}, other, version)
        return pruned


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, which C{1} and C{true} are not, though Python thinks so."""
    if one != other:
        return False
    sort = orjson.OPT_SORT_KEYS
    return orjson.dumps(one, option=sort) == orjson.dumps(other, option=sort) or _same(one, other)


def _same(one: Any, other: Any) -> bool:
    if one.__class__ is dict:
        return all(_same(value, other[name]) for name, value in one.items())
    if one.__class__ is list:
        return all(map(_same, one, other))
    return isinstance(one, bool) is isinstance(other, bool)
