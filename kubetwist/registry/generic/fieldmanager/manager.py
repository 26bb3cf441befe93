"""
Keeps C{metadata.managedFields} true on every write to one endpoint, and carries out server-side apply.

The rules are in L{kubetwist.schema.merge.ownership}; here is what is around them: which entries count, versions of
built-in kinds, errors as clients see them. What C{kubectl} gets on top is in
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
from ....schema.merge.fieldpath import shown
from ....schema.merge.managedfields import (
    APPLY,
    UPDATE,
    MalformedEntries,
    Manager,
    Managers,
    cap,
    is_reset,
    read,
    read_foreign,
    write,
)
from ....schema.merge.ownership import Conflicts, Filters, Ownership, Versions
from ....schema.merge.types import MergeType, TypedError
from ..conversion import convert
from . import lastapplied
from .resetfields import reset_fields_filter

if TYPE_CHECKING:
    from ....schema.definitions import Definitions
    from ..resourceinfo import ResourceInfo

#: The field manager of fields that existed before managed fields were tracked.
BEFORE_FIRST_APPLY = "before-first-apply"
#: Whose applies heed, and keep, what client-side apply leaves in an annotation.
KUBECTL = "kubectl"
#: Prefix of the error for a live object that does not fit its type.
LIVE_MISFIT = "failed to create typed live object ({})"


class BuiltInVersionConverter:
    """
    The versions of a built-in kind; see L{Versions}.

    @ivar kinds: The kind in each, by C{apiVersion}; for events these are of two groups.
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
                # Clients make these up; they are not remembered.
                parsed_version(api_version)
                return None
            known = self._definitions.knows(gvk)
            found = self._types[api_version] = self._definitions.merge_type_for(gvk) if known else None
            return found

    def convert(self, obj: JSONObject, source: str, target: str, hub: str) -> JSONObject:
        """See L{Versions.convert}."""
        return convert(obj, self.kinds[source], self.kinds[target])


def parsed_version(api_version: str) -> GroupVersion:
    """
    Parse the C{apiVersion} of an entry.

    @raise TypedError: It has more than one slash.
    """
    try:
        return GroupVersion.parse(api_version)
    except ValueError as error:
        raise TypedError(str(error)) from None


class FieldManager:
    """
    One endpoint: a resource in one version, or a subresource of it.

    @ivar gvk: The kind that clients send.
    """

    def __init__(
        self,
        gvk: GroupVersionKind,
        versions: Versions,
        zero: Callable[[], JSONObject],
        *,
        stored: GroupVersionKind | None = None,
        subresource: str = "",
        filters: Filters | None = None,
        types_change: bool = False,
    ) -> None:
        """
        @param zero: Makes the empty object of the kind, as L{ObjectType.zero}.
        @param stored: The version of the objects passed to L{update} and L{apply}, if it differs.
        @param filters: Fields that clients of the endpoint may own, by version.
        @param types_change: Whether the kind's types may change at run time. If so, stored objects may not fit them,
            and a field that is owned as a whole may have been owned by its parts.
        """
        self.gvk = gvk
        self._subresource = subresource
        self._stored = None if stored is None or stored == gvk else stored
        self._version = gvk.api_version
        self._versions = versions
        self._rules = Ownership(versions, self._version, filters or {})
        self._make_zero = zero
        self._zero: JSONObject | None = None
        self._types_change = types_change

    def nothing(self) -> JSONObject:
        """
        Return the object that a new object is compared with; a hook for subclasses.

        @raise TypedError: There is no such object.
        """
        if self._zero is None:
            self._zero = {"metadata": {}, "kind": self.gvk.kind, "apiVersion": self._version, **self._make_zero()}
        return self._zero

    def _in_version(self, obj: JSONObject) -> JSONObject:
        """A given object as the endpoint shows it."""
        return obj if self._stored is None else convert(obj, self._stored, self.gvk)

    def update(self, live: JSONObject | None, new: JSONObject, manager: str, now: str) -> None:
        """
        Set C{managedFields} in C{new}, after defaults and before admission, in writes other than apply.

        @param live: What C{new} replaces; L{None}, or without a uid, when it is created. It stays as it is.
        @param new: With the C{managedFields} that the client sent, if any: C{[]} is not the same as none.
        @param manager: Who writes: the fieldManager, or the beginning of the User-Agent.
        @param now: The time in RFC 3339, in UTC and whole seconds.
        """
        meta = new["metadata"]
        sent = meta.pop("managedFields", None)
        before = live["metadata"].get("managedFields") if live is not None else None
        try:
            managers, foreign = self._read(sent, before)
            if managers or live is None or not live["metadata"].get("uid"):
                me = Manager(UPDATE, manager or "unknown", self._version, self._subresource)
                old = self.nothing() if live is None else self._in_version(live)
                self._update(managers, old, self._in_version(new), me, now, foreign=foreign)
                cap(managers)
        except (TypedError, RecursionError):
            # As in the reference, the write succeeds and managedFields are cleared: see UpdateNoErrors in
            # apimachinery's managedfields/internal/fieldmanager.go. Values may exceed Python's recursion limit.
            return
        if managers:
            meta["managedFields"] = write(managers)

    def _update(
        self, managers: Managers, old: JSONObject, new: JSONObject, me: Manager, now: str, *, foreign: bool = False
    ) -> None:
        """
        Check the objects, then see L{Ownership.update}.

        @param foreign: Whether a client sent C{managers}.
        @raise TypedError: An object does not fit the type, or cannot be converted to the version of a manager.
        """
        if self._types_change:
            self._check_both(old, new)
        if foreign or self._types_change:
            self._rules.reconcile(managers, old)
        try:
            self._rules.update(managers, old, new, me, now)
        except TypedError:
            # If types cannot change, the objects are checked only for the text of the error.
            self._check_both(old, new)
            raise

    def _check_both(self, old: JSONObject, new: JSONObject) -> None:
        self._check(new, "failed to convert new object ({}) to smd typed")
        # The common part of both fits.
        if not self._rules.type.fits(_differing(old, new)):
            self._check(old, "failed to convert live object ({}) to smd typed")

    def _check(self, obj: JSONObject, about: str) -> None:
        """
        Check an object of the endpoint's version, whose lists may have items with the same key.

        @param about: Prefix of the error, with braces for the object's name and kind.
        @raise TypedError: It does not fit its type.
        """
        if self._rules.type.fits(obj):
            return
        try:
            self._rules.check(obj, True)
        except TypedError as error:
            raise TypedError(f"{about.format(self.named(obj))}: {error}") from None

    def _read(self, sent: JSONValue, before: JSONValue) -> tuple[Managers, bool]:
        """
        Choose the managedFields: those of the client, if they are valid and the client may send them, or the stored
        ones.

        @return: They, and whether the client sent them.
        """
        if sent is not None and not self._subresource and sent != before:
            if is_reset(sent):
                return {}, False
            try:
                managers = read_foreign(sent)
            except MalformedEntries:
                managers = {}
            if managers:
                return managers, True
        return read(before or ()), False

    def apply(self, live: JSONObject | None, applied: JSONValue, manager: str, now: str, force: bool) -> JSONObject:
        """
        Merge C{applied} into C{live}.

        @param live: As in L{update}.
        @param applied: The decoded body, of the endpoint's version.
        @return: The result in the endpoint's version, with its C{managedFields}; it is yet to be decoded by its type
            and defaulted, and it shares parts with both objects.
        @raise APIStatusError: C{applied} is of another kind, has managedFields or is nested too deeply (400), does
            not fit its type (500), or others own what would change and C{force} is not given (409).
        """
        try:
            return self._apply(live, applied, manager, now, force)
        except RecursionError:
            raise APIStatusError.bad_request("the object is nested too deeply") from None

    def _apply(self, live: JSONObject | None, applied: JSONValue, manager: str, now: str, force: bool) -> JSONObject:
        self._check_kind(applied)
        old = dict(self.nothing() if live is None else self._in_version(live))
        old["kind"], old["apiVersion"] = self.gvk.kind, self._version
        before = old["metadata"].get("managedFields")
        old["metadata"] = {name: value for name, value in old["metadata"].items() if name != "managedFields"}
        managers = self._tracked(before, old, now)
        self._check_applied(applied)
        try:
            if self._types_change:
                self._check(old, LIVE_MISFIT)
                self._rules.reconcile(managers, old)
            merged = self._merge(managers, old, applied, manager, now, force)
        except Conflicts as conflicts:
            raise conflict_error(conflicts) from None
        except TypedError as error:
            raise APIStatusError.unknown(self._why(old, error)) from None
        if merged is not old:
            merged = self.completed(merged, applied)
        merged = dict(merged)
        # A new object may have none.
        meta = merged["metadata"] = dict(merged["metadata"] or {})
        if managers:
            meta["managedFields"] = write(managers)
        if manager == KUBECTL:
            lastapplied.refresh(meta, applied)
        return merged

    def completed(self, merged: JSONObject, applied: JSONObject) -> JSONObject:
        """
        Return a changed object before it is decoded by its type; a hook for subclasses.

        @param merged: The object with the applied fields, in the endpoint's version.
        @raise APIStatusError: There is no such object.
        """
        return merged

    def _why(self, live: JSONObject, error: TypedError) -> str:
        """Return the error text of a failed apply; if types cannot change, live objects are checked only then."""
        try:
            self._check(live, LIVE_MISFIT)
        except TypedError as misfit:
            return str(misfit)
        return str(error)

    def _tracked(self, before: JSONValue, old: JSONObject, now: str) -> Managers:
        """The entries of an object; where there are none, one that owns all there is."""
        managers = read(before or ())
        if not managers:
            me = Manager(UPDATE, BEFORE_FIRST_APPLY, self._version, self._subresource)
            try:
                self._update(managers, self.nothing(), old, me, now)
            except TypedError as error:
                raise APIStatusError.unknown(f"failed to create manager for existing fields: {error}") from None
        return managers

    def _merge(
        self, managers: Managers, old: JSONObject, applied: JSONObject, manager: str, now: str, force: bool
    ) -> JSONObject:
        """See L{Ownership.apply}."""
        me = Manager(APPLY, manager, "", self._subresource)
        tracked = dict(managers)
        try:
            return self._rules.apply(managers, old, applied, me, now, force)
        except Conflicts as conflicts:
            if manager != KUBECTL:
                raise
            left = lastapplied.disputed(conflicts, self._rules, old)
            if left.found:
                raise left from None
        managers.clear()
        managers.update(tracked)
        return self._rules.apply(managers, old, applied, me, now, True)

    def _check_kind(self, applied: JSONValue) -> None:
        said = kind_of(applied)
        if said != self.gvk:
            raise APIStatusError.bad_request(f"invalid object type: {_shown_kind(said)}")

    def _check_applied(self, applied: JSONObject) -> None:
        meta = applied.get("metadata")
        if isinstance(meta, dict) and isinstance(meta.get("managedFields"), list):
            raise APIStatusError.bad_request("metadata.managedFields must be nil")
        problems = self._rules.type.check(applied, False)
        if problems:
            error = TypedError.of(problems)
            raise APIStatusError.unknown(f"failed to create typed patch object ({self.named(applied)}): {error}")

    def unconvertible(self, applied: JSONObject, why: str) -> APIStatusError:
        """
        Return the error for a merged object that cannot be decoded as its kind: C{Apply} in C{structuredmerge.go}.
        """
        return APIStatusError.unknown(
            f"failed to convert new object ({self.named(applied)}) to proper version: "
            f"unable to convert unstructured object to {_shown_kind(self.gvk)}: {why}"
        )

    def named(self, obj: JSONObject) -> str:
        """Return an object's namespace, name and kind as errors show them, from the object itself."""
        return f"{_text(obj, 'metadata', 'namespace')}/{_text(obj, 'metadata', 'name')}; {_shown_kind(kind_of(obj))}"


def built_in_field_manager(
    definitions: Definitions, info: ResourceInfo, version: str, subresource: str = ""
) -> FieldManager:
    """The field manager of a built-in resource in one version, or of a subresource that is a part of it."""
    gvk = info.gvk(version)
    # An event is the same thing in two groups; as in the reference, a write by one forgets owners by the other.
    kinds = [info.gvk(known) for known in info.known_versions]
    return FieldManager(
        gvk,
        BuiltInVersionConverter(definitions, {kind.api_version: kind for kind in kinds}),
        lambda: definitions.type_for(gvk).zero(),
        stored=info.storage_kind,
        subresource=subresource,
        filters=dict.fromkeys((kind.api_version for kind in kinds), reset_fields_filter(info, subresource)),
    )


def update_managed_fields(
    fields: FieldManager, live: JSONObject | None, obj: JSONObject, manager: str, sent: JSONValue = None
) -> None:
    """
    Set the managed fields of an object that is about to be written by anything but apply.

    All such writes are noted here: those of clients, of controllers and of the server itself.

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
    """Lists in an object and in its parts that are shown as none, but were sent as empty ones."""
    for name, value in obj.items():
        if value is None:
            if sent.get(name) == []:
                yield obj, name
        elif value.__class__ is dict:
            within = sent.get(name)
            if within.__class__ is dict:
                for inner, part in value.items():
                    if part is None and within.get(inner) == []:
                        yield value, inner


def ignore_managed_fields_timestamps(live: JSONObject, new: JSONObject) -> None:
    """
    Undo, in C{new}, changes of times where nothing else changed, so that nothing is written.

    To be called when all of an update but its preparation by the kind's strategy is done.
    """
    before, now = live["metadata"].get("managedFields"), new["metadata"].get("managedFields")
    if not before or not now or len(before) != len(now) or before == now:
        return
    for was, entry in zip(before, now, strict=True):
        if was is not entry and {**was, "time": None} != {**entry, "time": None}:
            return
    if same_json(_without_entries(live), _without_entries(new)):
        new["metadata"]["managedFields"] = before


def _without_entries(obj: JSONObject) -> JSONObject:
    rest = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}
    rest["metadata"] = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return rest


def conflict_error(conflicts: Conflicts) -> APIStatusError:
    """Return the 409 Conflict of an apply, with the conflicting field managers."""
    items = conflicts.items()
    errors = [FieldError("FieldManagerConflict", f"conflict with {manager}", shown(path)) for manager, path in items]
    if len(items) == 1:
        manager, path = items[0]
        message = f"Apply failed with 1 conflict: conflict with {manager}: {shown(path)}"
    else:
        texts: list[str] = []
        last = None
        for manager, path in items:
            if manager != last:
                texts.append(f"conflicts with {manager}:")
                last = manager
            texts.append(f"- {shown(path)}")
        message = f"Apply failed with {len(items)} conflicts: " + "\n".join(texts)
    return APIStatusError(409, "Conflict", message, {"causes": [field_error.as_dict() for field_error in errors]})


def _differing(obj: JSONObject, other: JSONObject) -> JSONObject:
    """
    Return the differences between two objects in maps; differing lists are included completely, as items need keys.
    """
    found: JSONObject = {}
    for name, value in obj.items():
        theirs = other.get(name, other)
        if value != theirs:
            both = value.__class__ is dict and theirs.__class__ is dict and theirs is not other
            found[name] = _differing(value, theirs) if both else value
    return found


def kind_of(obj: JSONValue) -> GroupVersionKind:
    """What an object says it is; empty where it does not."""
    if not isinstance(obj, dict):
        return GroupVersionKind("", "", "")
    try:
        group, version = GroupVersion.parse(_text(obj, "apiVersion"))
    except ValueError:
        return GroupVersionKind("", "", "")
    return GroupVersionKind(group, version, _text(obj, "kind"))


def _shown_kind(gvk: GroupVersionKind) -> str:
    return f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"


def _text(obj: JSONValue, *path: str) -> str:
    """A string within an object; C{""} for everything else."""
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if isinstance(obj, str) else ""
