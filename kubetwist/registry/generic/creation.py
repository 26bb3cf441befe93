"""The creating half of the generic store's writes: POST, and PUT where nothing is."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from ...api import objectmeta, times
from ...api.admission import AdmissionAttributes
from ...api.errors import APIStatusError, Cause, invalid
from ...api.names import generate_name, path_segment_problems
from ...api.options import CreateOptions, WriteOptions
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from ...cel.sparing import compute_rules
from ...storage.errors import KeyExists
from .allocation import TakenMeanwhile
from .empties import as_sent
from .floats import put_floats, take_floats
from .objects import StoredObjects
from .owners import drop_repeated_owners
from .privileges import unprivileged

#: How often a name made from generateName may turn out to be taken.
NAME_ATTEMPTS = 8
#: How often what an object is to hold may turn out to be taken by another server at this very moment.
HOLD_ATTEMPTS = 32


class Creation(StoredObjects):
    """What L{kubetwist.registry.generic.store.Store} does for POST."""

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{ICreator.create}."""
        meta = obj["metadata"]
        self.check_namespace(scope, meta)
        drop_repeated_owners(scope, meta)
        attributes = self.attributes("CREATE", scope, meta.get("name", ""), obj, None, options)
        await self.admit_whole(scope, attributes)
        meta = obj["metadata"]
        drop_repeated_owners(scope, meta, patched=True)
        base = meta.get("generateName") if not meta.get("name") else None
        if not base:
            try:
                return await self.create_once(scope, obj, options, attributes)
            except KeyExists as error:
                raise self.taken(error, meta) from None
        # Each attempt uses a copy, since values that are derived from the name, such as labels, are derived again.
        original = orjson.dumps(obj)
        for attempt in range(NAME_ATTEMPTS):
            obj = attributes.object = orjson.loads(original)
            meta = obj["metadata"]
            meta["name"] = generate_name(base)
            try:
                return await self.create_once(scope, obj, options, attributes)
            except KeyExists as error:
                if attempt < NAME_ATTEMPTS - 1:
                    continue
                raise self.taken(error, meta) from None
        raise AssertionError("the last attempt either returns or raises")

    async def create_once(
        self, scope: RequestScope, obj: JSONObject, options: WriteOptions, attributes: AdmissionAttributes
    ) -> Any:
        """
        Take an object with a name through all the steps of creation that follow mutating admission.

        @raise KeyExists: The name is taken.
        """
        meta = obj["metadata"]
        await self.permit(scope, obj, None, options)
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            meta.pop(name, None)
        version = meta.pop("resourceVersion", "")
        if self.strategy.has_generation:
            meta.pop("generation", None)
            if self.strategy.first_generation:
                meta["generation"] = self.strategy.first_generation
        elif not meta.get("generation"):
            # Kinds that count none keep what a client says.
            meta.pop("generation", None)
        meta["uid"] = str(uuid.uuid4())
        meta["creationTimestamp"] = times.now()
        for text in await scope.compute(0, self.strategy.early_warnings, obj):
            scope.warn(text)
        causes = await compute_rules(scope, 0, self._prepared_creation, obj, scope)
        if causes:
            raise await scope.compute(0, self.invalid, meta.get("name", ""), causes)
        for text in await scope.compute(0, self.strategy.warnings, obj, None):
            scope.warn(text)
        attributes.charges.clear()  # of a name before this one that was taken
        await self.admission.validate(attributes)
        # One that makes no sense is forgiven.
        if version.isdigit() and version.strip("0") and not options.dry_run:
            raise APIStatusError.unknown("resourceVersion should not be set on objects to be created")
        key = self.key(meta.get("namespace", ""), meta["name"])
        for attempt in range(HOLD_ATTEMPTS):
            hold = self.reserve(obj, None, options.dry_run)
            try:
                await scope.compute(0, self.complete, obj)
                if options.dry_run:
                    if self.cache.get(key) is not None:
                        raise KeyExists(key)
                    hold.cancel()
                    return obj
                draft = await self.drafted(obj, scope)
                revision = await self.commit(key, draft, 0, hold, attributes.charges)
            except TakenMeanwhile:
                hold.cancel()
                if attempt == HOLD_ATTEMPTS - 1:
                    raise APIStatusError.modified(self.group_resource, meta["name"]) from None
                hold.undo(obj)
            except BaseException:
                hold.cancel()
                raise
            else:
                hold.commit()
                return self.written(key, revision, draft)
        raise AssertionError("the last attempt either returns or raises")

    async def permit(self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, options: WriteOptions) -> None:
        """
        Whether this user may write this very content, for kinds that give power to others.

        @param obj: As mutating admission left it; nothing else has looked at it yet.
        @param old: L{None} when it is new.
        @raise APIStatusError: He may not.
        """

    def _prepared_creation(self, obj: JSONObject, scope: RequestScope) -> list[Cause]:
        """Set the fields that creation sets in a new C{obj}; return the validation errors of the result."""
        self.strategy.prepare_for_create(obj)
        self.strategy.prepare_for_creator(obj, scope.user)
        undo = put_floats(obj, scope.floats)
        try:
            causes = self.creation_causes(obj)
        finally:
            take_floats(undo)
        if causes and scope.sent is not None:
            causes = as_sent(causes, obj, scope.sent, lambda: self.creation_causes(obj))
        if causes and scope.forgives is not None:
            causes = [cause for cause in causes if not scope.forgives(cause)]
        return causes

    def creation_causes(self, obj: JSONObject) -> list[Cause]:
        """All that is wrong with a new object."""
        meta = obj["metadata"]
        found = self.checked(self.strategy.validate, obj)
        if found and not self.strategy.checks_metadata:
            return list(found)
        causes = objectmeta.creation_causes(
            meta,
            self.info.namespaced,
            self.strategy.names_for(obj),
            # The registry's own validation of metadata accepts any finalizer.
            standard_finalizers=self.strategy.standard_finalizers and self.strategy.checks_metadata,
        )
        causes += found
        if not causes and meta.get("generateName"):
            # The registry repeats these errors of the kind's validation, except for kinds with long names.
            causes += [
                invalid("metadata.generateName", meta["generateName"], text)
                for text in path_segment_problems(meta["generateName"], True)
            ]
        return causes

    def checked(self, validate: Callable[..., Sequence[Cause]], *objects: JSONObject) -> Sequence[Cause]:
        """What the rules of the kind find, under what this server allows."""
        if self._allows_privileged:
            return validate(*objects)
        return unprivileged(validate, *objects)

    def taken(self, error: KeyExists, meta: JSONObject) -> APIStatusError:
        """The 409 for a name that is taken; it tells when its holder is on the way out."""
        taken = APIStatusError.already_exists(self.group_resource, meta["name"])
        if meta.get("generateName"):
            taken.message += ", the server was not able to generate a unique name for the object"
            taken.details = {**(taken.details or {}), "retryAfterSeconds": 1}
            taken.retry_after = 1
        try:
            record = self.cache.get(error.key.removeprefix(self._prefix))
        except APIStatusError:
            record = None  # It is there, if nothing can be said of it.
        if record is not None and "deletionTimestamp" in orjson.loads(record.item)["metadata"]:
            taken.message = f"object is being deleted: {taken.message}"
        return taken
