"""Storage of subresources that write a part of the object, such as C{status}."""

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
    """Storage of a subresource that can only be updated: C{namespaces/finalize}."""

    def __init__(self, store: Store, rules: UpdateRules) -> None:
        self.store = store
        self.info = store.info
        self.rules = rules

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


def status_rules(store: Store) -> UpdateRules:
    """Return the update rules of the status subresource."""
    strategy = store.strategy
    return UpdateRules("status", strategy.prepare_for_status_update, strategy.validate_status_update)
