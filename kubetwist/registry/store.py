"""
The generic store: what every kind of stored resource does alike, between HTTP above and bytes below.

Reads are answered from the watch cache. Writes go decode -> admission (mutating) -> the kind's rules -> admission
(validating) -> one compare-and-swap; they are repeated when somebody else wrote in between. Updates are in
L{kubetwist.registry.updates}, the rules of deletion in L{kubetwist.registry.deletion}.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from zope.interface import implementer

from ..admission.attributes import AdmissionAttributes, AdmissionContext
from ..api import objectmeta
from ..api.errors import APIStatusError, Cause, required
from ..api.names import generate_name
from ..api.options import CreateOptions, DeleteOptions, GetOptions, ListOptions
from ..api.resource import GroupKind, GroupResource, GroupVersionKind, JSONObject
from ..interfaces import (
    ICollectionDeleter,
    ICreator,
    IGetter,
    IGracefulDeleter,
    ILister,
    IPatcher,
    IStorageBackend,
    IWatcher,
)
from ..storage.errors import KeyExists, KeyNotFound, RevisionConflict
from ..storage.record import Draft, Record
from ..storage.values import Write
from ..storage.watchcache import Listing, WatchCache
from . import deletion, reading
from .owners import drop_repeated_owners
from .scope import RequestScope
from .strategy import Strategy
from .updates import Updates

if TYPE_CHECKING:
    from ..admission.chain import AdmissionChain
    from .kinds import ResourceInfo

#: How often a name made from generateName may turn out to be taken.
NAME_ATTEMPTS = 8


@implementer(ICreator, IGetter, ILister, IWatcher, IPatcher, IGracefulDeleter, ICollectionDeleter)
class Store(Updates):
    """
    The objects of one resource.

    Objects go in and come out in the stored version; L{kubetwist.registry.codec.Codec} does the rest.

    @ivar info: The resource.
    @ivar cache: All its objects.
    @ivar ttl: Seconds that objects live; L{None} for ever.
    """

    def __init__(
        self,
        info: ResourceInfo,
        strategy: Strategy,
        backend: IStorageBackend,
        cache: WatchCache,
        admission: AdmissionChain,
        context: AdmissionContext,
        *,
        selectable: tuple[tuple[str, Callable[[JSONObject], str]], ...] = (),
        ttl: float | None = None,
        prefix: str = "/registry/",
    ) -> None:
        self.info = info
        self.strategy = strategy
        self.backend = backend
        self.cache = cache
        self.admission = admission
        self.context = context
        self.ttl = ttl
        self.gvk = GroupVersionKind(info.storage_group, info.storage_version, info.kind)
        self.group_resource = GroupResource(info.group, info.resource)
        self.group_kind = GroupKind(info.group, info.kind)
        self._selectable = selectable
        self._prefix = f"{prefix}{info.key_prefix}/"
        #: What precedes the metadata in stored values.
        self._value_start = b'{"kind":%b,"apiVersion":%b,' % (
            orjson.dumps(info.kind),
            orjson.dumps(self.gvk.api_version),
        )

    # --- bytes and objects

    def key(self, namespace: str, name: str) -> str:
        """Where an object's record is in the cache, and its value below the resource's prefix."""
        return f"{namespace}/{name}" if self.info.namespaced else name

    def draft(self, obj: JSONObject) -> Draft:
        """An object ready to be written; C{obj} is not kept."""
        meta = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
        ordered: JSONObject = {"metadata": meta}
        for name, value in obj.items():
            if name not in ("metadata", "kind", "apiVersion"):
                ordered[name] = value
        fields = {name: getter(obj) for name, getter in self._selectable}
        return Draft(orjson.dumps(ordered), meta.get("labels") or {}, fields)

    def record(self, key: str, value: bytes, revision: int) -> Record:
        """A stored value as the cache keeps it: the codec of L{WatchCache}."""
        obj = orjson.loads(value)
        meta = obj.setdefault("metadata", {})
        if meta.get("namespace") is None and self.info.namespaced:
            meta["namespace"] = key.partition("/")[0]
        return Record.from_draft(key, revision, self.draft(obj))

    def value(self, draft: Draft) -> bytes:
        """What is stored: the draft's body behind kind and apiVersion."""
        return self._value_start + draft.body[1:]

    def lookup(self, namespace: str, name: str) -> JSONObject | None:
        """A copy of an object as it is now; L{None} when there is none."""
        record = self.cache.get(self.key(namespace, name))
        return None if record is None else orjson.loads(record.item)

    def not_found(self, name: str) -> APIStatusError:
        """The 404 for an object of this resource."""
        return APIStatusError.not_found(self.group_resource, name)

    def existing(self, scope: RequestScope, name: str) -> Record:
        """
        The record of an object.

        @raise APIStatusError: There is none (404).
        """
        record = self.cache.get(self.key(scope.namespace, name))
        if record is None:
            raise self.not_found(name)
        return record

    async def commit(self, key: str, draft: Draft | None, expected: int) -> int:
        """Write one object, or delete it; the errors are storage's."""
        value = None if draft is None else self.value(draft)
        write = Write(self._prefix + key, value, expected, self.ttl, draft)
        return await self.backend.commit([write])

    # --- reading

    def get(self, scope: RequestScope, name: str, options: GetOptions) -> Any:
        """See L{IGetter.get}; a record, or a Deferred of one when it has to wait."""
        if options.resource_version:
            return reading.get_at(self, scope, name, options)
        return self.existing(scope, name)

    def list(self, scope: RequestScope, options: ListOptions) -> Any:
        """See L{ILister.list}; a listing, or a Deferred of one when it has to wait."""
        return reading.read_list(self, scope, options)

    async def watch(self, scope: RequestScope, options: ListOptions, sink: Any) -> Any:
        """See L{IWatcher.watch}."""
        return reading.begin_watch(self, scope, options, sink)

    # --- creating

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{ICreator.create}."""
        meta = obj["metadata"]
        self.check_namespace(scope, meta)
        drop_repeated_owners(scope, meta)
        base = meta.get("generateName") if not meta.get("name") else None
        for attempt in range(NAME_ATTEMPTS):
            if base:
                meta["name"] = generate_name(base)
            try:
                return await self.create_once(scope, obj, options)
            except KeyExists as error:
                if base and attempt < NAME_ATTEMPTS - 1:
                    continue
                raise self.taken(error, meta) from None
        raise AssertionError("the last attempt either returns or raises")

    async def create_once(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Any:
        """
        Take an object with a name through all the steps of creation.

        @raise KeyExists: The name is taken.
        """
        meta = obj["metadata"]
        attributes = self.attributes("CREATE", scope, meta.get("name", ""), obj, None, options.dry_run)
        await self.admission.admit(attributes)
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            meta.pop(name, None)
        version = meta.pop("resourceVersion", "")
        if not self.strategy.has_generation:
            meta.pop("generation", None)
        else:
            meta["generation"] = 1
        meta["uid"] = str(uuid.uuid4())
        meta["creationTimestamp"] = deletion.timestamp(datetime.now(UTC))
        self.strategy.prepare_for_create(obj)
        causes = self.creation_causes(obj)
        if causes:
            raise self.invalid(meta.get("name", ""), causes)
        for text in self.strategy.warnings(obj, None):
            scope.warn(text)
        await self.admission.validate(attributes)
        if version not in ("", "0"):
            raise APIStatusError.unknown("resourceVersion should not be set on objects to be created")
        key = self.key(meta.get("namespace", ""), meta["name"])
        if options.dry_run:
            if self.cache.get(key) is not None:
                raise KeyExists(key)
            return obj
        draft = self.draft(obj)
        await self.before_create(obj)
        try:
            revision = await self.commit(key, draft, 0)
        except BaseException:
            self.create_failed(obj)
            raise
        return self.written(key, revision, draft)

    async def before_create(self, obj: JSONObject) -> None:
        """A last step before an object is written, for kinds whose creation touches others."""

    def create_failed(self, obj: JSONObject) -> None:
        """Undo L{before_create}."""

    def creation_causes(self, obj: JSONObject) -> list[Cause]:
        """All that is wrong with a new object."""
        meta = obj["metadata"]
        causes = objectmeta.creation_causes(meta, self.info.namespaced, self.strategy.name_problems)
        causes += self.strategy.validate(obj)
        return causes

    def taken(self, error: KeyExists, meta: JSONObject) -> APIStatusError:
        """The 409 for a name that is taken; it tells when its holder is on the way out."""
        taken = APIStatusError.already_exists(self.group_resource, meta["name"])
        if meta.get("generateName"):
            taken.message += ", the server was not able to generate a unique name for the object"
            taken.details = {**(taken.details or {}), "retryAfterSeconds": 1}
            taken.retry_after = 1
        record = self.cache.get(error.key.removeprefix(self._prefix))
        if record is not None and "deletionTimestamp" in orjson.loads(record.item)["metadata"]:
            taken.message = f"object is being deleted: {taken.message}"
        return taken

    def written(self, key: str, revision: int, draft: Draft) -> Record:
        """The record of what was just committed: the cache's own while it is the newest."""
        record = self.cache.get(key)
        if record is not None and record.revision == revision:
            return record
        return Record.from_draft(key, revision, draft)

    # --- shared with updates and deletion

    def check_namespace(self, scope: RequestScope, meta: JSONObject) -> None:
        """Put the request's namespace in the object, or refuse another one that is there."""
        if not self.info.namespaced:
            if meta.get("namespace"):
                raise self.other_namespace()
            return
        said = meta.get("namespace")
        if not said:
            meta["namespace"] = scope.namespace
        elif said != scope.namespace:
            raise self.other_namespace()

    def other_namespace(self) -> APIStatusError:
        """The 400 for an object that belongs elsewhere."""
        return APIStatusError.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )

    def invalid(self, name: str, causes: list[Cause]) -> APIStatusError:
        """The 422 for an object that breaks its kind's rules."""
        return APIStatusError.invalid(self.group_kind, name, causes)

    def attributes(
        self,
        operation: str,
        scope: RequestScope,
        name: str,
        obj: JSONObject | None,
        old: JSONObject | None,
        dry_run: bool,
        subresource: str = "",
    ) -> AdmissionAttributes:
        """What admission sees of a write."""
        info = self.info
        return AdmissionAttributes(
            operation,
            info.group,
            info.storage_version,
            info.resource,
            subresource,
            info.kind,
            scope.namespace,
            name,
            obj,
            old,
            scope.user,
            dry_run,
            self.context,
        )

    # --- deleting

    async def delete(self, scope: RequestScope, name: str, options: DeleteOptions) -> tuple[Any, bool]:
        """See L{IGracefulDeleter.delete}; the state is L{None} where the reference answers with a Status only."""
        key = self.key(scope.namespace, name)
        while True:
            record = self.existing(scope, name)
            try:
                return await self.delete_once(scope, key, record, options)
            except (RevisionConflict, KeyNotFound):
                continue

    async def delete_once(
        self, scope: RequestScope, key: str, record: Record, options: DeleteOptions
    ) -> tuple[Any, bool]:
        """Take the next step of a deletion from the state in C{record}; fails when that is not the newest any more."""
        old = orjson.loads(record.item)
        meta = old["metadata"]
        deletion.check_preconditions(options, meta, self.group_kind, record.name)
        attributes = self.attributes("DELETE", scope, record.name, None, old, options.dry_run)
        await self.admission.validate(attributes)
        obj = orjson.loads(record.item)
        meta = obj["metadata"]
        now = datetime.now(UTC)
        graceful, pending, left = deletion.begin_grace(self.strategy, obj, options, now)
        if pending:
            return record, False
        finalizers = deletion.garbage_collection_finalizers(self.strategy, meta, options)
        if finalizers is not None:
            set_finalizers(meta, finalizers)
        waits = bool(meta.get("finalizers"))
        if waits and not graceful:
            deletion.mark_deleting(meta, now)
        if graceful or waits:
            record = await self.put_back(key, obj, old, record, options.dry_run)
            if waits or (graceful and left):
                return record, False
        if not options.dry_run:
            await self.commit(key, None, record.revision)
            self.deleted(obj)
        return record, True

    async def put_back(self, key: str, obj: JSONObject, old: JSONObject, record: Record, dry_run: bool) -> Record:
        """Write a changed object; when nothing changed, or in a dry run, just show what it would be."""
        if obj == old:
            return record
        draft = self.draft(obj)
        if dry_run:
            return Record.from_draft(key, record.revision, draft)
        return self.written(key, await self.commit(key, draft, record.revision), draft)

    def deleted(self, obj: JSONObject) -> None:
        """An object is gone; for kinds that hold something for it."""

    async def delete_collection(self, scope: RequestScope, options: DeleteOptions, selection: ListOptions) -> Listing:
        """
        See L{ICollectionDeleter.delete_collection}.

        A resourceVersion means exactly that one, since the reference lists in pages here.
        """
        if selection.resource_version not in ("", "0") and not selection.resource_version_match:
            selection.resource_version_match = "Exact"
        listing = await maybe_wait(self.list(scope, selection))
        for record in listing.records:
            inner = RequestScope(record.namespace, scope.user, scope.warn, scope.user_agent)
            try:
                await self.delete(inner, record.name, options)
            except APIStatusError as error:
                if error.code != 404:
                    raise
        return listing


def set_finalizers(meta: JSONObject, finalizers: list[str]) -> None:
    """Put C{finalizers} in, or leave the field out when there are none, as the reference writes it."""
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)


async def maybe_wait(result: Any) -> Any:
    """What a read gives at once, or after it has waited."""
    return await result if hasattr(result, "__await__") else result


def name_required() -> Cause:
    """What is wrong with an object that has neither a name nor a base for one."""
    return required("metadata.name", "name or generateName is required")
