"""Base class of the generic store: keys, encoding, errors and admission attributes of one resource."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Final

import orjson

from twisted.internet.defer import TimeoutError as FillTimeout
from zope.interface import alsoProvides

from ...api.admission import (
    AdmissionAttributes,
    Charge,
    Commit,
)
from ...api.errors import APIStatusError, FieldError, errors_in_release
from ...api.jsontypes import JSONValue
from ...api.latency import ETCD, add_latency
from ...api.objectmeta import UpdateErrors
from ...api.options import DeleteOptions, WriteOptions
from ...api.record import (
    Draft,
    Record,
    StaleFormatRecord,
)
from ...api.requestscope import RequestScope
from ...api.resource import GroupKind, GroupResource, GroupVersionKind, JSONObject
from ...api.storage import Write
from ...interfaces import ICorruptObjectDeleter, IStaleFormatDetector
from ...schema.merge.managedfields import MalformedEntries, decode_client_entries
from ...storage.errors import (
    CorruptObjectError,
    KeyNotFound,
    OutcomeUnknown,
    StorageUnavailable,
    TransformToStorageError,
    UnknownFormatError,
)
from ...storage.protobuf import is_protobuf
from ...tracing.spans import NonRecordingSpan, Span, current_span
from .allocation import NO_ALLOCATION, Allocation
from .conversion import convert
from .environment import StoredResource, StoreEnvironment
from .fieldmanager.manager import FieldManager, update_managed_fields
from .hooks import StoreHooks, hook
from .privileges import unprivileged
from .storedprotobuf import unknown_format_error

if TYPE_CHECKING:
    from .environment import StoredEncoder
    from .strategy import Strategy


#: Maximum size, in bytes, of a stored object, which is that of a request body. Defaults and managed fields make objects
#: grow. etcd has a further limit; embedded storages have none.
MAX_OBJECT_SIZE: Final = 3 * 1024 * 1024


#: Seconds that a request waits for the fill of a cache.
FILL_TIMEOUT: Final = 3.0

#: Groups whose objects are always stored as JSON, as by the servers that the reference has for them.
ALWAYS_JSON: Final = ("apiextensions.k8s.io", "apiregistration.k8s.io")


class StoreBase(StoreHooks):
    """
    The base class of L{kubetwist.registry.generic.store.Store}, which adds the verbs.

    Parameters and results are objects in the stored version; L{kubetwist.registry.generic.codec.Codec} converts them.

    @ivar info: The resource.
    @ivar find_strategy: Returns L{strategy}.
    @ivar cache: The watch cache with all objects of the resource.
    @ivar ttl: Seconds until objects expire; L{None} if they do not.
    @ivar cached: Whether reads are answered from the cache, and not from the backend; watches always use the cache.
    @ivar stored_as: The encoder of stored objects; L{None} for JSON.
    @ivar prefix: The prefix of the keys of the objects in the backend.
    @ivar delete_workers: Number of objects that one C{deletecollection} deletes concurrently.
    """

    def __init__(self, resource: StoredResource, environment: StoreEnvironment) -> None:
        self.info = info = resource.info
        self.find_strategy = resource.find_strategy
        self.backend = backend = environment.backend
        self.admission = environment.admission
        self.context = environment.context
        self.ttl = resource.ttl
        self.cached = resource.cached
        self._fields = environment.fields
        self._protobuf = protobuf = environment.protobuf
        encodes = environment.stores_protobuf and info.group not in ALWAYS_JSON
        self.stored_as: StoredEncoder | None = protobuf if encodes else None
        self.delete_workers = environment.delete_workers
        self.tables = environment.tables
        self._allows_privileged = environment.allows_privileged
        self._is_stale = backend.is_stale if IStaleFormatDetector.providedBy(backend) else None
        self.gvk = GroupVersionKind(info.storage_group, info.storage_version, info.kind)
        self.group_resource = GroupResource(info.group, info.resource)
        self.group_kind = GroupKind(info.group, info.kind)
        self._selectable = resource.selectable
        self.prefix = f"{environment.prefix}{info.key_prefix}/"
        #: What precedes the metadata in stored values.
        self._value_start = b'{"kind":%b,"apiVersion":%b,' % (
            orjson.dumps(info.kind),
            orjson.dumps(self.gvk.api_version),
        )
        self.cache = resource.find_cache(self.decode_value)
        if environment.discards_unreadable:
            alsoProvides(self, ICorruptObjectDeleter)

    @cached_property
    def strategy(self) -> Strategy:
        """Return the strategy of the kind, which is imported at the first use."""
        return self.find_strategy()

    @hook
    def field_manager(self, subresource: str) -> FieldManager | None:
        """Return the field manager for writes by components of this server; L{None} without type definitions."""
        return None if self._fields is None else self._fields.manager(self.info, subresource)

    def update_managed_fields(self, live: JSONObject | None, obj: JSONObject, subresource: str, manager: str) -> None:
        """
        Set the managed fields of C{obj}, which a component of this server writes.

        @param live: The stored object that C{obj} replaces; L{None} when it is created.
        @param obj: The object; its metadata is modified.
        @param subresource: The subresource that is written; C{""} for the whole object.
        @param manager: The name of the component.
        """
        fields = self.field_manager(subresource)
        if fields is not None:
            update_managed_fields(fields, live, obj, manager)

    def apply(self, live: JSONObject, applied: JSONObject, subresource: str, manager: str) -> JSONObject:
        """
        Apply a subresource of an object as a component of this server, with force.

        @param live: The stored object; not modified.
        @param applied: An object with the applied fields.
        @param subresource: The subresource, which is also the name of its field: C{"status"}.
        @param manager: The name of the component.
        @return: The merged object.
        """
        if self._fields is None:
            return {**live, subresource: applied[subresource]}
        return self._fields.apply(self.info, self.gvk, live, applied, subresource, manager)

    def cache_key(self, namespace: str, name: str) -> str:
        """Return the key of an object in the cache, which is also its key in the backend below L{prefix}."""
        return f"{namespace}/{name}" if self.info.namespaced else name

    def requested_key(self, scope: RequestScope, name: str) -> str:
        """
        Return L{cache_key} of the object that a request names.

        @raise APIStatusError: The request's path has an empty namespace (400; C{NamespaceKeyFunc} of the reference).
        """
        if not scope.namespace and self.info.namespaced:
            raise APIStatusError.bad_request("Namespace parameter required.")
        return self.cache_key(scope.namespace, name)

    def storage_key(self, key: str) -> str:
        """Return the key of an object in the backend from its key in the cache."""
        return self.prefix + key

    @hook
    def decode_record(self, record: Record) -> JSONObject:
        """Decode a record into a new object that the caller may modify; it lacks C{kind} and C{apiVersion}."""
        obj: JSONObject = orjson.loads(record.item)
        return obj

    @hook
    async def convert_and_encode(self, obj: JSONObject, scope: RequestScope | None = None) -> Draft:
        """
        Convert an object to the storage version and encode it; unlike L{encode}, the conversion may be asynchronous.

        @param scope: The scope of the write; L{None} for writes by the server itself.
        """
        return self.encode(obj)

    def encode(self, obj: JSONObject) -> Draft:
        """Return the draft to write for an object, which the draft does not refer to."""
        meta = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
        ordered: JSONObject = {"metadata": meta}
        for name, value in obj.items():
            if name not in ("metadata", "kind", "apiVersion"):
                ordered[name] = value
        return self._draft(ordered)

    def _draft(self, obj: JSONObject) -> Draft:
        """Return the draft of an object that begins with its metadata, and has no kind, apiVersion and revision."""
        fields = {name: getter(obj) for name, getter in self._selectable}
        return Draft(orjson.dumps(obj), obj["metadata"].get("labels") or {}, fields)

    @hook
    def decode_value(self, key: str, value: bytes, revision: int) -> Record:
        """
        Decode a stored value into a record of the cache: the codec of L{WatchCache}.

        @raise UnknownFormatError: The value is of another kind, or of a version without type definitions.
        """
        protobuf = is_protobuf(value)
        obj = self._decode_protobuf(value) if protobuf else orjson.loads(value)
        api_version = obj.get("apiVersion")
        if api_version != self.gvk.api_version and api_version is not None:
            obj = self._convert_from(obj, api_version)
        meta = obj.setdefault("metadata", {})
        if meta.get("namespace") is None and self.info.namespaced:
            meta["namespace"] = key.partition("/")[0]
        self.default_on_read(obj)
        # The object is not copied, which takes longer than its encoding.
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        meta.pop("resourceVersion", None)
        draft = self._draft(obj) if next(iter(obj)) == "metadata" else self.encode(obj)
        make = Record if protobuf is (self.stored_as is not None) else StaleFormatRecord
        return make.from_draft(key, revision, draft)

    @hook
    def default_on_read(self, obj: JSONObject) -> None:
        """Set defaults of fields that older releases did not store."""
        self.strategy.default_on_read(obj)

    def _decode_protobuf(self, value: bytes) -> JSONObject:
        if self._protobuf is None:
            raise UnknownFormatError("it is encoded as protobuf, and this server has no type definitions")
        obj = self._protobuf.decode(value)
        kind, api_version = obj["kind"], obj["apiVersion"]
        if kind != self.gvk.kind or api_version.rpartition("/")[0] != self.gvk.group:
            raise unknown_format_error(kind, api_version)
        return obj

    def _convert_from(self, obj: JSONObject, api_version: JSONValue) -> JSONObject:
        """Convert an object that another or an older server stored in another version."""
        kind = obj.get("kind")
        group, _, version = str(api_version).rpartition("/")
        if kind != self.gvk.kind or group != self.gvk.group or version not in self.info.known_versions:
            raise unknown_format_error(str(kind), str(api_version))
        return convert(obj, GroupVersionKind(group, version, self.gvk.kind), self.gvk)

    def encode_value(self, draft: Draft) -> bytes:
        """
        Return the stored form of a draft, byte for byte that of kube-apiserver: kind, apiVersion and the draft's body.

        @raise APIStatusError: The object cannot be encoded as protobuf (500).
        """
        if self.stored_as is not None:
            return draft.value or self.stored_as.encode(self.gvk, draft.body)
        return b"%b%b\n" % (self._value_start, draft.body[1:])

    async def wait_for_fill(self) -> None:
        """
        Wait until the cache is filled, and let the fill begin.

        A request waits for a few seconds only, since it occupies seats of its priority level.

        @raise APIStatusError: It takes longer (429, as in the reference while a watch cache is initialized).
        """
        try:
            await self.cache.on_demand.ensure().addTimeout(FILL_TIMEOUT, self.context.reactor)
        except FillTimeout:
            raise APIStatusError.too_many_requests("storage is (re)initializing", 1) from None

    async def encode_before_write(self, draft: Draft, scope: RequestScope) -> None:
        """
        Encode the stored form of a draft, unless that is JSON: a large one in the computation thread.

        @raise APIStatusError: The object cannot be encoded (500).
        """
        if self.stored_as is not None:
            draft.value = await scope.compute(len(draft.body), self.stored_as.encode, self.gvk, draft.body)

    def get_copy(self, namespace: str, name: str) -> JSONObject | None:
        """Return a copy of the current state of an object; L{None} if it does not exist."""
        record = self.cache.get(self.cache_key(namespace, name))
        return None if record is None else orjson.loads(record.item)

    def not_found(self, name: str) -> APIStatusError:
        """Return the 404 NotFound for an object of this resource."""
        return APIStatusError.not_found(self.group_resource, name)

    def existing(self, scope: RequestScope, name: str) -> Record:
        """
        Return the record of an object.

        @raise APIStatusError: The object does not exist (404).
        """
        record = self.cache.get(self.requested_key(scope, name))
        if record is None:
            raise self.not_found(name)
        return record

    @hook
    async def commit(
        self,
        key: str,
        draft: Draft | None,
        expected: int,
        allocation: Allocation = NO_ALLOCATION,
        charges: Sequence[Charge] = (),
    ) -> int:
        """
        Write or delete one object, in one transaction with the writes of its allocation and of admission plugins.

        It returns when the cache contains the write, so that subsequent reads, admission and authorization include it.

        @param key: The key of the object in the cache.
        @param draft: The new state; L{None} to delete the object.
        @param expected: The revision that is replaced; 0 if the object must not exist.
        @param allocation: The allocation of shared resources.
        @param charges: Functions of admission plugins that add writes to the transaction.
        @return: The revision of the write.
        @raise StorageError: The storage rejects the write or is unavailable.
        @raise APIStatusError: The object is too large (413), or cannot be encoded or encrypted (500).
        """
        value = None if draft is None else self.encode_value(draft)
        if value is not None and len(value) > MAX_OBJECT_SIZE:
            self._check_growth(key, value)
        # A created object has a new uid.
        write = Write(self.prefix + key, value, expected, self.ttl, draft, unique=not expected and value is not None)
        began, failed = perf_counter(), False
        span = current_span()
        try:
            if isinstance(span, Span):
                with self._span(span, key, write):
                    revision = await self._commit(write, allocation, charges)
            elif charges:
                revision = await self._commit(write, allocation, charges)
            else:
                # Most writes; without another coroutine.
                revision = await self.backend.commit([write, *allocation.writes()])
        except TransformToStorageError as error:
            raise APIStatusError.internal(str(error)) from error
        except (StorageUnavailable, OutcomeUnknown):
            failed = True
            raise
        finally:
            operation = "delete" if value is None else "update" if expected else "create"
            took = perf_counter() - began
            add_latency(ETCD, took)
            self.cache.metrics.observe_backend_request(operation, took, failed)
        if self.cache.revision < revision:
            await self.cache.wait_until_fresh_or_timeout(revision)
        if self.cache.deliveries.pending:
            # The sockets of watches contain the event before the response is sent.
            await self.cache.deliveries.wait(revision)
        return revision

    async def _commit(self, write: Write, allocation: Allocation, charges: Sequence[Charge]) -> int:
        if charges:
            return await self._commit_with_hooks(
                charges, lambda more: self.backend.commit([write, *allocation.writes(), *more])
            )
        return await self.backend.commit([write, *allocation.writes()])

    def _check_growth(self, key: str, value: bytes) -> None:
        """
        Reject an object that is too large, unless the stored one is at least as large: it may be about to be deleted.

        @raise APIStatusError: The object is too large (413).
        """
        existing = self.cache.get(key)
        if existing is None or len(value) > len(existing.item):
            raise APIStatusError.too_large(f"the object is too large to be stored: limit is {MAX_OBJECT_SIZE}")

    def _span(self, parent: Span, key: str, write: Write) -> Span | NonRecordingSpan:
        """Return the span of a write, which has the reference's name and attributes for every storage."""
        name = "Delete" if write.value is None else "GuaranteedUpdate" if write.expected else "Create"
        return parent.child(
            f"{name} etcd3",
            {
                "audit-id": parent.trace.audit_id,
                "key": f"/{self.group_resource.resource}/{key}",
                "type": self.gvk.kind,
                "group": self.group_resource.group,
                "resource": self.group_resource.resource,
            },
        )

    @hook
    async def needs_rewrite(self, key: str, obj: JSONObject, scope: RequestScope) -> bool:
        """
        Return whether an unchanged object must be written because its stored form is stale.

        @param obj: The object to be written.
        @raise APIStatusError: The stored object cannot be read (500).
        """
        existing = self.cache.get(key)
        if existing is not None and existing.stale_format:
            return True
        if self._is_stale is None:
            return False
        try:
            stale: bool = await self._is_stale(self.prefix + key)
        except KeyNotFound:
            return False
        except CorruptObjectError as error:
            raise APIStatusError.internal(str(error)) from error
        return stale

    async def _commit_with_hooks(self, charges: Sequence[Charge], commit: Commit) -> int:
        """Call C{commit} with the writes that the functions of admission plugins add."""
        *rest, last = charges
        if not rest:
            return await last(commit)

        async def with_last(more: Sequence[Write]) -> int:
            return await last(lambda added: commit([*more, *added]))

        return await self._commit_with_hooks(rest, with_last)

    def committed_record(self, key: str, revision: int, draft: Draft) -> Record:
        """Return the record of a committed write: that of the cache, or a new one if the cache has another revision."""
        record = self.cache.get(key)
        if record is not None and record.revision == revision:
            return record
        return Record.from_draft(key, revision, draft)

    def check_namespace(self, scope: RequestScope, meta: JSONObject) -> None:
        """
        Set the namespace of the object to that of the request.

        @raise APIStatusError: The object names another namespace (400).
        """
        if not self.info.namespaced:
            # A namespace in a cluster-scoped object is dropped without an error.
            meta.pop("namespace", None)
            return
        namespace = meta.get("namespace")
        if not scope.namespace:
            # An empty namespace in the path is reported by validation.
            meta.pop("namespace", None)
        elif not namespace:
            meta["namespace"] = scope.namespace
        elif namespace != scope.namespace:
            raise self.namespace_mismatch_error()

    def namespace_mismatch_error(self) -> APIStatusError:
        """Return the 400 for an object that names another namespace than the request."""
        return APIStatusError.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )

    @hook
    def run_validation(
        self, validate: Callable[..., Sequence[FieldError]], *objects: JSONObject
    ) -> Sequence[FieldError]:
        """Run a validation function of the kind with the settings of this server: C{--allow-privileged}."""
        errors = validate(*objects) if self._allows_privileged else unprivileged(validate, *objects)
        if not errors:
            return errors
        if isinstance(errors, UpdateErrors):
            return errors.in_release(self.strategy.features)
        return errors_in_release(errors, self.strategy.features)

    def invalid(self, name: str, errors: list[FieldError]) -> APIStatusError:
        """Return the 422 Invalid for an object; it names the kind in the group in which objects are stored."""
        return APIStatusError.invalid(self.gvk.group_kind, name, errors)

    def attributes(
        self,
        operation: str,
        scope: RequestScope,
        name: str,
        obj: JSONObject | None,
        record: Record | None,
        options: WriteOptions | DeleteOptions | None,
        subresource: str = "",
        kind: GroupVersionKind | None = None,
        to_kind: Callable[[JSONObject], JSONObject] | None = None,
    ) -> AdmissionAttributes:
        """
        Return the admission attributes of a write.

        @param operation: C{"CREATE"}, C{"UPDATE"} or C{"DELETE"}.
        @param name: The name in the request; C{""} if there is none.
        @param obj: The new object; L{None} in deletions.
        @param record: The stored object; L{None} in creations.
        @param options: The options of the request; L{None} if it has none.
        @param subresource: The subresource; C{""} for the main resource.
        @param kind: The kind of C{obj}; L{None} for the kind of the resource.
        @param to_kind: Makes an object of C{kind} from a stored object.
        """
        info = self.info
        version = scope.version or info.storage_version
        namespace = name if info.resource == "namespaces" and not info.group else scope.namespace
        old = None
        if record is not None:

            def old() -> JSONObject:
                stored = self.decode_record(record)
                return stored if to_kind is None else to_kind(stored)

        return AdmissionAttributes(
            operation,
            info.group,
            version,
            info.resource,
            subresource,
            info.kind if kind is None else kind.kind,
            namespace,
            name,
            obj,
            old,
            scope.user,
            options is not None and options.dry_run,
            self.context,
            options,
            request_kind=kind,
            object_kind=self.admitted_kind() if kind is None else kind,
            warn=scope.warn,
            annotate=scope.annotate,
            deadline=scope.deadline,
            in_thread=scope.in_thread,
            computing=scope.in_thread if scope.is_large(0 if record is None else len(record.item)) else None,
        )

    @hook
    def admitted_kind(self) -> GroupVersionKind:
        """Return the kind of the parameters and results of this store."""
        return self.gvk

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """
        Run the mutating plugins on an object; invalid managed fields that they leave are reverted.

        @raise APIStatusError: A plugin rejects the request.
        """
        obj = attributes.object
        meta = obj.get("metadata") if obj is not None else None
        before = meta.get("managedFields") if meta else None
        await self.admission.admit(attributes)
        if obj is None or meta is None:
            return
        check_admitted_managers(obj["metadata"], before, attributes.warn)

    async def admit_whole(self, scope: RequestScope, attributes: AdmissionAttributes) -> None:
        """
        Run the mutating plugins on an object of this resource, and check its namespace again afterwards.

        A webhook, policy or plugin must not move the object to a namespace that the client was not authorized for
        (C{rest.BeforeCreate} and C{rest.BeforeUpdate}).

        @raise APIStatusError: A plugin rejects the request, or has changed the namespace (400).
        """
        obj = attributes.object
        before = obj["metadata"].get("managedFields") if obj is not None else None
        # As L{admit}, without another coroutine.
        await self.admission.admit(attributes)
        if obj is not None:
            check_admitted_managers(obj["metadata"], before, attributes.warn)
        if attributes.object is not None:
            self.check_namespace(scope, attributes.object["metadata"])


def check_admitted_managers(meta: JSONObject, before: JSONValue, warn: Callable[[str], object]) -> None:
    """Restore the managed fields from before admission, with a warning, if admission made them invalid."""
    after = meta.get("managedFields")
    if after is before or after == before:
        return
    try:
        decode_client_entries(after or [])
    except MalformedEntries as error:
        if before is None:
            meta.pop("managedFields", None)
        else:
            meta["managedFields"] = before
        warn(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated"
            f" mutating admission controller; please fix your requests: {error}"
        )
