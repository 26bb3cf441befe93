"""The store of namespaces, which are deleted in two steps: terminating, then finalized by the controller."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from zope.interface import implementedBy, implementer_only

from ....api import times
from ....api.errors import FieldError
from ....api.options import DeleteOptions
from ....api.record import Record
from ....api.requestscope import RequestScope
from ....api.resource import JSONObject
from ....interfaces import ICollectionDeleter
from ...generic import deletion, removal
from ...generic.store import Store
from ...generic.updates import UpdateRules
from .validation import validate_namespace_finalize


@implementer_only(implementedBy(Store) - ICollectionDeleter)  # type: ignore[no-untyped-call] # no annotations there
class NamespaceStore(Store):
    """The store of namespaces, which are removed after C{finalize} removed the last of C{spec.finalizers}."""

    async def begin_deletion(
        self, scope: RequestScope, key: str, record: Record, options: DeleteOptions
    ) -> tuple[Record, bool] | None:
        """
        Mark a namespace as terminating; remove it if it has no finalizers.

        @param key: The key of the namespace in the cache.
        @param record: The current state of the namespace.
        @param options: The options of the request.
        @return: The result of the request; L{None} to remove the namespace.
        """
        old = orjson.loads(record.item)
        deletion.check_first_preconditions(options, old["metadata"], self.group_resource, record.name)
        if "deletionTimestamp" not in old["metadata"]:
            await removal.admit_deletion(self, scope, record, options)
            obj = orjson.loads(record.item)
            meta = obj["metadata"]
            meta["deletionTimestamp"] = times.now()
            finalizers = deletion.deletion_finalizers_for_garbage_collection(self.strategy, meta, options)
            if finalizers is not None:
                deletion.set_finalizers(meta, finalizers)
            obj.setdefault("status", {})["phase"] = "Terminating"
            return await removal.commit_if_changed(self, key, obj, old, record, options.dry_run), False
        return (record, False) if has_spec_finalizers(old) else None

    def should_delete_during_update(self, obj: JSONObject, old: JSONObject) -> bool:
        """Return whether an update removes the last finalizer, including those of C{spec.finalizers}."""
        return not has_spec_finalizers(obj) and super().should_delete_during_update(obj, old)


def has_spec_finalizers(namespace: JSONObject) -> bool:
    """Return whether a namespace has C{spec.finalizers}."""
    return bool((namespace.get("spec") or {}).get("finalizers"))


def finalize_rules(store: Store) -> UpdateRules:
    """Return the update rules of C{namespaces/finalize}, which changes C{spec.finalizers}."""

    def prepare(obj: JSONObject, old: JSONObject) -> None:
        if "status" in old:
            obj["status"] = old["status"]
        else:
            obj.pop("status", None)

    def validate(obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        return validate_namespace_finalize(obj)

    return UpdateRules("finalize", prepare, validate)
