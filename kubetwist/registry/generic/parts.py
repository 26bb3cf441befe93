"""Storage of subresources that write a part of the object, such as C{status}."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from zope.interface import implementer

from ...api.options import GetOptions, WriteOptions
from ...api.requestscope import RequestScope
from ...api.resource import GroupVersionKind, JSONObject
from ...api.tables import Describe, TableDefinition
from ...interfaces import IPatcher, IResetFieldsProvider, ITableConvertor, IUpdater
from ...schema.merge.ownership import Filters
from .updates import UpdateRules

if TYPE_CHECKING:
    from .store import Store


@implementer(IUpdater, IResetFieldsProvider)
class SubresourceUpdater:
    """Storage of a subresource that can only be updated: C{namespaces/finalize}."""

    def __init__(self, store: Store, subresource: str, make_rules: Callable[[Store], UpdateRules]) -> None:
        """
        @param store: The store of the resource.
        @param subresource: The name of the subresource.
        @param make_rules: Returns the update rules; called at the first update, since it imports the strategy.
        """
        self.store = store
        self.info = store.info
        self._subresource = subresource
        self._make_rules = make_rules

    @cached_property
    def rules(self) -> UpdateRules:
        """Return the update rules of the subresource."""
        return self._make_rules(self.store)

    @property
    def reset_fields(self) -> Filters:
        """See L{IResetFieldsProvider.reset_fields}."""
        return self.store.reset_fields_of(self._subresource)

    def check_uid(self, scope: RequestScope, obj: JSONObject, old: JSONObject) -> None:
        """See L{Store.check_uid}."""
        self.store.check_uid(scope, obj, old)

    async def update(
        self,
        scope: RequestScope,
        name: str,
        change: Callable[[JSONObject | None], JSONObject],
        options: WriteOptions,
        *,
        patching: bool = False,
        creating: bool = False,
        may_create: Callable[[], Awaitable[None]] | None = None,
    ) -> tuple[Any, bool]:
        """
        Update the part of the object; see L{IUpdater.update}.

        @param creating: Ignored, since subresources do not create objects.
        @param may_create: Ignored.
        """
        return await self.store.update(scope, name, change, options, self.rules, patching=patching)


@implementer(IPatcher)
class SubresourceStore(SubresourceUpdater):
    """Storage of a subresource that can be read, updated and patched: C{status}."""

    def get(self, scope: RequestScope, name: str, options: GetOptions) -> Any:
        """See L{kubetwist.interfaces.IGetter.get}."""
        return self.store.get(scope, name, options)


@implementer(ITableConvertor)
class StatusStore(SubresourceStore):
    """Storage of C{status}, which has the Tables of the object."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, "status", status_rules)

    def table(self, kind: GroupVersionKind, describe: Describe) -> TableDefinition:
        """See L{Store.table}."""
        return self.store.table(kind, describe)


def status_rules(store: Store) -> UpdateRules:
    """Return the update rules of the status subresource."""
    strategy = store.strategy
    return UpdateRules("status", strategy.prepare_for_status_update, strategy.validate_status_update)
