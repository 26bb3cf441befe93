"""Stores of custom resources: one for each version, over a cache in the storage version."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, TypeVar

import orjson

from ...api.errors import APIStatusError
from ...api.options import ListOptions, WriteOptions
from ...api.record import (
    Draft,
    Listing,
    Record,
)
from ...api.requestscope import RequestScope
from ...api.resource import GroupVersionKind, JSONObject
from ...api.tables import Describe, TableDefinition
from ...interfaces import IWatch, IWatchSink
from ...schema.merge.ownership import Filters
from ..generic.environment import StoredResource, StoreEnvironment
from ..generic.fieldmanager.manager import FieldManager
from ..generic.reading import begin_watch
from ..generic.store import Store
from .codec import CustomCodec, stored_version
from .fieldmanager import ConversionNeeded, field_manager, reset_fields
from .sink import ConvertingWatchSink

_Result = TypeVar("_Result")

if TYPE_CHECKING:
    from .crd import CustomVersion
    from .served import ServedResource


class CustomStore(Store):
    """
    Reads and writes objects in the version of the request.

    If a webhook or plugin converts, records are converted before they are read: see L{ensure_converted}.

    @ivar served: The custom resource.
    @ivar codec: The codec of the version.
    """

    interruptions = (ConversionNeeded,)

    def __init__(
        self, resource: StoredResource, environment: StoreEnvironment, served: ServedResource, codec: CustomCodec
    ) -> None:
        """
        @param resource: The resource in this version.
        @param environment: The environment of the store.
        @param served: The custom resource.
        @param codec: Converts objects to and from the version of the store.
        """
        self.served = served
        self.codec = codec
        self.converts = codec.conversion is not None
        super().__init__(resource, environment)
        if environment.stores_cbor:
            # Imported with cbor2, which most servers do not need.
            from ..generic.storedcbor import StoredCBOR

            self.stored_as = StoredCBOR()

    def decode_record(self, record: Record) -> JSONObject:
        """Return a stored object in this version."""
        obj: JSONObject = orjson.loads(self.codec.item(record))
        return obj

    def field_manager(self, subresource: str) -> FieldManager:
        """See L{StoreBase.field_manager}."""
        definition = self.served.definition
        version = definition.version(definition.storage_version)
        return field_manager(version, self.served.versions, reset_fields(version, subresource), subresource)

    def reset_fields_of(self, subresource: str) -> Filters:
        """See L{Store.reset_fields_of}."""
        return reset_fields(self._version, subresource)

    def table(self, kind: GroupVersionKind, describe: Describe) -> TableDefinition:
        """See L{Store.table}; the version has its columns."""
        return self._version.printer.table()

    @property
    def _version(self) -> CustomVersion:
        return self.served.definition.version(self.codec.gvk.version)

    def admitted_kind(self) -> GroupVersionKind:
        """Return the kind in the version of the request."""
        return self.codec.gvk

    async def convert_and_encode(self, obj: JSONObject, scope: RequestScope | None = None) -> Draft:
        """Return an object to be written, encoded in the storage version."""
        codec = self.served.codec
        scope = scope or RequestScope()
        if self.codec.gvk != codec.gvk:
            if codec.conversion is not None:
                [obj] = await codec.conversion.convert([self.codec.with_kind(obj)], codec.gvk)
            return self.encode(await scope.compute(0, codec.reread, codec.with_kind(obj)))
        if "status" not in obj and (default := codec.type.default_for("status")) is not None:
            # Create drops the status; its default is added when the object is read.
            obj = {**obj, "status": default}
        meta = obj["metadata"]
        record = self.cache.get(self.cache_key(meta.get("namespace", ""), meta["name"]))
        # Defaults of the storage version are added to objects from other versions.
        if scope.applied or (record is not None and record.stale_format):
            size = 0 if record is None else len(record.item)
            obj = await scope.compute(size, codec.reread, codec.with_kind(obj))
        return self.encode(obj)

    async def needs_rewrite(self, key: str, obj: JSONObject, scope: RequestScope) -> bool:
        """
        See L{kubetwist.registry.generic.objects.StoreBase.needs_rewrite}.

        A version that lacks fields of a stored object drops them with any write, even one without a visible change:
        the reference compares the stored forms.
        """
        if await super().needs_rewrite(key, obj, scope):
            return True
        record = self.cache.get(key)
        if record is None or self.codec.gvk == self.served.codec.gvk:
            return False
        draft = await self.convert_and_encode(obj, scope)
        return bool(await scope.compute(len(record.item), _differ, draft.body, record.body()))

    # --- conversion by a webhook or plugin

    def is_converted(self, record: Record) -> bool:
        """Return whether a record can be decoded in this version without a conversion."""
        return self.codec.conversion is None or self.codec.has(record)

    async def ensure_converted(self, records: Iterable[Record]) -> None:
        """See L{StoreHooks.ensure_converted}."""
        if self.codec.conversion is None:
            return
        in_flight_records: list[Record] = []
        own_records: dict[str, list[Record]] = {}
        codec = self.codec
        in_flight = self.served.in_flight
        for record in records:
            if codec.has(record):
                continue
            if in_flight.start_or_join((codec.gvk.version, record)):
                in_flight_records.append(record)
            else:
                own_records.setdefault(stored_version(record) or codec.storage.version, []).append(record)
        try:
            for version, batch in own_records.items():
                await codec.convert_records(batch, version)
        finally:
            in_flight.finish([(codec.gvk.version, record) for batch in own_records.values() for record in batch])
        for record in in_flight_records:
            await in_flight.wait((codec.gvk.version, record))
        if in_flight_records:
            # The concurrent conversion may have failed.
            await self.ensure_converted(in_flight_records)

    async def converted(self, result: _Result | Awaitable[_Result]) -> _Result:
        """See L{StoreHooks.converted}."""
        if isinstance(result, Awaitable):
            result = await result
        if isinstance(result, Record):
            await self.ensure_converted((result,))
        elif isinstance(result, Listing):
            await self.ensure_converted(result.records)
        return result

    async def watch_converted(self, scope: RequestScope, options: ListOptions, sink: IWatchSink) -> IWatch:
        """See L{StoreHooks.watch_converted}; events wait until their objects are converted."""
        converting = ConvertingWatchSink(sink, self.is_converted, self.ensure_converted)
        return await converting.convert_initial(begin_watch(self, scope, options, converting))

    async def resume(self, interruption: Exception) -> None:
        """See L{StoreHooks.resume}: convert the objects that field ownership needs in another version."""
        assert isinstance(interruption, ConversionNeeded)
        await self.served.versions.run_conversion(interruption)

    # --- creation

    def begin_create(self, obj: JSONObject) -> None:
        """
        Reject the creation of an object while the objects of its CRD are being deleted.

        @raise APIStatusError: The objects are being deleted (403, 405 before 1.34).
        """
        if self.served.terminating:
            name = obj["metadata"].get("name", "")
            reason = "create not allowed while custom resource definition is terminating"
            earlier = APIStatusError.method_not_supported(self.group_resource, "create")
            earlier.message = reason
            raise APIStatusError.forbidden(self.group_resource, name, reason).since(1, 34, earlier)

    async def check_escalation(
        self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, options: WriteOptions
    ) -> None:
        """
        Repeat L{begin_create} after admission, which may take time, and for objects that a PUT creates.

        @param scope: The request.
        @param obj: The object.
        @param old: The stored object; L{None} on create.
        @param options: The options of the write.
        """
        if old is None:
            self.begin_create(obj)

    async def dry_run_result(self, obj: JSONObject, scope: RequestScope) -> JSONObject:
        """Return the object as it would be read after it was stored."""
        obj = await scope.compute(0, orjson.loads, (await self.convert_and_encode(obj, scope)).body)
        if self.codec.gvk != self.served.codec.gvk:
            if self.codec.conversion is not None:
                [obj] = await self.codec.conversion.convert([self.served.codec.with_kind(obj)], self.codec.gvk)
            obj = await scope.compute(0, self.codec.pruned, obj)
        return self.codec.with_kind(obj)


def _differ(one: bytes, other: bytes) -> bool:
    """Return whether two JSON texts differ in more than the order of keys."""
    if one == other:
        return False
    first, second = (orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS) for text in (one, other))
    return first != second
