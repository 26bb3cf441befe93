"""Resources whose objects are computed on request."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Final

from zope.interface import implementer

from ..api.errors import APIStatusError
from ..api.options import (
    GetOptions,
    ListOptions,
)
from ..api.record import (
    Listing,
    Record,
)
from ..api.requestscope import RequestScope
from ..api.resource import (
    GroupVersionKind,
    JSONObject,
)
from ..api.tables import Describe, TableDefinition
from ..interfaces import (
    IGetter,
    ILister,
    ITableConvertor,
)
from ..registry.generic.capabilities import NamedResource
from ..registry.generic.reading import selection_predicate

if TYPE_CHECKING:
    from ..registry.customresources.crd import CustomVersion
    from ._resources import Compute

#: The resource version of computed objects. A watch cannot start from it.
_REVISION: Final = 1


@implementer(IGetter, ILister, ITableConvertor)
class ComputedStorage(NamedResource):
    """Read-only storage of a resource whose objects are computed."""

    def __init__(self, version: CustomVersion, compute: Compute) -> None:
        self._version = version
        self._compute = compute
        self.info = version.definition.info

    def table(self, kind: GroupVersionKind, describe: Describe) -> TableDefinition:
        """See L{ITableConvertor.table}; the columns are in the definition."""
        return self._version.printer.table()

    async def get(self, scope: RequestScope, name: str, options: GetOptions) -> Record:
        """See L{IGetter.get}."""
        for record in await self._records(scope):
            if record.name == name:
                return record
        raise APIStatusError.not_found(self.info.group_resource, name)

    async def list(self, scope: RequestScope, options: ListOptions) -> Listing:
        """See L{ILister.list}. There is no pagination."""
        selection = selection_predicate(self, scope, options)
        records = [] if selection.nothing else await self._records(scope)
        matching = [
            record
            for record in records
            if record.key.startswith(selection.prefix)
            and selection.key in (None, record.key)
            and (selection.match is None or selection.match(record))
        ]
        return Listing(sorted(matching, key=lambda one: one.key), _REVISION)

    async def _records(self, scope: RequestScope) -> Sequence[Record]:
        objects = self._compute(scope.namespace, scope.user)
        if isawaitable(objects):
            objects = await objects
        records = [self._record(obj) for obj in objects]
        return [one for one in records if not scope.namespace or one.namespace == scope.namespace]

    def _record(self, obj: JSONObject) -> Record:
        decoded = self._version.type.decode(obj, [])
        decoded["metadata"].pop("resourceVersion", None)
        return Record.from_object(decoded, _REVISION)
