"""Subresources that are the object itself, of which only a part can be written: C{status} and others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from zope.interface import implementer

from ...api.options import GetOptions, WriteOptions
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from ...interfaces import IPatcher, IUpdater
from .updates import UpdateRules

if TYPE_CHECKING:
    from .store import Store


@implementer(IUpdater)
class SubresourceUpdater:
    """A part of an object that can be written but, by this path, not read: C{namespaces/finalize}."""

    def __init__(self, store: Store, rules: UpdateRules) -> None:
        self.store = store
        self.info = store.info
        self.rules = rules

    def check_uid(self, scope: RequestScope, obj: JSONObject, old: JSONObject) -> None:
        """As the store's."""
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
        """See L{IUpdater.update}."""
        return await self.store.update(scope, name, change, options, self.rules, patching=patching)


@implementer(IPatcher)
class SubresourceStore(SubresourceUpdater):
    """A part of an object that can be read, replaced and patched: C{status}."""

    def get(self, scope: RequestScope, name: str, options: GetOptions) -> Any:
        """See L{kubetwist.interfaces.IGetter.get}."""
        return self.store.get(scope, name, options)


def status_rules(store: Store) -> UpdateRules:
    """What the status subresource may write."""
    strategy = store.strategy
    return UpdateRules("status", strategy.prepare_for_status_update, strategy.validate_status_update)
