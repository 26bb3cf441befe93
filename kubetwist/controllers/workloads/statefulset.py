"""
The StatefulSet controller: maintains pods with stable names and volume claims, in order.

@see: kubernetes, C{pkg/controller/statefulset/stateful_set_control.go}, C{stateful_pod_control.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from attrs import define

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import (
    GroupResource,
    GroupVersionKind,
    JSONObject,
)
from ...api.selectors import label_selector_from_object
from ...registry.stores import decoded_object
from ..machinery.controller import Controller
from ..machinery.events import (
    NORMAL,
    WARNING,
)
from ..machinery.metadata import (
    controller_of,
    controller_reference,
)
from .history import (
    HASH_LABEL,
    ControllerHistory,
    apply_revision,
)
from .pods import (
    ControllerRefManager,
    Owner,
    available_in,
    is_terminal,
    phase_of,
)
from .rollout import (
    desired_replicas,
    scaled_value,
    status_count,
)
from .statefulpods import (
    claim_owner,
    claims_of,
    identity_matches,
    is_in_range,
    is_monotonic,
    is_running,
    is_terminating,
    is_unavailable,
    new_pod,
    ordinal_of,
    revision_of_pod,
    start_ordinal,
    update_identity,
)

if TYPE_CHECKING:
    from ..machinery.informer import Informer

_KIND: Final = GroupVersionKind("apps", "v1", "StatefulSet")


@define
class _SyncContext:
    """
    State of one sync of a StatefulSet.

    @ivar current: The revision of pods that are not updated.
    @ivar update: The revision of the current template.
    @ivar collisions: The number of hash collisions of revisions (C{collisionCount}).
    """

    owner: Owner
    current: JSONObject
    update: JSONObject
    collisions: int

    @property
    def stateful(self) -> JSONObject:
        """The stored StatefulSet."""
        return self.owner.obj


class StatefulSetController(Controller[str]):
    """Maintains the pods of StatefulSets. The queue contains keys of StatefulSets."""

    name: ClassVar[str] = "statefulset-controller"
    workers: ClassVar[int] = 5

    def register_handlers(self) -> None:
        """Register handlers for StatefulSets, pods, ControllerRevisions and claims."""
        self._stateful: Informer = self.watch("apps", "statefulsets")
        self._pod_informer = self.context.informer("", "pods")
        self._pods = ControllerRefManager(self._pod_informer, self.client, "", "pods")
        self.watch("", "pods", self._pod_changed)
        revisions = self.watch("apps", "controllerrevisions", lambda event_type, record, old: None)
        self._history = ControllerHistory(revisions, self.client, HASH_LABEL)
        self._claims: Informer = self.watch("", "persistentvolumeclaims", lambda event_type, record, old: None)
        self._recorder = self.context.recorder(self.name)

    def _pod_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        owners = [one for one in (controller_of(record), controller_of(old) if old is not None else None) if one]
        for owner in owners:
            if owner["kind"] == _KIND.kind:
                self._pods.enqueue_owner(self.queue, f"{record.namespace}/{owner['name']}", event_type, owner["uid"])
        if not owners:
            parent = record.name.rpartition("-")[0]
            if self._stateful.get(record.namespace, parent) is not None:
                self.queue.add(f"{record.namespace}/{parent}")

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._stateful.by_key(key)
        if record is None:
            return
        stateful = decoded_object(record)
        owner = Owner(_KIND, stateful, label_selector_from_object(stateful["spec"].get("selector") or {}))

        def can_adopt() -> bool:
            record = self._stateful.get(owner.namespace, owner.name)
            return record is not None and decoded_object(record)["metadata"]["uid"] == owner.uid

        revisions = await self._history.claim(owner, can_adopt)
        old_status = stateful.get("status") or {}
        update, revisions, collisions = await self._history.get_or_create_current(
            owner, revisions, old_status.get("collisionCount") or 0
        )
        current_name = old_status.get("currentRevision")
        current = next((one for one in revisions if one["metadata"]["name"] == current_name), update)
        context = _SyncContext(owner, current, update, collisions)
        await self._pods.claim(owner, can_adopt)
        failure: APIStatusError | None = None
        try:
            await self._update_pods(context)
        except APIStatusError as error:
            failure = error
        await self._update_status(key, context)
        live = {revision_of_pod(pod) for pod in self._list_pods(owner)}
        live |= {current["metadata"]["name"], update["metadata"]["name"]}
        await self._history.truncate(owner, revisions, live)
        if failure is not None:
            raise failure

    def _list_pods(self, owner: Owner) -> list[JSONObject]:
        """Return the pods of a StatefulSet, sorted by ordinal."""
        pods = [pod for pod in self._pods.list_owned(owner) if ordinal_of(owner.name, pod["metadata"]["name"]) >= 0]
        return sorted(pods, key=lambda pod: ordinal_of(owner.name, pod["metadata"]["name"]))

    async def _update_pods(self, context: _SyncContext) -> None:
        """Create, update and delete pods, as far as their order allows."""
        stateful, owner = context.stateful, context.owner
        if owner.deleted:
            return
        pods = {ordinal_of(owner.name, pod["metadata"]["name"]): pod for pod in self._list_pods(owner)}
        start = start_ordinal(stateful)
        monotonic = is_monotonic(stateful)
        for ordinal in range(start, start + desired_replicas(stateful)):
            await self.yield_to_reactor()
            if await self._process_replica(context, ordinal, pods.get(ordinal)) and monotonic:
                return
        condemned = [number for number in sorted(pods, reverse=True) if not is_in_range(stateful, number)]
        for number in condemned:
            await self._update_claim_owners(context, pods[number], number, True)
        if await self._process_condemned(context, pods, condemned):
            return
        if (stateful["spec"].get("updateStrategy") or {}).get("type") != "OnDelete":
            in_range = {number: pod for number, pod in pods.items() if is_in_range(stateful, number)}
            await self._delete_outdated(context, in_range)

    async def _process_replica(self, context: _SyncContext, ordinal: int, pod: JSONObject | None) -> bool:
        """
        Create or update the pod of an ordinal.

        @return: Whether the pods with higher ordinals must wait.
        """
        stateful = context.stateful
        if pod is None:
            await self._create_pod(context, ordinal)
            return True
        if is_terminal(pod):
            if not is_terminating(pod):
                failed = phase_of(pod) == "Failed"
                state, reason = (
                    ("Failed", "RecreatingFailedPod") if failed else ("Terminated", "RecreatingTerminatedPod")
                )
                meta = stateful["metadata"]
                message = (
                    f"StatefulSet {meta['namespace']}/{meta['name']} is recreating "
                    f"{state.lower()} Pod {pod['metadata']['name']}"
                )
                self._recorder.event(_KIND, stateful, WARNING if failed else NORMAL, reason, message)
                await self._delete_pod(context, pod)
            return True
        if phase_of(pod) in ("", "Pending"):
            await self._create_claims(context, pod["metadata"]["name"], ordinal)
        if is_monotonic(stateful) and is_unavailable(stateful, pod, self.clock.seconds()):
            return True
        if is_terminating(pod):
            return False
        if not identity_matches(pod, ordinal):
            meta = pod["metadata"]
            await self.client.update(
                "",
                "pods",
                meta["namespace"],
                meta["name"],
                lambda live: update_identity(stateful, live, ordinal),
                uid=meta["uid"],
            )
        await self._update_claim_owners(context, pod, ordinal, False)
        return False

    def _uses_current_revision(self, context: _SyncContext, ordinal: int) -> bool:
        """Return whether the pod of an ordinal is created from the current revision, not from the update revision."""
        strategy = context.stateful["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return False
        rolling = strategy.get("rollingUpdate")
        current_count = (
            status_count(context.stateful, "currentReplicas") if rolling is None else rolling.get("partition") or 0
        )
        return ordinal < start_ordinal(context.stateful) + current_count

    async def _create_pod(self, context: _SyncContext, ordinal: int) -> None:
        revision = context.current if self._uses_current_revision(context, ordinal) else context.update
        stateful = apply_revision(context.stateful, revision)
        pod = new_pod(stateful, revision["metadata"]["name"], ordinal, _KIND.kind, _KIND.api_version)
        name, suffix = pod["metadata"]["name"], f"in StatefulSet {context.owner.name}"
        await self._create_claims(context, name, ordinal)
        try:
            await self.client.create("", "pods", pod)
        except APIStatusError as error:
            message = f"create Pod {name} {suffix} failed error: {error.message}"
            self._recorder.event(_KIND, context.stateful, WARNING, "FailedCreate", message)
            raise
        self._recorder.event(
            _KIND, context.stateful, NORMAL, "SuccessfulCreate", f"create Pod {name} {suffix} successful"
        )

    async def _delete_pod(self, context: _SyncContext, pod: JSONObject) -> None:
        meta, suffix = pod["metadata"], f"in StatefulSet {context.owner.name}"
        try:
            await self.client.delete("", "pods", meta["namespace"], meta["name"], uid=meta["uid"])
        except APIStatusError as error:
            if error.code in (404, 409):
                return
            message = f"delete Pod {meta['name']} {suffix} failed error: {error.message}"
            self._recorder.event(_KIND, context.stateful, WARNING, "FailedDelete", message)
            raise
        message = f"delete Pod {meta['name']} {suffix} successful"
        self._recorder.event(_KIND, context.stateful, NORMAL, "SuccessfulDelete", message)

    # --- claims

    async def _create_claims(self, context: _SyncContext, pod: str, ordinal: int) -> None:
        for claim in claims_of(context.stateful, ordinal):
            meta = claim["metadata"]
            existing = self._claims.get(meta["namespace"], meta["name"])
            if existing is not None:
                if "deletionTimestamp" in decoded_object(existing)["metadata"]:
                    # The pod would get the volume of the deleted claim. It is created after the claim is removed.
                    message = "the claim of before is being deleted"
                    raise APIStatusError.conflict(GroupResource("", "persistentvolumeclaims"), meta["name"], message)
                continue
            subject = f"Claim {meta['name']} Pod {pod} in StatefulSet {context.owner.name}"
            if claim_owner(context.stateful, False) == "set":
                meta["ownerReferences"] = [context.owner.reference()]
            try:
                await self.client.create("", "persistentvolumeclaims", claim)
            except APIStatusError as error:
                if error.reason == "AlreadyExists":
                    continue
                event_message = f"create {subject} failed error: {error.message}"
                self._recorder.event(_KIND, context.stateful, WARNING, "FailedCreate", event_message)
                raise
            self._recorder.event(_KIND, context.stateful, NORMAL, "SuccessfulCreate", f"create {subject} success")

    async def _update_claim_owners(self, context: _SyncContext, pod: JSONObject, ordinal: int, condemned: bool) -> None:
        """Set the owner references of claims according to the retention policy."""
        owner = claim_owner(context.stateful, condemned)
        references = {"set": context.owner.reference(), "pod": controller_reference("Pod", "v1", pod)}
        owner_uids = {one["uid"] for one in references.values()}
        desired_uids = {references[owner]["uid"]} if owner else set()
        for claim in claims_of(context.stateful, ordinal):
            meta = claim["metadata"]
            existing = self._claims.get(meta["namespace"], meta["name"])
            if existing is None or {one["uid"] for one in self._owners(existing)} & owner_uids == desired_uids:
                continue
            if (controller_of(existing) or {"uid": context.owner.uid})["uid"] not in owner_uids:
                # The claim has another controller.
                continue

            def change(live: JSONObject) -> None:
                remaining = [
                    one for one in live["metadata"].get("ownerReferences") or () if one["uid"] not in owner_uids
                ]
                if owner:
                    remaining.append(references[owner])
                live["metadata"]["ownerReferences"] = remaining

            await self.client.update("", "persistentvolumeclaims", meta["namespace"], meta["name"], change)

    @staticmethod
    def _owners(record: Record) -> Sequence[JSONObject]:
        return decoded_object(record)["metadata"].get("ownerReferences") or ()

    # --- scale down and update

    async def _process_condemned(
        self, context: _SyncContext, pods: dict[int, JSONObject], condemned: Sequence[int]
    ) -> bool:
        """
        Delete surplus pods, the highest ordinal first.

        @return: Whether all further steps must wait.
        """
        stateful, now = context.stateful, self.clock.seconds()
        monotonic = is_monotonic(stateful)
        order = [number for number in sorted(pods) if is_in_range(stateful, number)] + list(reversed(condemned))
        first_unhealthy = next((number for number in order if is_unavailable(stateful, pods[number], now)), None)
        for number in condemned:
            pod = pods[number]
            if is_terminating(pod):
                if monotonic:
                    return True
                continue
            if monotonic and number != first_unhealthy and is_unavailable(stateful, pod, now):
                return True
            await self._delete_pod(context, pod)
            if monotonic:
                return True
        return False

    async def _delete_outdated(self, context: _SyncContext, pods: dict[int, JSONObject]) -> None:
        """Delete pods of old revisions, the highest ordinal first, as far as maxUnavailable allows."""
        stateful, now = context.stateful, self.clock.seconds()
        rolling = (stateful["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        partition = start_ordinal(stateful) + (rolling.get("partition") or 0)
        max_unavailable = max(1, scaled_value(rolling.get("maxUnavailable", 1), desired_replicas(stateful), True))
        update = context.update["metadata"]["name"]
        budget = max_unavailable
        if max_unavailable > 1:
            budget -= sum(is_unavailable(stateful, pod, now) for pod in pods.values())
        for number in sorted(pods, reverse=True):
            pod = pods[number]
            if number < partition or budget <= 0:
                return
            if revision_of_pod(pod) != update and not is_terminating(pod):
                await self._delete_pod(context, pod)
                budget -= 1
            elif max_unavailable == 1 and is_unavailable(stateful, pod, now):
                return

    # --- status

    async def _update_status(self, key: str, context: _SyncContext) -> None:
        """Update the status."""
        stateful, now = context.stateful, self.clock.seconds()
        pods = self._list_pods(context.owner)
        min_ready = stateful["spec"].get("minReadySeconds") or 0
        running = [pod for pod in pods if is_running(pod)]
        waits = [available_in(pod, min_ready, now) for pod in running]
        current, update = context.current["metadata"]["name"], context.update["metadata"]["name"]
        revisions = [revision_of_pod(pod) for pod in pods if not is_terminating(pod)]
        status: JSONObject = {
            "observedGeneration": stateful["metadata"].get("generation", 0),
            "replicas": len(pods),
            "readyReplicas": len(running),
            "availableReplicas": sum(wait == 0 for wait in waits),
            "currentReplicas": revisions.count(current),
            "updatedReplicas": revisions.count(update),
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": context.collisions,
        }
        strategy = (stateful["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate")
        if strategy == "RollingUpdate" and status["updatedReplicas"] == status["replicas"] == status["readyReplicas"]:
            status["currentReplicas"] = status["updatedReplicas"]
            status["currentRevision"] = update

        def change(live: JSONObject) -> None:
            live_status = live.setdefault("status", {})
            live_status.update(status)
            for name in ("readyReplicas", "currentReplicas", "updatedReplicas"):
                if not live_status[name]:
                    del live_status[name]

        owner = context.owner
        await self.client.update_status("apps", "statefulsets", owner.namespace, owner.name, change, uid=owner.uid)
        delays = [wait for wait in waits if wait]
        if delays:
            self.queue.add_after(key, min(delays))
