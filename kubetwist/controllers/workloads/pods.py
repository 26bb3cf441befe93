"""
Pods and their controllers: readiness, order of deletion, controller references, creation.

@see: kubernetes, C{pkg/controller/controller_utils.go}, C{controller_ref_manager.go}; C{pkg/api/v1/pod}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from attrs import frozen

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import GroupVersionKind, JSONObject
from ...api.selectors import LabelSelector
from ...api.times import seconds_since_epoch
from ...registry.stores import decoded_object
from ...storage.cache.window import MODIFIED
from ..machinery.events import (
    NORMAL,
    WARNING,
)
from ..machinery.metadata import (
    controller_of,
    controller_reference,
    controller_uid,
)

if TYPE_CHECKING:
    from ..machinery.client import Client
    from ..machinery.context import ControllerContext
    from ..machinery.informer import (
        Index,
        Informer,
    )
    from ..machinery.queue import WorkQueue

#: Maximum number of pods that one sync of a controller creates or deletes.
BURST: Final = 500
#: Number of pods in the first batch. The batch size doubles after each success (Go: slowStartBatch).
_SLOW_START: Final = 1
#: With more pods than this, updates are coalesced, as a sync processes all pods: seconds per pod, and the minimum.
_COALESCE_ABOVE: Final = 100
_COALESCE_DELAY: Final = 0.1 / 250
_COALESCE_MIN: Final = 0.1
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
#: The phases of pods whose containers have all stopped for good.
ENDED: Final = ("Succeeded", "Failed")


def condition_of(pod: JSONObject, kind: str) -> JSONObject | None:
    """Return the condition of a type in the status of a pod, or L{None}."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == kind:
            result: JSONObject = condition
            return result
    return None


def phase_of(pod: JSONObject) -> str:
    """Return the phase of a pod; C{""} if it has none."""
    return (pod.get("status") or {}).get("phase") or ""


def is_terminal(pod: JSONObject) -> bool:
    """Return whether a pod has terminated: its phase is Succeeded or Failed."""
    return phase_of(pod) in ("Succeeded", "Failed")


def is_active(pod: JSONObject) -> bool:
    """Return whether a pod is active: neither terminated nor being deleted."""
    return not is_terminal(pod) and "deletionTimestamp" not in pod["metadata"]


def is_ready(pod: JSONObject) -> bool:
    """Return whether the condition Ready of a pod is true."""
    ready = condition_of(pod, "Ready")
    return ready is not None and ready.get("status") == "True"


def available_in(pod: JSONObject, min_ready: float, now: float) -> float | None:
    """
    Return the seconds until a pod is available; 0 if it is, L{None} if it is not ready.

    @param min_ready: Seconds for which the pod must have been ready.
    """
    ready = condition_of(pod, "Ready")
    if ready is None or ready.get("status") != "True":
        return None
    since = ready.get("lastTransitionTime")
    if not min_ready:
        return 0.0
    if not since:
        return None
    return max(0.0, seconds_since_epoch(since) + min_ready - now)


def deletion_rank(pod: JSONObject, related: int, now: float) -> tuple[bool, int, bool, int, int, float, int, float]:
    """
    Return the sort key of pods that puts those to delete first at the start (Go: ActivePodsWithRanks).

    @param pod: The pod.
    @param related: Number of pods of the same owner on the same node.
    @param now: The current time, POSIX.
    """
    meta, status = pod["metadata"], pod.get("status") or {}
    ready = condition_of(pod, "Ready")
    ready_now = ready is not None and ready.get("status") == "True"
    since = (
        seconds_since_epoch(ready["lastTransitionTime"])
        if ready_now and ready and ready.get("lastTransitionTime")
        else 0.0
    )
    restarts = max((one.get("restartCount") or 0 for one in status.get("containerStatuses") or ()), default=0)
    cost = (meta.get("annotations") or {}).get(_DELETION_COST) or "0"
    try:
        deletion_cost = int(cost)
    except ValueError:
        deletion_cost = 0
    created_at = seconds_since_epoch(meta["creationTimestamp"]) if meta.get("creationTimestamp") else now
    return (
        bool(pod["spec"].get("nodeName")),
        _PHASES.get(phase_of(pod), 0),
        ready_now,
        deletion_cost,
        -related,
        -since if ready_now else 0.0,
        -restarts,
        -created_at,
    )


def from_template(template: JSONObject, owner: JSONObject | None, prefix: str, namespace: str) -> JSONObject:
    """
    Return a new pod from a template (Go: GetPodFromTemplate).

    @param template: The pod template.
    @param owner: The reference to its controller.
    @param prefix: The prefix of its name.
    @param namespace: The namespace of the pod.
    """
    meta = template.get("metadata") or {}
    new_meta: JSONObject = {"generateName": prefix, "namespace": namespace}
    for name in ("labels", "annotations", "finalizers"):
        if meta.get(name):
            new_meta[name] = meta[name]
    if owner is not None:
        new_meta["ownerReferences"] = [owner]
    return {"metadata": new_meta, "spec": template.get("spec") or {}}


@frozen
class Owner:
    """
    An object that controls pods.

    @ivar gvk: The kind of the object.
    @ivar obj: The stored object.
    @ivar selector: The label selector of the pods.
    """

    gvk: GroupVersionKind
    obj: JSONObject
    selector: LabelSelector

    @property
    def namespace(self) -> str:
        """The namespace of the object."""
        return str(self.obj["metadata"].get("namespace") or "")

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(self.obj["metadata"]["name"])

    @property
    def uid(self) -> str:
        """The uid of the object."""
        return str(self.obj["metadata"]["uid"])

    @property
    def deleted(self) -> bool:
        """Whether the object is being deleted."""
        return "deletionTimestamp" in self.obj["metadata"]

    def reference(self) -> JSONObject:
        """Return the controller reference to the object."""
        return controller_reference(self.gvk.kind, self.gvk.api_version, self.obj)


class ControllerRefManager:
    """
    Adopts and releases the objects of one resource for their controllers (Go: PodControllerRefManager).

    @ivar by_owner: Objects by the uid of their controller.
    """

    def __init__(self, informer: Informer, client: Client, group: str, resource: str) -> None:
        self._informer = informer
        self._client = client
        self._group = group
        self._resource = resource
        self.by_owner: Index = informer.index("controller", controller_uid)
        self._orphans: Index = informer.index("orphans", _orphan)

    def enqueue_owner(self, queue: WorkQueue[str], key: str, kind: str, uid: str) -> None:
        """
        Enqueue an owner because one of its objects has changed.

        If it has many objects, updates are coalesced, since a sync processes all of them.

        @param queue: The queue of the owners.
        @param key: The key of the owner.
        @param kind: The type of the event.
        @param uid: The uid of the owner.
        """
        count = self.by_owner.count(uid)
        if kind == MODIFIED and count > _COALESCE_ABOVE:
            queue.add_after(key, max(_COALESCE_MIN, count * _COALESCE_DELAY))
        else:
            queue.add(key)

    def list_owned(self, owner: Owner) -> list[JSONObject]:
        """Return the objects that an owner controls. They are frozen."""
        return [decoded_object(record) for record in self.by_owner.get(owner.uid)]

    def orphans(self, namespace: str) -> list[Record]:
        """Return the objects in a namespace that have no controller."""
        return self._orphans.get(namespace)

    async def claim(self, owner: Owner, can_adopt: Callable[[], bool]) -> list[JSONObject]:
        """
        Return the objects of an owner, after adopting matching orphans and releasing objects that no longer match.

        @param can_adopt: Checks, before an adoption, that the owner still exists.
        @return: The objects, frozen.
        """
        owned: list[JSONObject] = []
        for record in self.by_owner.get(owner.uid):
            if owner.selector.matches(record.labels):
                owned.append(decoded_object(record))
            elif not owner.deleted:
                await self._release(owner, record)
        if owner.deleted:
            return owned
        for record in self.orphans(owner.namespace):
            if owner.selector.matches(record.labels) and "deletionTimestamp" not in decoded_object(record)["metadata"]:
                if not can_adopt():
                    break
                adopted = await self._adopt(owner, record)
                if adopted is not None:
                    owned.append(adopted)
        return owned

    async def _adopt(self, owner: Owner, record: Record) -> JSONObject | None:
        def add_reference(obj: JSONObject) -> None:
            references = obj["metadata"].setdefault("ownerReferences", [])
            if not any(one.get("controller") for one in references):
                references.append(owner.reference())

        uid = decoded_object(record)["metadata"]["uid"]
        try:
            await self._client.update(
                self._group, self._resource, record.namespace, record.name, add_reference, uid=uid
            )
        except APIStatusError as error:
            if error.code in (404, 409):
                return None
            raise
        current = self._informer.get(record.namespace, record.name)
        is_owned = current is not None and (controller_of(current) or {}).get("uid") == owner.uid
        return decoded_object(current) if current is not None and is_owned else None

    async def _release(self, owner: Owner, record: Record) -> None:
        def remove_reference(obj: JSONObject) -> None:
            remaining = [one for one in obj["metadata"].get("ownerReferences") or () if one.get("uid") != owner.uid]
            if remaining:
                obj["metadata"]["ownerReferences"] = remaining
            else:
                obj["metadata"].pop("ownerReferences", None)

        uid = decoded_object(record)["metadata"]["uid"]
        try:
            await self._client.update(
                self._group, self._resource, record.namespace, record.name, remove_reference, uid=uid
            )
        except APIStatusError as error:
            if error.code not in (404, 409):
                raise


def _orphan(record: Record) -> Sequence[str]:
    return () if controller_of(record) is not None else (record.namespace,)


class PodControl:
    """Creates and deletes pods for owners, and records events."""

    def __init__(self, context: ControllerContext, client: Client, component: str) -> None:
        self._client = client
        self._recorder = context.recorder(component)

    async def create_many(self, owner: Owner, template: JSONObject, count: int) -> APIStatusError | None:
        """
        Create pods from a template, in batches of growing size, so that an error does not occur for every pod.

        @return: The first error, after which no further pods are created.
        """
        created, batch = 0, _SLOW_START
        while created < count:
            for _ in range(min(batch, count - created)):
                error = await self.create(
                    owner, from_template(template, owner.reference(), f"{owner.name}-", owner.namespace)
                )
                if error is not None:
                    return error
                created += 1
            batch *= 2
        return None

    async def create(self, owner: Owner, pod: JSONObject) -> APIStatusError | None:
        """Create a pod, and return the error if that failed."""
        try:
            created = await self._client.create("", "pods", pod)
        except APIStatusError as error:
            if not any(
                one.get("reason") == "NamespaceTerminating" for one in (error.details or {}).get("causes") or ()
            ):
                self.event(owner, WARNING, "FailedCreate", f"Error creating: {error.message}")
            return error
        self.event(owner, NORMAL, "SuccessfulCreate", f"Created pod: {created.name}")
        return None

    async def delete(self, owner: Owner, pod: JSONObject) -> None:
        """Delete a pod. Do nothing if it does not exist."""
        meta = pod["metadata"]
        try:
            await self._client.delete("", "pods", meta["namespace"], meta["name"], uid=meta["uid"])
        except APIStatusError as error:
            if error.code in (404, 409):
                return
            self.event(owner, WARNING, "FailedDelete", f"Error deleting: {error.message}")
            raise
        self.event(owner, NORMAL, "SuccessfulDelete", f"Deleted pod: {meta['name']}")

    def event(self, owner: Owner, kind: str, reason: str, message: str) -> None:
        """
        Record an event about an owner.

        @param owner: The owner.
        @param kind: The type: C{NORMAL} or C{WARNING}.
        @param reason: The reason in CamelCase.
        @param message: The message.
        """
        self._recorder.event(owner.gvk, owner.obj, kind, reason, message)
