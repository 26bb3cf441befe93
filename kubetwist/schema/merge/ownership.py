"""
Field ownership after a write, and server-side apply; see structured-merge-diff, C{merge/update.go}.

Objects are plain dicts without C{managedFields}; the types of entries are in L{kubetwist.schema.merge.managedfields}.
Entries may have different versions of a kind, to which L{MergeConverter} converts objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ...api.jsonequality import same_value
from ...api.resource import JSONObject
from .fieldset import (
    LEAF,
    FieldSet,
    difference,
    intersection,
    paths,
    recursive_difference,
    union,
)
from .managedfields import (
    UNMANAGED_FIELDS,
    Entry,
    Manager,
    Managers,
)
from .types import (
    MergeType,
    TypedError,
)

#: Fields that a write added or modified, and fields that it removed, by C{apiVersion}.
Changed = Mapping[str, tuple[FieldSet, FieldSet]]


class MergeConverter(Protocol):
    """Types of the versions of a kind, and conversion of objects between them."""

    def type_of(self, api_version: str) -> MergeType | None:
        """
        Return the type of a version; L{None} if the version does not exist.

        @raise TypedError: The version does not exist, but its owned fields must be kept.
        """

    def convert(self, obj: JSONObject, source: str, target: str, hub: str) -> JSONObject:
        """
        Convert an object to another version; C{obj} is not modified.

        @param obj: The object.
        @param source: The C{apiVersion} of the object.
        @param target: The C{apiVersion} of the result.
        @param hub: The version of the endpoint, through which kinds without an internal version are converted.
        @raise TypedError: The conversion failed.
        """


class Filter(NamedTuple):
    """
    The fields that an endpoint's clients cannot own.

    @ivar excluded: These fields and all fields below them.
    """

    excluded: FieldSet = LEAF

    def __call__(self, fields: FieldSet) -> FieldSet:
        """Return a set without the fields that cannot be owned."""
        return recursive_difference(fields, self.excluded) if self.excluded else fields


#: Filters of an endpoint by C{apiVersion}; fields of other versions are not filtered.
Filters = Mapping[str, Filter]


class Conflicts(Exception):
    """
    An applier changes fields that other managers own.

    @ivar fields_by_manager: The fields in conflict, by manager.
    """

    def __init__(self, fields_by_manager: dict[Manager, FieldSet]) -> None:
        super().__init__("conflicts")
        self.fields_by_manager = fields_by_manager

    def items(self) -> list[tuple[Manager, tuple[str, ...]]]:
        """Return each path with its owner, in the order in which conflicts are reported."""
        return [
            (manager, path)
            for manager in sorted(self.fields_by_manager, key=Manager.identifier)
            for path in paths(self.fields_by_manager[manager])
        ]

    def fields(self) -> FieldSet:
        """Return the fields in conflict of all managers."""
        fields: FieldSet = LEAF
        for conflicting in self.fields_by_manager.values():
            fields = union(fields, conflicting)
        return fields


class _VersionedObject:
    """One object in the versions of its managers; each conversion is cached."""

    def __init__(self, rules: MergeUpdater, obj: JSONObject, error_prefix: str) -> None:
        """
        @param rules: The rules of the endpoint.
        @param obj: The object in the version of the endpoint.
        @param error_prefix: Prefix of the error of a failed conversion.
        """
        self._rules = rules
        self._converted = {rules.version: obj}
        self._about = error_prefix

    def in_version(self, target: str) -> JSONObject:
        """
        Return the object in a version.

        @raise TypedError: The conversion failed, or the result does not have the type of the version.
        """
        converted = self._converted.get(target)
        if converted is None:
            source = self._rules.version
            converted = self._converted[target] = self._rules.convert(
                self._converted[source], source, target, self._about
            )
        return converted


class MergeUpdater:
    """
    Field ownership of one endpoint (C{merge.Updater} in structured-merge-diff).

    @ivar versions: The versions of the kind.
    @ivar version: The C{apiVersion} of the endpoint.
    @ivar type: The type of the version.
    """

    def __init__(self, versions: MergeConverter, version: str, filters: Filters) -> None:
        self.versions = versions
        self.version = version
        self._filters = filters

    @property
    def type(self) -> MergeType:
        """Return the type of the endpoint's version."""
        merge_type = self.versions.type_of(self.version)
        assert merge_type is not None, self.version
        return merge_type

    def validate(self, obj: JSONObject, duplicates: bool, version: str = "") -> None:
        """
        Validate an object against its type.

        @param duplicates: Whether items of a list may have the same key.
        @param version: The version of the object, if it is not the endpoint's.
        @raise TypedError: The object does not have the type.
        """
        merge_type = self.versions.type_of(version or self.version)
        assert merge_type is not None, version
        errors = merge_type.validate(obj, duplicates)
        if errors:
            raise TypedError.from_errors(errors)

    def convert(self, obj: JSONObject, source: str, target: str, error_prefix: str = "") -> JSONObject:
        """
        Convert and validate an object; an object that already has the version is returned without validation.

        Pruned objects may lack required fields, so that an unnecessary conversion might fail; see apimachinery,
        C{util/managedfields/internal/versionconverter.go}.

        @param obj: The object.
        @param source: The C{apiVersion} of the object.
        @param target: The C{apiVersion} of the result.
        @param error_prefix: Prefix of the error.
        @raise TypedError: The conversion failed, or the result does not have the type of C{target}.
        """
        if source == target:
            return obj
        try:
            converted = self.versions.convert(obj, source, target, self.version)
            self.validate(converted, False, target)
        except TypedError as error:
            raise TypedError(f"{error_prefix}: {error}" if error_prefix else str(error)) from None
        return converted

    def compare(self, old: JSONObject, new: JSONObject, version: str) -> tuple[FieldSet, FieldSet]:
        """Return the added or modified fields and the removed fields between two objects of C{version}."""
        merge_type = self.versions.type_of(version)
        assert merge_type is not None, version
        if old == new and (not merge_type.contains_untyped() or same_value(old, new)):
            return LEAF, LEAF
        changed, removed = merge_type.compare(old, new)
        ignore_filter = self._filters.get(version)
        if ignore_filter is None:
            return changed or LEAF, removed or LEAF
        return ignore_filter(changed or LEAF), ignore_filter(removed or LEAF)

    def reconcile(self, managers: Managers, live: JSONObject) -> None:
        """
        Adapt entries to the current types, which may have changed after the entries were written.

        @param live: The object in the endpoint's version.
        @raise TypedError: The object cannot be converted to the version of an entry.
        """
        checked_versions = {self.version}
        for manager, entry in list(managers.items()):
            version = entry.api_version
            merge_type = self.versions.type_of(version)
            if merge_type is None:
                del managers[manager]
                continue
            if version not in checked_versions:
                self.convert(live, self.version, version)
                checked_versions.add(version)
            fields = merge_type.reconcile_field_set(entry.fields)
            if fields is not entry.fields:
                managers[manager] = entry._replace(fields=fields, source=None)

    def update(self, managers: Managers, old: JSONObject, new: JSONObject, manager: Manager, now: str) -> None:
        """
        Record in C{managers} that C{manager} changed C{old} to C{new}.

        @param managers: The entries; modified.
        @param old: The object before the write.
        @param new: The object after the write.
        @param manager: The manager.
        @param now: The time of the entry if anything changed.
        @raise TypedError: An object cannot be converted to the version of a manager.
        """
        changed, removed = self.compare(old, new, self.version)
        own_fields = difference(changed, UNMANAGED_FIELDS)
        previous = managers.get(manager)
        if previous is not None and own_fields and previous.keeps(own_fields, removed):
            # Most writers change the same fields again; their entry gets a new time only.
            changes = self._compare_versions(managers, old, new, (changed, removed), manager)
            self._release_fields(managers, changes, manager)
            managers[manager] = previous.at(now)
            return
        if managers:
            self._release_fields(managers, self._compare_versions(managers, old, new, (changed, removed)))
        if own_fields:
            previous = managers.get(manager)
            if previous is not None:
                own_fields = union(own_fields, previous.fields)
            managers[manager] = Entry(self.version, now, own_fields)

    def _release_fields(self, managers: Managers, changes: Changed, keep: Manager | None = None) -> None:
        """Remove changed and removed fields from the entries of all managers but C{keep}, and remove empty entries."""
        for manager, entry in list(managers.items()):
            fields = entry.fields
            if manager != keep:
                change = changes.get(entry.api_version)
                if change is None:
                    del managers[manager]
                    continue
                changed, removed = change
                if changed:
                    fields = difference(fields, changed)
                if removed:
                    fields = difference(fields, removed)
            if not fields:
                del managers[manager]
            elif fields is not entry.fields:
                managers[manager] = Entry(entry.api_version, entry.time, fields)

    def _compare_versions(
        self,
        managers: Managers,
        old: JSONObject,
        new: JSONObject,
        own_fields: tuple[FieldSet, FieldSet],
        keep: Manager | None = None,
    ) -> Changed:
        """
        Compare two objects in the version of each manager but C{keep}, except versions that no longer exist.

        @param own_fields: The result for the endpoint's version.
        @raise TypedError: One of the objects cannot be converted to a version.
        """
        changes = {self.version: own_fields}
        old_versions = new_versions = None
        for manager, entry in managers.items():
            version = entry.api_version
            if version not in changes and manager != keep and self.versions.type_of(version) is not None:
                if old_versions is None or new_versions is None:
                    old_versions = _VersionedObject(self, old, "failed to convert old object")
                    new_versions = _VersionedObject(self, new, "failed to convert new object")
                changes[version] = self.compare(
                    old_versions.in_version(version), new_versions.in_version(version), version
                )
        return changes

    def apply(
        self, managers: Managers, live: JSONObject, applied: JSONObject, manager: Manager, now: str, force: bool
    ) -> JSONObject:
        """
        Merge the fields that C{manager} applies, and record their ownership in C{managers}.

        @param managers: The entries; modified.
        @param live: The stored object.
        @param applied: The applied fields, already validated.
        @param manager: The manager.
        @param now: The time of the entry if anything changed.
        @param force: Whether conflicts are ignored.
        @return: The merged object, or C{live} if nothing changed.
        @raise Conflicts: Other managers own fields that would change, and C{force} is false; C{managers} is invalid
            then.
        @raise TypedError: The object cannot be converted to the version of a manager.
        """
        merge_type = self.type
        merged: JSONObject = merge_type.merge(live, applied)
        last_entry = managers.get(manager)
        own_fields = merge_type.to_field_set(applied)
        ignore_filter = self._filters.get(self.version)
        if ignore_filter is not None:
            own_fields = ignore_filter(own_fields)
        managed_fields = difference(own_fields, UNMANAGED_FIELDS)
        # Most appliers apply the same fields each time.
        same_fields = last_entry is not None and last_entry.equals(self.version, managed_fields)
        managers[manager] = Entry(self.version, last_entry.time if last_entry else "", own_fields)
        if (
            last_entry is not None
            and last_entry.fields
            and not same_fields
            and self._removes_owned_fields(last_entry, own_fields)
        ):
            try:
                merged = self._prune(merged, managers, last_entry)
            except TypedError as error:
                raise TypedError(f"failed to prune fields: {error}") from None
        changes = self._compare_versions(managers, live, merged, self.compare(live, merged, self.version), manager)
        if not force:
            self._check_conflicts(managers, changes, manager)
        self._release_fields(managers, changes, manager)
        unchanged = same_value(live, merged)
        if not managed_fields:
            managers.pop(manager, None)
        elif last_entry is not None and same_fields:
            managers[manager] = last_entry if unchanged else last_entry.at(now)
        elif unchanged:
            managers[manager] = Entry(self.version, last_entry.time if last_entry else "", managed_fields)
        else:
            managers[manager] = Entry(self.version, now, managed_fields)
        return live if unchanged else merged

    def _check_conflicts(self, managers: Managers, changes: Changed, manager: Manager) -> None:
        conflicts = {}
        for other, entry in managers.items():
            changed = changes.get(entry.api_version, (LEAF, LEAF))[0]
            if changed and other != manager:
                conflicting = intersection(entry.fields, changed)
                if conflicting:
                    conflicts[other] = conflicting
        if conflicts:
            raise Conflicts(conflicts)

    # --- removal of fields without an owner

    def _removes_owned_fields(self, last_entry: Entry, own_fields: FieldSet) -> bool:
        """Return whether the applier no longer owns a field of its last entry."""
        if last_entry.api_version != self.version:
            return True
        return bool(
            difference(
                self.type.ensure_named_fields_are_members(last_entry.fields),
                self.type.ensure_named_fields_are_members(own_fields),
            )
        )

    def _prune(self, merged: JSONObject, managers: Managers, last_entry: Entry) -> JSONObject:
        """
        Remove the fields from C{merged} that the applier applied last time and that now have no owner.

        @raise TypedError: It cannot be converted to the version of a manager.
        """
        version = last_entry.api_version
        merge_type = self.versions.type_of(version)
        if merge_type is None:
            return merged
        error_prefix = "failed to convert merged object to last applied version"
        converted = self.convert(merged, self.version, version, error_prefix)
        last_fields = merge_type.ensure_named_fields_are_members(last_entry.fields)
        try:
            pruned, pruned_version = self._add_back_owned_items(
                converted, merge_type.remove_items(converted, last_fields) or {}, version, managers
            )
        except TypedError as error:
            raise TypedError(f"failed add back owned items: {error}") from None
        error_prefix = "failed add back dangling items: failed to convert pruned object to last applied version"
        pruned = self.convert(pruned, pruned_version, version, error_prefix)
        before_fields, pruned_fields = (
            merge_type.ensure_named_fields_are_members(merge_type.to_field_set(converted)),
            merge_type.ensure_named_fields_are_members(merge_type.to_field_set(pruned)),
        )
        pruned = merge_type.remove_items(converted, intersection(difference(before_fields, pruned_fields), last_fields))
        return self.convert(pruned or {}, version, self.version)

    def _add_back_owned_items(
        self, merged: JSONObject, pruned: JSONObject, version: str, managers: Managers
    ) -> tuple[JSONObject, str]:
        """
        Add back fields of C{merged} that are missing in C{pruned} but have an owner.

        @param merged: The object before pruning.
        @param pruned: The pruned object.
        @param version: The version of both.
        @param managers: The entries.
        @return: The result, and its version.
        """
        owned: dict[str, FieldSet] = {}
        for entry in managers.values():
            owned[entry.api_version] = union(owned.get(entry.api_version, LEAF), entry.fields)
        # Begin with the version of the objects, since conversions may fail after pruning.
        for other in sorted(owned, key=lambda one: one != version):
            merge_type = self.versions.type_of(other)
            if merge_type is None:
                continue
            merged = self.convert(merged, version, other, f"failed to convert merged object at version {other}")
            pruned = self.convert(pruned, version, other, f"failed to convert pruned object at version {other}")
            owned_fields = union(
                merge_type.ensure_named_fields_are_members(merge_type.to_field_set(pruned)),
                merge_type.ensure_named_fields_are_members(owned[other]),
            )
            pruned = (
                merge_type.remove_items(
                    merged,
                    difference(
                        merge_type.ensure_named_fields_are_members(merge_type.to_field_set(merged)), owned_fields
                    ),
                )
                or {}
            )
            version = other
        return pruned, version
