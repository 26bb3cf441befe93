"""
The ReplicaSet controller: maintains the number of pods of a template.

@see: kubernetes, C{pkg/controller/replicaset/replica_set.go}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import (
    GroupVersionKind,
    JSONObject,
)
from ...api.selectors import (
    LabelSelector,
    label_selector_from_object,
)
from ...api.times import format_time
from ...registry.stores import decoded_object
from ..machinery.controller import Controller
from ..machinery.metadata import controller_of
from .pods import (
    BURST,
    ControllerRefManager,
    Owner,
    PodControl,
    available_in,
    deletion_rank,
    is_active,
    is_ready,
    is_terminal,
)

if TYPE_CHECKING:
    from ..machinery.informer import Informer

FAILURE = "ReplicaFailure"


class ReplicaSetController(Controller[str]):
    """Creates and deletes the pods of ReplicaSets. The queue contains keys of ReplicaSets."""

    name: ClassVar[str] = "replicaset-controller"
    workers: ClassVar[int] = 5
    kind: ClassVar[GroupVersionKind] = GroupVersionKind("apps", "v1", "ReplicaSet")
    resource: ClassVar[str] = "replicasets"
    counts_terminating: ClassVar[bool] = True

    def register_handlers(self) -> None:
        """Register handlers for ReplicaSets and pods."""
        self._sets: Informer = self.watch(self.kind.group, self.resource)
        self._pods = ControllerRefManager(self.context.informer("", "pods"), self.client, "", "pods")
        self.watch("", "pods", self._pod_changed)
        self._control = PodControl(self.context, self.client, self.name)

    def _pod_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        owners = [one for one in (controller_of(record), controller_of(old) if old is not None else None) if one]
        for owner in owners:
            if owner["kind"] == self.kind.kind:
                self._pods.enqueue_owner(self.queue, f"{record.namespace}/{owner['name']}", event_type, owner["uid"])
        if not owners:
            # Any controller whose selector matches may adopt it.
            for candidate in self._sets.list(record.namespace):
                if self.selector(decoded_object(candidate)).matches(record.labels):
                    self.queue.add(candidate.key)

    def selector(self, obj: JSONObject) -> LabelSelector:
        """Return the label selector of an object."""
        return label_selector_from_object(obj["spec"].get("selector") or {})

    def template(self, obj: JSONObject) -> JSONObject:
        """Return the pod template of an object."""
        template: JSONObject = obj["spec"].get("template") or {}
        return template

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._sets.by_key(key)
        if record is None:
            return
        obj = decoded_object(record)
        owner = Owner(self.kind, obj, self.selector(obj))
        pods = await self._pods.claim(owner, lambda: self._can_adopt(owner))
        failure: APIStatusError | None = None
        if not owner.deleted:
            failure = await self._manage(owner, [pod for pod in pods if is_active(pod)])
            pods = self._pods.list_owned(owner)
        active = [pod for pod in pods if is_active(pod)]
        await self._update_status(key, owner, active, pods, failure)
        if failure is not None:
            raise failure

    def _can_adopt(self, owner: Owner) -> bool:
        record = self._sets.get(owner.namespace, owner.name)
        return record is not None and decoded_object(record)["metadata"]["uid"] == owner.uid

    async def _manage(self, owner: Owner, active: Sequence[JSONObject]) -> APIStatusError | None:
        """Create missing pods or delete surplus ones, and return the first error."""
        desired_replicas = owner.obj["spec"].get("replicas")
        missing = (1 if desired_replicas is None else desired_replicas) - len(active)
        if missing > 0:
            error = await self._control.create_many(owner, self.template(owner.obj), min(missing, BURST))
            if error is not None and "NamespaceTerminating" in str(error.details):
                return None
            return error
        if missing < 0:
            for pod in self._sort_for_deletion(owner, active)[: min(-missing, BURST)]:
                try:
                    await self._control.delete(owner, pod)
                except APIStatusError as error:
                    return error
        return None

    def _sort_for_deletion(self, owner: Owner, active: Sequence[JSONObject]) -> list[JSONObject]:
        """Return all pods in order of deletion."""
        nodes = Counter(pod["spec"].get("nodeName") for pod in active)
        now = self.clock.seconds()
        return sorted(active, key=lambda pod: deletion_rank(pod, nodes[pod["spec"].get("nodeName")], now))

    async def _update_status(
        self,
        key: str,
        owner: Owner,
        active: Sequence[JSONObject],
        pods: Sequence[JSONObject],
        failure: APIStatusError | None,
    ) -> None:
        """
        Update the status.

        @param owner: The ReplicaSet.
        """
        obj, now = owner.obj, self.clock.seconds()
        min_ready = obj["spec"].get("minReadySeconds") or 0
        waits = [available_in(pod, min_ready, now) for pod in active]
        labels = (self.template(obj).get("metadata") or {}).get("labels") or {}
        counts = {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(
                labels.items() <= (pod["metadata"].get("labels") or {}).items() for pod in active
            ),
            "readyReplicas": sum(map(is_ready, active)),
            "availableReplicas": sum(wait == 0 for wait in waits),
        }
        terminating = sum("deletionTimestamp" in pod["metadata"] and not is_terminal(pod) for pod in pods)
        desired_replicas = obj["spec"].get("replicas")
        surplus = len(active) > (1 if desired_replicas is None else desired_replicas)
        failure_and_reason = (failure, "FailedDelete" if surplus else "FailedCreate") if failure is not None else None

        def change(new: JSONObject) -> None:
            if new["metadata"]["uid"] != owner.uid:
                return
            status = new.setdefault("status", {})
            status["replicas"] = counts["replicas"]
            for name in ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"):
                _set(status, name, counts[name])
            status["observedGeneration"] = obj["metadata"].get("generation") or 0
            if self.counts_terminating:
                status["terminatingReplicas"] = terminating
            self._set_failure(status, failure_and_reason)

        await self.client.update_status(self.kind.group, self.resource, owner.namespace, owner.name, change)
        later = [wait for wait in waits if wait]
        if later:
            self.queue.add_after(key, min(later))

    def _set_failure(self, status: JSONObject, problem: tuple[APIStatusError, str] | None) -> None:
        conditions = [one for one in status.get("conditions") or () if one.get("type") != FAILURE]
        if problem is not None:
            error, reason = problem
            known = next((one for one in status.get("conditions") or () if one.get("type") == FAILURE), None)
            if known is not None and known.get("reason") == reason:
                conditions.append(known)
            else:
                conditions.append(
                    {
                        "type": FAILURE,
                        "status": "True",
                        "reason": reason,
                        "message": error.message,
                        "lastTransitionTime": format_time(self.clock.seconds()),
                    }
                )
        if conditions:
            status["conditions"] = conditions
        else:
            status.pop("conditions", None)


def _set(status: JSONObject, name: str, value: int) -> None:
    """Set a counter, or remove it if it is zero."""
    if value:
        status[name] = value
    else:
        status.pop(name, None)
