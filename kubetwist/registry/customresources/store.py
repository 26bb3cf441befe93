"""The objects of a custom resource, seen in one version; all versions share a cache, in the version that is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from ...api.errors import APIStatusError
from ...api.options import CreateOptions, DeleteOptions, GetOptions, ListOptions, WriteOptions
from ...api.resource import GroupVersionKind, JSONObject
from ...storage.record import Draft, Record
from ..scope import RequestScope
from ..store import Store
from .codec import CustomCodec

if TYPE_CHECKING:
    from .served import ServedResource


class CustomStore(Store):
    """
    Takes and gives objects in the version of the request.

    @ivar served: What it belongs to.
    @ivar codec: For that version.
    """

    served: ServedResource
    codec: CustomCodec

    def load(self, record: Record) -> JSONObject:
        """A stored object in this version."""
        obj: JSONObject = orjson.loads(record.item)
        return self.codec.pruned(obj) if self.codec.converts else obj

    def admitted_kind(self) -> GroupVersionKind:
        """The kind in the version of the request."""
        return self.codec.gvk

    async def drafted(self, obj: JSONObject) -> Draft:
        """An object ready to be written, in the stored version."""
        if self.codec.converts:
            obj = self.served.codec.pruned(obj)
        return super().draft(obj)

    def plain_draft(self, obj: JSONObject) -> Draft:
        """An object that is in the stored version."""
        return super().draft(obj)

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Any:
        """Make an object, unless the definition is on its way out."""
        if self.served.terminating:
            name = obj["metadata"].get("name", "")
            why = "create not allowed while custom resource definition is terminating"
            raise APIStatusError.forbidden(self.group_resource, name, why)
        return await super().create(scope, obj, options)
