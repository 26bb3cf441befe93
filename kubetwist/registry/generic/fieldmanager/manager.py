"""
Field managers: updates of C{metadata.managedFields} in writes to one endpoint, and server-side apply.

The rules are in L{kubetwist.schema.merge.ownership}. This module selects the entries of managedFields, converts between
the versions of built-in kinds, and returns errors for clients. The special case for C{kubectl} is in
L{kubetwist.registry.generic.fieldmanager.lastapplied}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from ....api import times
from ....api.errors import APIStatusError, FieldError
from ....api.jsonequality import same_json
from ....api.jsontypes import JSONValue
from ....api.resource import GroupVersion, GroupVersionKind, JSONObject
from ....schema.merge.fieldpath import format_path
from ....schema.merge.managedfields import (
    APPLY,
    UPDATE,
    MalformedEntries,
    Manager,
    Managers,
    cap_update_managers,
    decode_client_entries,
    decode_stored_entries,
    encode_entries,
    is_reset_request,
)
from ....schema.merge.ownership import Conflicts, Filters, MergeConverter, MergeUpdater
from ....schema.merge.types import MergeType, TypedError
from ..conversion import convert
from . import lastapplied

if TYPE_CHECKING:
    from ....schema.definitions import Definitions
    from ..resourceinfo import ResourceInfo

#: The field manager of fields that existed before managed fields were tracked.
BEFORE_FIRST_APPLY = "before-first-apply"
#: The field manager whose applies use and update the annotation of client-side apply.
KUBECTL = "kubectl"
#: Format of the error for a live object that does not fit its type.
LIVE_MISFIT = "failed to create typed live object ({})"


class BuiltInVersionConverter:
    """
    The versions of a built-in kind; see L{MergeConverter}.

    @ivar kinds: The kind in each version, by C{apiVersion}; Events have two groups.
    """

    def __init__(self, definitions: Definitions, kinds: Mapping[str, GroupVersionKind]) -> None:
        self._definitions = definitions
        self.kinds = kinds
        self._types: dict[str, MergeType | None] = {}

    def type_of(self, api_version: str) -> MergeType | None:
        """See L{Versions.type_of}."""
        try:
            return self._types[api_version]
        except KeyError:
            gvk = self.kinds.get(api_version)
            if gvk is None:
                # Versions from clients are not cached, as they can be arbitrary texts.
                parsed_version(api_version)
                return None
            known = self._definitions.has_kind(gvk)
            merge_type = self._types[api_version] = self._definitions.merge_type_for(gvk) if known else None
            return merge_type

    def convert(self, obj: JSONObject, source: str, target: str, hub: str) -> JSONObject:
        """
        See L{Versions.convert}.

        @param source: The C{apiVersion} of the object.
        @param target: The C{apiVersion} of the result.
        @param hub: Ignored, since built-in kinds are converted directly.
        """
        return convert(obj, self.kinds[source], self.kinds[target])


def parsed_version(api_version: str) -> GroupVersion:
    """
    Parse the C{apiVersion} of an entry.

    @raise TypedError: The text has more than one slash.
    """
    try:
        return GroupVersion.parse(api_version)
    except ValueError as error:
        raise TypedError(str(error)) from None


class FieldManager:
    """
    The field manager of one endpoint: a resource in one version, or a subresource of it.

    @ivar gvk: The kind that clients send.
    """

    def __init__(
        self,
        gvk: GroupVersionKind,
        versions: MergeConverter,
        zero: Callable[[], JSONObject],
        *,
        stored: GroupVersionKind | None = None,
        subresource: str = "",
        filters: Filters | None = None,
        types_change: bool = False,
    ) -> None:
        """
        @param gvk: The kind that clients send.
        @param versions: Converts objects between the versions of the kind.
        @param zero: Returns the zero value of the kind, as L{ObjectType.zero} does.
        @param stored: The version of the objects passed to L{update} and L{apply}, if it differs.
        @param subresource: The subresource; C{""} for the main resource.
        @param filters: The fields that clients of the endpoint may own, by version.
        @param types_change: Whether the types of the kind may change at run time. If so, stored objects may not fit
            them, and a field that is atomic now may have entries for its parts.
        """
        self.gvk = gvk
        self._subresource = subresource
        self._stored = None if stored is None or stored == gvk else stored
        self._version = gvk.api_version
        self._versions = versions
        self._rules = MergeUpdater(versions, self._version, filters or {})
        self._make_zero = zero
        self._zero: JSONObject | None = None
        self._types_change = types_change

    def empty_object(self) -> JSONObject:
        """
        Return the object that a new object is compared with; a hook for subclasses.

        @raise TypedError: There is no such object.
        """
        if self._zero is None:
            self._zero = {"metadata": {}, "kind": self.gvk.kind, "apiVersion": self._version, **self._make_zero()}
        return self._zero

    def _in_version(self, obj: JSONObject) -> JSONObject:
        """Return a stored object in the version of the endpoint."""
        return obj if self._stored is None else convert(obj, self._stored, self.gvk)

    def update(self, live: JSONObject | None, new: JSONObject, manager: str, now: str) -> None:
        """
        Set C{managedFields} in C{new}, after defaults and before admission, in writes other than apply.

        @param live: The object that C{new} replaces; L{None}, or without a uid, when it is created. Not modified.
        @param new: The object, with the C{managedFields} that the client sent; C{[]} resets them.
        @param manager: The name of the manager: the fieldManager, or the beginning of the User-Agent.
        @param now: The time in RFC 3339, in UTC and whole seconds.
        """
        meta = new["metadata"]
        sent = meta.pop("managedFields", None)
        before = live["metadata"].get("managedFields") if live is not None else None
        try:
            managers, from_client = self._read(sent, before)
            if managers or live is None or not live["metadata"].get("uid"):
                me = Manager(UPDATE, manager or "unknown", self._version, self._subresource)
                old = self.empty_object() if live is None else self._in_version(live)
                self._update(managers, old, self._in_version(new), me, now, from_client=from_client)
                cap_update_managers(managers)
        except (TypedError, RecursionError):
            # As in the reference, the write succeeds and managedFields are cleared: see UpdateNoErrors in
            # apimachinery's managedfields/internal/fieldmanager.go. Values may exceed Python's recursion limit.
            return
        if managers:
            meta["managedFields"] = encode_entries(managers)

    def _update(
        self, managers: Managers, old: JSONObject, new: JSONObject, me: Manager, now: str, *, from_client: bool = False
    ) -> None:
        """
        Check the objects, and update the managers (L{MergeUpdater.update}).

        @param from_client: Whether a client sent C{managers}.
        @raise TypedError: An object does not fit the type, or cannot be converted to the version of a manager.
        """
        if self._types_change:
            self._check_both(old, new)
        if from_client or self._types_change:
            self._rules.reconcile(managers, old)
        try:
            self._rules.update(managers, old, new, me, now)
        except TypedError:
            # If types cannot change, the objects are checked only for the text of the error.
            self._check_both(old, new)
            raise

    def _check_both(self, old: JSONObject, new: JSONObject) -> None:
        self._check(new, "failed to convert new object ({}) to smd typed")
        # The fields that both have in common fit, as the new object fits.
        if not self._rules.type.accepts(_differing(old, new)):
            self._check(old, "failed to convert live object ({}) to smd typed")

    def _check(self, obj: JSONObject, prefix: str) -> None:
        """
        Check an object in the version of the endpoint, whose lists may have items with the same key.

        @param prefix: Prefix of the error, with braces for the name and kind of the object.
        @raise TypedError: The object does not fit its type.
        """
        if self._rules.type.accepts(obj):
            return
        try:
            self._rules.validate(obj, True)
        except TypedError as error:
            raise TypedError(f"{prefix.format(self.format_name(obj))}: {error}") from None

    def _read(self, sent: JSONValue, before: JSONValue) -> tuple[Managers, bool]:
        """
        Read the managedFields of the client, if they are valid and the client may send them, or else the stored ones.

        @return: The managers, and whether the client sent them.
        """
        if sent is not None and not self._subresource and sent != before:
            if is_reset_request(sent):
                return {}, False
            try:
                managers = decode_client_entries(sent)
            except MalformedEntries:
                managers = {}
            if managers:
                return managers, True
        return decode_stored_entries(before or ()), False

    def apply(self, live: JSONObject | None, applied: JSONValue, manager: str, now: str, force: bool) -> JSONObject:
        """
        Merge C{applied} into C{live}.

        @param live: The stored object; L{None}, or without a uid, when it is created. Not modified.
        @param applied: The parsed body, in the version of the endpoint.
        @param manager: The fieldManager of the request.
        @param now: The time in RFC 3339, in UTC and whole seconds.
        @param force: Whether conflicting fields are taken from other managers.
        @return: The result in the version of the endpoint, with C{managedFields}. It has yet to be decoded by its type
            and defaulted, and it shares values with both objects.
        @raise APIStatusError: C{applied} is of another kind, has managedFields or is nested too deeply (400), does
            not fit its type (500), or other managers own changed fields and C{force} is not set (409).
        """
        try:
            return self._apply(live, applied, manager, now, force)
        except RecursionError:
            raise APIStatusError.bad_request("the object is nested too deeply") from None

    def _apply(self, live: JSONObject | None, applied: JSONValue, manager: str, now: str, force: bool) -> JSONObject:
        self._check_kind(applied)
        old = dict(self.empty_object() if live is None else self._in_version(live))
        old["kind"], old["apiVersion"] = self.gvk.kind, self._version
        before = old["metadata"].get("managedFields")
        old["metadata"] = {name: value for name, value in old["metadata"].items() if name != "managedFields"}
        managers = self._managers_of(before, old, now)
        self._check_applied(applied)
        try:
            if self._types_change:
                self._check(old, LIVE_MISFIT)
                self._rules.reconcile(managers, old)
            merged = self._merge(managers, old, applied, manager, now, force)
        except Conflicts as conflicts:
            raise conflict_error(conflicts) from None
        except TypedError as error:
            raise APIStatusError.unknown(self._failure_message(old, error)) from None
        if merged is not old:
            merged = self.completed(merged, applied)
        merged = dict(merged)
        # A new object may have no metadata.
        meta = merged["metadata"] = dict(merged["metadata"] or {})
        if managers:
            meta["managedFields"] = encode_entries(managers)
        if manager == KUBECTL:
            lastapplied.update_annotation(meta, applied)
        return merged

    def completed(self, merged: JSONObject, applied: JSONObject) -> JSONObject:
        """
        Return a changed object before it is decoded by its type; a hook for subclasses.

        @param merged: The object with the applied fields, in the version of the endpoint.
        @param applied: The parsed body.
        @raise APIStatusError: The object is invalid.
        """
        return merged

    def _failure_message(self, live: JSONObject, error: TypedError) -> str:
        """Return the message of a failed apply, which is about the live object if that does not fit its type."""
        try:
            self._check(live, LIVE_MISFIT)
        except TypedError as misfit:
            return str(misfit)
        return str(error)

    def _managers_of(self, before: JSONValue, old: JSONObject, now: str) -> Managers:
        """Return the managers of an object; without entries, one that owns all existing fields."""
        managers = decode_stored_entries(before or ())
        if not managers:
            me = Manager(UPDATE, BEFORE_FIRST_APPLY, self._version, self._subresource)
            try:
                self._update(managers, self.empty_object(), old, me, now)
            except TypedError as error:
                raise APIStatusError.unknown(f"failed to create manager for existing fields: {error}") from None
        return managers

    def _merge(
        self, managers: Managers, old: JSONObject, applied: JSONObject, manager: str, now: str, force: bool
    ) -> JSONObject:
        """Merge as L{MergeUpdater.apply}, with the exception for C{kubectl}."""
        me = Manager(APPLY, manager, "", self._subresource)
        initial = dict(managers)
        try:
            return self._rules.apply(managers, old, applied, me, now, force)
        except Conflicts as conflicts:
            if manager != KUBECTL:
                raise
            remaining = lastapplied.remaining_conflicts(conflicts, self._rules, old)
            if remaining.fields_by_manager:
                raise remaining from None
        managers.clear()
        managers.update(initial)
        return self._rules.apply(managers, old, applied, me, now, True)

    def _check_kind(self, applied: JSONValue) -> None:
        if (
            isinstance(applied, dict)
            and applied.get("kind") == self.gvk.kind
            and applied.get("apiVersion") == self._version
        ):
            return
        gvk = kind_of(applied)
        if gvk != self.gvk:
            raise APIStatusError.bad_request(f"invalid object type: {_format_kind(gvk)}")

    def _check_applied(self, applied: JSONObject) -> None:
        meta = applied.get("metadata")
        if isinstance(meta, dict) and isinstance(meta.get("managedFields"), list):
            raise APIStatusError.bad_request("metadata.managedFields must be nil")
        problems = self._rules.type.validate(applied, False)
        if problems:
            error = TypedError.from_errors(problems)
            raise APIStatusError.unknown(f"failed to create typed patch object ({self.format_name(applied)}): {error}")

    def unconvertible(self, applied: JSONObject, reason: str) -> APIStatusError:
        """
        Return the error for a merged object that cannot be decoded as its kind: C{Apply} in C{structuredmerge.go}.
        """
        return APIStatusError.unknown(
            f"failed to convert new object ({self.format_name(applied)}) to proper version: "
            f"unable to convert unstructured object to {_format_kind(self.gvk)}: {reason}"
        )

    def format_name(self, obj: JSONObject) -> str:
        """Return the namespace, name and kind of an object for errors; they are read from the object."""
        return f"{_text(obj, 'metadata', 'namespace')}/{_text(obj, 'metadata', 'name')}; {_format_kind(kind_of(obj))}"


def built_in_field_manager(
    definitions: Definitions,
    info: ResourceInfo,
    version: str,
    reset_fields: Filters,
    subresource: str = "",
) -> FieldManager:
    """
    Return the field manager of a built-in resource in one version, or of a subresource that is a part of it.

    @param definitions: The type definitions of the release.
    @param info: The resource.
    @param version: The version in the path of requests.
    @param reset_fields: The fields that clients may own: L{kubetwist.interfaces.IResetFieldsProvider.reset_fields}.
    @param subresource: The subresource; C{""} for the main resource.
    """
    gvk = info.gvk(version)
    # Events have two groups; as in the reference, a write in one group drops the entries of the other.
    kinds = [info.gvk(known) for known in info.known_versions]
    return FieldManager(
        gvk,
        BuiltInVersionConverter(definitions, {kind.api_version: kind for kind in kinds}),
        lambda: definitions.type_for(gvk).zero(),
        stored=info.storage_kind,
        subresource=subresource,
        filters=reset_fields,
    )


def update_managed_fields(
    fields: FieldManager, live: JSONObject | None, obj: JSONObject, manager: str, sent: JSONValue = None
) -> None:
    """
    Set the managed fields of an object in a write other than apply, by clients, controllers or the server itself.

    @param fields: The field manager of the endpoint.
    @param live: The stored object that C{obj} replaces; L{None} when it is created.
    @param obj: The object in the stored version, with its defaults; modified.
    @param manager: The name of the manager: the fieldManager of the request, or a part of this server.
    @param sent: The JSON value that C{obj} was decoded from. An empty list in it is owned, although it is decoded as
        L{None}.
    """
    emptied = list(_emptied(obj, sent)) if isinstance(sent, dict) else ()
    for holder, name in emptied:
        holder[name] = []
    fields.update(live, obj, manager, times.now())
    for holder, name in emptied:
        holder[name] = None


def _emptied(obj: JSONObject, sent: JSONObject) -> Iterator[tuple[JSONObject, str]]:
    """Return the fields of an object, to the second level, that are L{None} and were sent as empty lists."""
    for name, value in obj.items():
        if value is None:
            if sent.get(name) == []:
                yield obj, name
        elif value.__class__ is dict:
            sent_value = sent.get(name)
            if sent_value.__class__ is dict:
                for inner_name, inner_value in value.items():
                    if inner_value is None and sent_value.get(inner_name) == []:
                        yield value, inner_name


def ignore_managed_fields_timestamps(live: JSONObject, new: JSONObject) -> str:
    """
    Revert the times of managedFields in C{new} if nothing else changed, so that nothing is written.

    It is called at the end of an update, after defaults and admission (C{IgnoreManagedFieldsTimestampsTransformer}).

    @return: The outcome as the reference names it: C{"unequal_objects_fast"} without a comparison of the objects,
        C{"unequal_objects_slow"}, or C{"equal_objects"}.
    """
    before, now = live["metadata"].get("managedFields"), new["metadata"].get("managedFields")
    if not before or not now or len(before) != len(now) or before == now:
        return "unequal_objects_fast"
    for old_entry, entry in zip(before, now, strict=True):
        if old_entry is not entry and {**old_entry, "time": None} != {**entry, "time": None}:
            return "unequal_objects_fast"
    if not same_json(_without_entries(live), _without_entries(new)):
        return "unequal_objects_slow"
    new["metadata"]["managedFields"] = before
    return "equal_objects"


def _without_entries(obj: JSONObject) -> JSONObject:
    rest = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}
    rest["metadata"] = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return rest


def conflict_error(conflicts: Conflicts) -> APIStatusError:
    """Return the 409 Conflict of an apply, with the conflicting field managers."""
    items = conflicts.items()
    errors = [
        FieldError("FieldManagerConflict", f"conflict with {manager}", format_path(path)) for manager, path in items
    ]
    if len(items) == 1:
        manager, path = items[0]
        message = f"Apply failed with 1 conflict: conflict with {manager}: {format_path(path)}"
    else:
        texts: list[str] = []
        last = None
        for manager, path in items:
            if manager != last:
                texts.append(f"conflicts with {manager}:")
                last = manager
            texts.append(f"- {format_path(path)}")
        message = f"Apply failed with {len(items)} conflicts: " + "\n".join(texts)
    return APIStatusError(409, "Conflict", message, {"causes": [field_error.as_dict() for field_error in errors]})


def _differing(obj: JSONObject, other: JSONObject) -> JSONObject:
    """Return the fields of C{obj} that differ from those of C{other}; differing lists are included completely."""
    differing: JSONObject = {}
    for name, value in obj.items():
        other_value = other.get(name, other)
        if value != other_value:
            both = value.__class__ is dict and other_value.__class__ is dict and other_value is not other
            differing[name] = _differing(value, other_value) if both else value
    return differing


def kind_of(obj: JSONValue) -> GroupVersionKind:
    """Return the kind and version in an object; empty if they are missing or malformed."""
    if not isinstance(obj, dict):
        return GroupVersionKind("", "", "")
    try:
        group, version = GroupVersion.parse(_text(obj, "apiVersion"))
    except ValueError:
        return GroupVersionKind("", "", "")
    return GroupVersionKind(group, version, _text(obj, "kind"))


def _format_kind(gvk: GroupVersionKind) -> str:
    return f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"


def _text(obj: JSONValue, *path: str) -> str:
    """Return the string at C{path} in an object; C{""} if there is none."""
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if isinstance(obj, str) else ""
