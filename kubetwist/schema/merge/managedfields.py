"""
Encoding and decoding of C{metadata.managedFields}, its order, and the limit on its length.

The rules of ownership are in L{kubetwist.schema.merge.ownership}.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ...api.go.quote import quoted
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from .fieldpath import (
    InvalidPathElement,
    scalar_text,
)
from .fieldset import (
    FieldSet,
    contains,
    decode,
    difference,
    field_set_from_paths,
    sort_field_set,
    union,
)

APPLY: Final = "Apply"
UPDATE: Final = "Update"

#: Maximum number of update entries; more are merged.
MAX_UPDATE_MANAGERS: Final = 10
#: Name of the manager of merged entries.
ANCIENT_CHANGES: Final = "ancient-changes"

#: Fields that no manager owns; see apimachinery, C{util/managedfields/internal/stripmeta.go}.
UNMANAGED_FIELDS: FieldSet = field_set_from_paths(
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


class Manager(NamedTuple):
    """
    The key of an entry of C{managedFields}.

    @ivar api_version: C{""} for appliers, which have one entry for all versions.
    """

    operation: str
    name: str
    api_version: str
    subresource: str

    def identifier(self) -> str:
        """Return the sort key of a manager: its JSON in apimachinery."""
        parts = (
            ("manager", self.name),
            ("operation", self.operation),
            ("apiVersion", self.api_version),
            ("subresource", self.subresource),
        )
        return "{" + ",".join(f'"{name}":{scalar_text(value)}' for name, value in parts if value) + "}"

    def __str__(self) -> str:
        text = quoted(self.name)
        if self.subresource:
            text += f" with subresource {quoted(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class Entry(NamedTuple):
    """
    The fields that a manager owns.

    @ivar api_version: The version of C{fields}.
    @ivar time: The time of the manager's last change; C{""} if unknown.
    @ivar source: The encoded entry, if it is unchanged.
    """

    api_version: str
    time: str
    fields: FieldSet
    source: JSONObject | None = None

    def keeps(self, changed: FieldSet, removed: FieldSet) -> bool:
        """
        Return whether the fields are the same after a write by the manager: it owned what it changed.

        @param changed: The fields that the manager changed, without L{UNMANAGED_FIELDS}.
        @param removed: The fields that it removed.
        """
        fields = self.fields
        return (
            contains(fields, changed)
            and difference(fields, removed) is fields
            and difference(fields, UNMANAGED_FIELDS) is fields
        )

    def equals(self, api_version: str, fields: FieldSet) -> bool:
        """Return whether the entry has exactly these fields of this version."""
        return self.api_version == api_version and self.fields == fields

    def at(self, time: str) -> Entry:
        """Return an entry with the same fields and another time."""
        source = self.source
        # Without a time, there is no position for it.
        return Entry(
            self.api_version,
            time,
            self.fields,
            None if source is None or "time" not in source else {**source, "time": time},
        )


Managers = dict[Manager, Entry]


class MalformedEntries(ValueError):
    """C{managedFields} from a client are invalid."""


def decode_stored_entries(entries: Iterable[JSONValue]) -> Managers:
    """
    Decode stored entries, whose sets are canonical.

    If several entries have the same key, the last one counts.
    """
    managers: Managers = {}
    for entry in entries:
        get = entry.get
        version, operation = get("apiVersion", ""), get("operation", "")
        key = Manager(operation, get("manager", ""), "" if operation == APPLY else version, get("subresource", ""))
        managers[key] = Entry(version, get("time") or "", get("fieldsV1") or {}, entry)
    return managers


def decode_client_entries(entries: Iterable[JSONValue]) -> Managers:
    """
    Validate and decode entries that a client sent.

    @raise MalformedEntries: An entry is invalid.
    """
    checked = []
    for index, entry in enumerate(entries):
        if entry.get("operation") not in (APPLY, UPDATE):
            raise MalformedEntries("operation must be `Apply` or `Update`")
        if not entry.get("apiVersion"):
            raise MalformedEntries("apiVersion must not be empty")
        fields_type = entry.get("fieldsType", "")
        if fields_type != "FieldsV1":
            problem = f"invalid fieldsType {quoted(fields_type)}" if fields_type else "missing fieldsType"
            raise MalformedEntries(f"{problem} in managed fields entry {index}")
        try:
            fields = sort_field_set(decode(entry.get("fieldsV1")))
        except InvalidPathElement as error:
            raise MalformedEntries(f"error decoding set: {error}") from None
        checked.append({**entry, "fieldsV1": fields})
    return {manager: entry._replace(source=None) for manager, entry in decode_stored_entries(checked).items()}


def is_reset_request(entries: JSONValue) -> bool:
    """Return whether entries from a client reset all ownership: C{[]} or C{[{}]}."""
    return entries is not None and (not entries or (len(entries) == 1 and not entries[0]))


def encode_entries(managers: Managers) -> list[JSONObject]:
    """Return the encoded entries, sorted."""
    if len(managers) > 1:
        keys = sorted(managers, key=lambda key: (key[0], managers[key].time, key[1], managers[key].api_version, key[3]))
        return [_encode_entry(key, managers[key]) for key in keys]
    return [_encode_entry(key, entry) for key, entry in managers.items()]


def _encode_entry(manager: Manager, entry: Entry) -> JSONObject:
    if entry.source is not None:
        return entry.source
    encoded: JSONObject = {}
    if manager.name:
        encoded["manager"] = manager.name
    encoded["operation"] = manager.operation
    encoded["apiVersion"] = entry.api_version
    if entry.time:
        encoded["time"] = entry.time
    encoded["fieldsType"] = "FieldsV1"
    encoded["fieldsV1"] = sort_field_set(entry.fields)
    if manager.subresource:
        encoded["subresource"] = manager.subresource
    return encoded


def cap_update_managers(managers: Managers) -> None:
    """Merge the oldest update entries of each version in C{managers} if there are too many entries."""
    updaters = [manager for manager in managers if manager.operation == UPDATE]
    remaining = len(updaters)
    if remaining <= MAX_UPDATE_MANAGERS:
        return
    updaters.sort(key=lambda manager: (managers[manager].time, manager.identifier()))
    first_of: dict[str, Manager] = {}
    for manager in updaters:
        if remaining <= MAX_UPDATE_MANAGERS:
            return
        entry = managers[manager]
        first = first_of.setdefault(entry.api_version, manager)
        if first is manager:
            continue
        bucket = Manager(UPDATE, ANCIENT_CHANGES, entry.api_version, "")
        if bucket not in managers:
            managers[bucket] = managers.pop(first)
        # The bucket gets the time of its newest entry.
        fields = union(entry.fields, managers[bucket].fields)
        del managers[manager]
        managers[bucket] = Entry(entry.api_version, entry.time, fields)
        remaining -= 1
