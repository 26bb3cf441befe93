"""Store of CustomResourceDefinitions: a deleted CRD remains until its objects are deleted."""

from __future__ import annotations

from typing import Final

from twisted.logger import Logger

from ...api import times
from ...api.options import DeleteOptions
from ...api.record import Record
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from ..generic import deletion, removal
from ..generic.store import Store

CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"


class CustomResourceDefinitionStore(Store):
    """A store whose first DELETE marks a CRD for the controller that deletes its custom objects."""

    _log = Logger()

    def decode_value(self, key: str, value: bytes, revision: int) -> Record:
        """
        See L{Store.decode_value}.

        A damaged CRD has a record without content, so that it can be listed and deleted and does not prevent the start
        of servers.
        """
        try:
            return super().decode_value(key, value, revision)
        except Exception as error:
            self._log.error(
                "cannot decode stored CustomResourceDefinition: key={key} error={error!r}", key=key, error=error
            )
            empty = {"metadata": {"name": key, "uid": "", "creationTimestamp": None}, "spec": {}, "status": {}}
            return Record.from_draft(key, revision, self.encode(empty))

    async def begin_deletion(
        self, scope: RequestScope, key: str, record: Record, options: DeleteOptions
    ) -> tuple[Record, bool] | None:
        """
        Mark a CRD for deletion, unless it is marked already.

        A CRD that a deletecollection deletes is deleted without regard to its objects, as in the reference.
        """
        if scope.collection:
            return None
        old = self.decode_record(record)
        deletion.check_first_preconditions(options, old["metadata"], self.group_resource, record.name)
        if old["metadata"].get("deletionTimestamp"):
            return None
        await removal.admit_deletion(self, scope, record, options)
        obj = self.decode_record(record)
        meta = obj["metadata"]
        meta["deletionTimestamp"] = times.now()
        finalizers = meta.get("finalizers") or []
        if CLEANUP_FINALIZER not in finalizers:
            meta["finalizers"] = [*finalizers, CLEANUP_FINALIZER]
        set_crd_condition(
            obj,
            "Terminating",
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        )
        return await removal.commit_if_changed(self, key, obj, old, record, options.dry_run), False


def set_crd_condition(crd: JSONObject, kind: str, status: str, reason: str, message: str) -> None:
    """
    Set a condition in the status of a CRD; C{lastTransitionTime} changes with its status only.

    @param crd: The CRD, changed in place.
    @param kind: The type of the condition.
    @param status: C{"True"}, C{"False"} or C{"Unknown"}.
    @param reason: The reason in CamelCase.
    @param message: The text for users.
    """
    conditions = crd.setdefault("status", {}).get("conditions") or []
    now = times.now()
    condition = {"lastTransitionTime": now, "message": message, "reason": reason, "status": status, "type": kind}
    for index, one in enumerate(conditions):
        if one.get("type") == kind:
            if one.get("status") == status:
                condition["lastTransitionTime"] = one.get("lastTransitionTime") or now
            conditions[index] = condition
            break
    else:
        conditions.append(condition)
    crd["status"]["conditions"] = conditions
