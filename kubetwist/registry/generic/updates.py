"""The update half of the generic store: PUT and PATCH, on the main resource and on views of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import orjson
from attrs import frozen

from ...api import objectmeta
from ...api.admission import AdmissionAttributes
from ...api.errors import APIStatusError, Cause, Tolerated, invalid
from ...api.jsonequality import same_json
from ...api.options import WriteOptions
from ...api.requestscope import RequestScope
from ...api.resource import GroupKind, GroupVersionKind, JSONObject
from ...cel.sparing import compute_rules
from ...storage.cache.record import Record
from ...storage.errors import KeyExists, KeyNotFound, RevisionConflict
from . import deletion
from .allocation import NOTHING, TakenMeanwhile
from .creation import Creation
from .empties import as_sent, put_back, take_away
from .fieldmanager.manager import keep_times
from .floats import put_floats, take_floats
from .owners import drop_repeated_owners

#: How often an update that named no resourceVersion is repeated when others write in between.
ATTEMPTS = 50


@frozen
class AdmittedView:
    """
    What admission sees of an object where clients see another kind than is stored: C{Scale}.

    @ivar of: Makes it of a stored object.
    @ivar put: Given a stored object, which it changes, and what admission made of its view; raises an
        L{APIStatusError} if that is nothing sensible.
    """

    kind: GroupVersionKind
    of: Callable[[JSONObject], JSONObject]
    put: Callable[[JSONObject, JSONObject], object]


@frozen
class UpdateRules:
    """
    Which part of an object an endpoint may write: the main resource, its status, or another view.

    @ivar subresource: As admission sees it; C{""} for the main resource.
    @ivar prepare: Called with the new and the old object; changes the new one.
    @ivar validate: Called likewise; what is wrong beyond the metadata.
    @ivar main: Whether the main resource's rules hold: generations are counted.
    @ivar creates: Whether what is not there may be made.
    @ivar view: What admission sees, if not the object.
    """

    subresource: str
    prepare: Callable[[JSONObject, JSONObject], object]
    validate: Callable[[JSONObject, JSONObject], Sequence[Cause]]
    main: bool = False
    creates: bool = False
    view: AdmittedView | None = None


class Updates(Creation):
    """What L{kubetwist.registry.generic.store.Store} does for PUT and PATCH."""

    async def update(
        self,
        scope: RequestScope,
        name: str,
        change: Callable[[JSONObject | None], JSONObject],
        options: WriteOptions,
        rules: UpdateRules | None = None,
        *,
        patching: bool = False,
        creating: bool = False,
        may_create: Callable[[], Awaitable[None]] | None = None,
    ) -> tuple[Any, bool]:
        """
        See L{kubetwist.interfaces.IUpdater.update}; objects are in the stored version.

        @param change: Given L{None} when there is nothing and the kind may be created by PUT.
        @param rules: What may be written; the whole main resource by default.
        @param patching: The change starts from the current state, so that naming no resourceVersion is no mistake
            (C{change} leaves the current one in place), and nothing is created unless C{creating}.
        @param may_create: Raises an L{APIStatusError} if the client must not create what is not there.
        """
        strategy = self.strategy
        if rules is None:
            rules = UpdateRules("", strategy.prepare_for_update, strategy.validate_update, main=True, creates=True)
        key = self.requested_key(scope, name)
        for _ in range(ATTEMPTS):
            record = self.cache.get(key)
            if record is None:
                if not (rules.creates and (creating if patching else strategy.allow_create_on_update)):
                    raise self.not_found(name)
                if may_create is not None:
                    await may_create()
                try:
                    return await self.create_by_update(scope, key, change, options, patching), True
                except KeyExists:
                    continue
            await self.prepare((record,))
            old, obj = await scope.compute(len(record.item), self._changed, record, change)
            drop_repeated_owners(scope, obj["metadata"], patched=patching)
            named_version = self.check_version(obj, record, patching)
            try:
                return await self.update_once(scope, key, record, obj, old, options, rules), False
            except TakenMeanwhile:
                continue
            except (RevisionConflict, KeyNotFound):
                if named_version:
                    raise APIStatusError.modified(self.group_resource, name) from None
        raise APIStatusError.modified(self.group_resource, name)

    def _changed(self, record: Record, change: Callable[[JSONObject], JSONObject]) -> tuple[JSONObject, JSONObject]:
        """Return an object as stored, and after the change of an update."""
        return self.load(record), change(self.load(record))

    async def create_by_update(
        self,
        scope: RequestScope,
        key: str,
        change: Callable[[JSONObject | None], JSONObject],
        options: WriteOptions,
        patching: bool,
    ) -> Any:
        """PUT where nothing is; the resourceVersion does not matter, a uid can not match."""
        obj = await scope.compute(0, change, None)
        meta = obj["metadata"]
        self.check_namespace(scope, meta)
        if meta.get("uid"):
            if patching:
                why = f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing object was found"
                raise APIStatusError.conflict(self.group_resource, meta["name"], why)
            raise self.other_uid(key, meta, {}, dry_run=options.dry_run)
        attributes = self.attributes("CREATE", scope, meta.get("name", ""), obj, None, options)
        await self.admit_whole(scope, attributes)
        obj["metadata"].pop("resourceVersion", None)
        drop_repeated_owners(scope, obj["metadata"], patched=True)
        return await self.create_once(scope, obj, options, attributes)

    async def update_once(
        self,
        scope: RequestScope,
        key: str,
        record: Record,
        obj: JSONObject,
        old: JSONObject,
        options: WriteOptions,
        rules: UpdateRules,
    ) -> Record:
        """Take one new state through all the steps; fails when C{record} is not the newest state any more."""
        self.check_namespace(scope, obj["metadata"])
        attributes = await self.admit_update(scope, record, obj, options, rules)
        meta, before = obj["metadata"], old["metadata"]
        if rules.main:
            await self.permit(scope, obj, old, options)
        size = len(record.item)
        causes = await compute_rules(scope, size, self._prepared_causes, obj, old, rules, scope)
        if causes:
            causes = told(causes, scope)
            if causes:
                raise await scope.compute(size, self.invalid, meta.get("name", ""), causes)
        if rules.main:
            for text in await scope.compute(size, self.strategy.warnings, obj, old):
                scope.warn(text)
        if attributes is not None:
            if rules.view is not None:
                attributes.object = rules.view.of(obj)
            await self.admission.validate(attributes)
        meta["resourceVersion"] = before["resourceVersion"]
        if self.ends(obj, old):
            if not options.dry_run:
                await self.commit(key, None, record.revision)
                self.deleted(old)
            return Record.from_draft(key, record.revision, await self.drafted(obj, scope))
        hold = NOTHING
        if rules.main:
            hold = self.reserve(obj, old, options.dry_run)
        try:
            unchanged = await scope.compute(size, self._completed, obj, old)
            if unchanged and (options.dry_run or not await self.to_rewrite(key, obj, scope)):
                hold.cancel()
                return record
            draft = await self.drafted(obj, scope)
            if options.dry_run:
                hold.cancel()
                return Record.from_draft(key, record.revision, draft)
            charges = () if attributes is None else attributes.charges
            revision = await self.commit(key, draft, record.revision, hold, charges)
        except BaseException:
            hold.cancel()
            raise
        hold.commit()
        return self.written(key, revision, draft)

    def _prepared_causes(
        self, obj: JSONObject, old: JSONObject, rules: UpdateRules, scope: RequestScope
    ) -> list[Cause]:
        """
        Restore the fields of C{old} that updates may not change in an admitted C{obj}; return the validation errors.

        @param obj: The object; modified.
        @param old: The stored object.
        @param scope: Contains the body that C{obj} was decoded from, with its empty containers and floats.
        """
        if scope.floats is None:
            return self._checked_update(obj, old, rules, scope)
        undo = put_floats(obj, scope.floats)
        try:
            return self._checked_update(obj, old, rules, scope)
        finally:
            # Also if a long validation is cancelled and repeated.
            take_floats(undo)

    def _checked_update(self, obj: JSONObject, old: JSONObject, rules: UpdateRules, scope: RequestScope) -> list[Cause]:
        """Run L{_prepared_causes}, with the empty containers and floats of the request restored."""
        meta, before = obj["metadata"], old["metadata"]
        self.keep_identity(meta, before)
        rules.prepare(obj, old)
        if rules.main and self.strategy.has_generation and self.strategy.generation_changes(obj, old):
            meta["generation"] = (before.get("generation") or 0) + 1
        # The client has sent a view, not the object.
        sent = scope.sent if rules.view is None else None
        if sent is None:
            return self.update_causes(obj, old, rules)
        if rules.main and self.strategy.compares_empties(old):
            undo = put_back(obj, sent)
            try:
                return self.update_causes(obj, old, rules)
            finally:
                # Also if a long validation is cancelled and repeated.
                take_away(undo)
        causes = self.update_causes(obj, old, rules)
        return as_sent(causes, obj, sent, lambda: self.update_causes(obj, old, rules)) if causes else causes

    def update_causes(self, obj: JSONObject, old: JSONObject, rules: UpdateRules) -> list[Cause]:
        """Return all validation errors of a changed and prepared object."""
        return objectmeta.update_causes(
            obj["metadata"],
            old["metadata"],
            self.info.namespaced,
            self.strategy.names_for(obj),
            rules=self.strategy.metadata_update_rules if rules.main else self.strategy.status_metadata_update_rules,
            standard_finalizers=self.strategy.standard_finalizers,
            found=self.checked(rules.validate, obj, old),
        )

    def _completed(self, obj: JSONObject, old: JSONObject) -> bool:
        """Complete a valid C{obj}; return whether it equals C{old}."""
        self.complete(obj)
        keep_times(old, obj)
        return same(obj, old)

    async def admit_update(
        self, scope: RequestScope, record: Record, obj: JSONObject, options: WriteOptions, rules: UpdateRules
    ) -> AdmissionAttributes | None:
        """
        Let the mutating plugins change what an update makes of an object.

        @return: For the validating ones; L{None} when nobody is asked.
        """
        if scope.admitted:
            return None
        view = rules.view
        if view is None:
            version = obj["metadata"].get("resourceVersion")
            attributes = self.attributes("UPDATE", scope, record.name, obj, record, options, rules.subresource)
            await self.admit_whole(scope, attributes)
            if obj["metadata"].get("resourceVersion") != version:
                self.check_version(obj, record, True)
        else:
            shown = view.of(obj)
            attributes = self.attributes(
                "UPDATE", scope, record.name, shown, record, options, rules.subresource, view.kind, view.of
            )
            await self.admit(attributes)
            view.put(obj, shown)
        drop_repeated_owners(scope, obj["metadata"], patched=True)
        return attributes

    def ends(self, obj: JSONObject, old: JSONObject) -> bool:
        """Whether this update lets a deleted object go."""
        return deletion.ends_with_update(obj, old)

    def check_version(self, obj: JSONObject, record: Record, patching: bool) -> bool:
        """
        Compare the resourceVersion that an update names with the newest.

        @return: Whether the client insists on this version, so that the update is not to be repeated. A patch's
            result has the version it started from, unless the patch itself says another.
        @raise APIStatusError: It is another (409), or it has to be there and is not (422).
        """
        version = parse_version(obj["metadata"].get("resourceVersion", ""))
        if version:
            if version != record.revision:
                raise APIStatusError.modified(self.group_resource, record.name)
            return not patching
        if not self.strategy.allow_unconditional_update:
            cause = invalid("metadata.resourceVersion", 0, "must be specified for an update")
            kind = GroupKind(self.info.group, self.info.resource)  # the reference names the resource here
            raise APIStatusError.invalid(kind, record.name, [cause])
        return False

    def check_uid(self, scope: RequestScope, obj: JSONObject, old: JSONObject) -> None:
        """
        Compare the uid that a PUT names with the one that is there.

        @raise APIStatusError: It is another (409).
        """
        meta = obj["metadata"]
        uid = meta.get("uid")
        if uid and uid != old["metadata"].get("uid"):
            key = self.key(scope.namespace, old["metadata"]["name"])
            raise self.other_uid(key, meta, old["metadata"], dry_run=scope.dry_run)

    def other_uid(self, key: str, meta: JSONObject, before: JSONObject, *, dry_run: bool = False) -> APIStatusError:
        """The 409 for a uid that is not the object's."""
        name, found = meta.get("name", ""), before.get("uid", "")
        return self.failed_precondition(key, name, "UID", meta["uid"], found, dry_run=dry_run)

    def failed_precondition(
        self, key: str, name: str, what: str, wanted: str, found: str, *, dry_run: bool = False
    ) -> APIStatusError:
        """
        Return the 409 for an object whose preconditions are not met.

        @param what: C{"UID"} or C{"ResourceVersion"}.
        @param dry_run: See L{RequestScope.dry_run}.
        """
        prefix = f"/{self.info.key_prefix}/" if dry_run else self._prefix
        why = (
            f"StorageError: invalid object, Code: 4, Key: {prefix}{key}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
        )
        return APIStatusError.conflict(self.group_resource, name, why)

    def keep_identity(self, meta: JSONObject, before: JSONObject) -> None:
        """Carry over what no update may change and clients may leave out or get wrong without harm."""
        for name in ("generation", "creationTimestamp"):
            if name in before:
                meta[name] = before[name]
            else:
                meta.pop(name, None)
        if not meta.get("uid"):
            meta["uid"] = before["uid"]
        if "deletionTimestamp" in before:
            meta["deletionTimestamp"] = before["deletionTimestamp"]
        if "deletionGracePeriodSeconds" in before and "deletionGracePeriodSeconds" not in meta:
            meta["deletionGracePeriodSeconds"] = before["deletionGracePeriodSeconds"]
        meta.pop("selfLink", None)


def told(causes: Sequence[Cause], scope: RequestScope) -> list[Cause]:
    """What is wrong, without what was wrong before and is tolerated: of that, the client is warned."""
    for cause in causes:
        if isinstance(cause, Tolerated):
            scope.warn(str(cause))
    forgives = scope.forgives
    return [cause for cause in causes if not isinstance(cause, Tolerated) and (forgives is None or not forgives(cause))]


def same(obj: JSONObject, old: JSONObject) -> bool:
    """Return whether two objects have the same JSON, except for the order of keys, their kind and their apiVersion."""
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    return same_json(obj, old)


def parse_version(text: str) -> int:
    """
    The revision that an object's resourceVersion stands for; 0 for none.

    @raise APIStatusError: It is no number; in bodies that is a 500 without a reason.
    """
    if not text:
        return 0
    if text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < 1 << 64:
        return int(text)
    problem = "value out of range" if text.isascii() and text.isdigit() else "invalid syntax"
    shown = orjson.dumps(text).decode()
    raise APIStatusError.unknown(f"strconv.ParseUint: parsing {shown}: {problem}")
