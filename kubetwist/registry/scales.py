"""The C{scale} subresource: another kind's object, made of the resource's and written back into it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import orjson

from zope.interface import implementer

from ..api.errors import APIStatusError
from ..api.options import GetOptions, WriteOptions
from ..api.resource import GroupKind, JSONObject
from ..api.times import now
from ..interfaces import IPatcher
from .scope import RequestScope
from .strategies.scale import apply_scale, scale_of, validate_scale
from .updates import UpdateRules, parse_version

if TYPE_CHECKING:
    from .fieldmanager import FieldManager
    from .store import Store


@implementer(IPatcher)
class ScaleStore:
    """
    How many replicas an object wants and has, as C{autoscaling/v1, Scale}.

    @ivar fields: Notes in the object who scaled it; L{None} when nobody keeps track.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.info = store.info
        self.fields: FieldManager | None = None

    def _scale(self, obj: JSONObject) -> JSONObject:
        return scale_of(obj, self.info.group, self.info.kind)

    def get(self, scope: RequestScope, name: str, options: GetOptions) -> Any:
        """See L{kubetwist.interfaces.IGetter.get}."""
        return self._scale(orjson.loads(self._store.existing(scope, name).item))

    def check_uid(self, scope: RequestScope, obj: JSONObject, old: JSONObject) -> None:
        """As the store's."""
        self._store.check_uid(scope, obj, old)

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
        """See L{kubetwist.interfaces.IUpdater.update}; C{change} is given, and gives, a C{Scale}."""
        store = self._store
        store.existing(scope, name)

        def scaled(stored: JSONObject | None) -> JSONObject:
            assert stored is not None, "scales do not create"
            before = self._scale(stored)
            wanted = change(before)
            version = parse_version(wanted["metadata"].get("resourceVersion", ""))
            if version and str(version) != stored["metadata"]["resourceVersion"]:
                raise APIStatusError.modified(store.group_resource, name)
            causes = validate_scale(wanted)
            if causes:
                raise APIStatusError.invalid(GroupKind("autoscaling", "Scale"), name, causes)
            live = orjson.loads(orjson.dumps(stored))
            apply_scale(stored, wanted, self.info.group, self.info.kind)
            if self.fields is not None:
                # Of the resource's own fields: a scale has no owners, its replicas have.
                self.fields.update(live, stored, scope.manager, now())
            return stored

        strategy = store.strategy
        rules = UpdateRules("scale", strategy.prepare_for_update, strategy.validate_update, main=True, creates=False)
        record, _ = await store.update(scope, name, scaled, options, rules, patching=True)
        return self._scale(orjson.loads(record.item)), False
