"""
The Deployment controller: creates ReplicaSets for templates, and moves pods from old ones to the new one.

@see: kubernetes, C{pkg/controller/deployment/deployment_controller.go}, C{sync.go}, C{rolling.go}, C{recreate.go},
    C{progress.go}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from attrs import define, evolve, field

from ...api.errors import APIStatusError
from ...api.frozen import mutable_copy
from ...api.record import Record
from ...api.resource import (
    GroupVersionKind,
    JSONObject,
)
from ...api.selectors import label_selector_from_object
from ...api.times import format_time
from ...registry.stores import decoded_object
from ..machinery.client import is_namespace_terminating_error
from ..machinery.controller import Controller
from ..machinery.events import (
    NORMAL,
    WARNING,
)
from ..machinery.metadata import controller_of
from .pods import (
    ControllerRefManager,
    Owner,
    phase_of,
)
from .replicaset import FAILURE
from .rollout import (
    DESIRED,
    HASH_LABEL,
    NEW_RS_AVAILABLE_REASON,
    REVISION,
    TIMED_OUT_REASON,
    age_order,
    annotations_of,
    deadline_of,
    desired_replicas,
    drop_condition,
    find_condition,
    find_new_replica_set,
    is_complete,
    is_progressing,
    is_rolling,
    max_surge_and_unavailable,
    new_replica_set_replicas,
    proportions,
    revision_of,
    same_template,
    seconds_to_deadline,
    set_annotations,
    set_condition,
    size_annotations,
    status_count,
    sum_desired_replicas,
    template_hash,
)

if TYPE_CHECKING:
    from ..machinery.informer import Informer

_KIND: Final = GroupVersionKind("apps", "v1", "Deployment")


class _RequeueError(Exception):
    """The state that a sync is based on has changed: the key must be queued again."""


@define
class _Rollout:
    """
    A Deployment and its ReplicaSets.

    @ivar new: The ReplicaSet of the current template, if it exists.
    @ivar old: The other ReplicaSets.
    @ivar status: The status to write.
    """

    owner: Owner
    new: JSONObject | None
    old: list[JSONObject]
    status: JSONObject = field(factory=dict)

    @property
    def deployment(self) -> JSONObject:
        """The stored Deployment."""
        return self.owner.obj

    @property
    def sets(self) -> list[JSONObject]:
        """All ReplicaSets."""
        return self.old if self.new is None else [*self.old, self.new]


class DeploymentController(Controller[str]):
    """Reconciles Deployments. The queue contains keys of Deployments."""

    name: ClassVar[str] = "deployment-controller"
    workers: ClassVar[int] = 5

    def register_handlers(self) -> None:
        """Register handlers for Deployments, ReplicaSets and terminated pods."""
        self._deployments: Informer = self.watch("apps", "deployments")
        self._replica_sets: Informer = self.watch("apps", "replicasets", self._set_changed)
        self._sets = ControllerRefManager(self._replica_sets, self.client, "apps", "replicasets")
        self._pods = ControllerRefManager(self.watch("", "pods", self._pod_changed), self.client, "", "pods")
        self._recorder = self.context.recorder(self.name)

    def _set_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        owners = [one for one in (controller_of(record), controller_of(old) if old is not None else None) if one]
        for owner in owners:
            if owner["kind"] == "Deployment":
                self.queue.add(f"{record.namespace}/{owner['name']}")
        if not owners:
            for candidate in self._deployments.list(record.namespace):
                selector = label_selector_from_object(decoded_object(candidate)["spec"].get("selector") or {})
                if selector.matches(record.labels):
                    self.queue.add(candidate.key)

    def _pod_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        # Only the strategy Recreate waits for pods to terminate.
        if event_type != "DELETED" and record.fields.get("status.phase") not in ("Succeeded", "Failed"):
            return
        owner = controller_of(record)
        if owner is None or owner["kind"] != "ReplicaSet":
            return
        replica_set = self._replica_sets.get(record.namespace, owner["name"])
        owner_of_set = controller_of(replica_set) if replica_set is not None else None
        if owner_of_set is not None and owner_of_set["kind"] == "Deployment":
            self.queue.add(f"{record.namespace}/{owner_of_set['name']}")

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._deployments.by_key(key)
        if record is None:
            return
        obj = decoded_object(record)
        spec = obj["spec"].get("selector") or {}
        owner = Owner(_KIND, obj, label_selector_from_object(spec))
        if not spec.get("matchLabels") and not spec.get("matchExpressions"):
            message = "This deployment is selecting all pods. A non-empty selector is required."
            self._recorder.event(_KIND, obj, WARNING, "SelectingAll", message)
            return
        sets = await self._sets.claim(owner, lambda: self._can_adopt(owner))
        new = find_new_replica_set(obj, sets)
        rollout = _Rollout(owner, new, [one for one in sets if one is not new])
        rollout.status = mutable_copy(obj.get("status") or {})
        try:
            await self._rollout(rollout)
        except _RequeueError:
            self.queue.add(key)

    def _can_adopt(self, owner: Owner) -> bool:
        record = self._deployments.get(owner.namespace, owner.name)
        return record is not None and decoded_object(record)["metadata"]["uid"] == owner.uid

    async def _rollout(self, rollout: _Rollout) -> None:
        """Do the next step of a rollout."""
        obj = rollout.deployment
        if rollout.owner.deleted:
            await self._update_status(rollout)
            return
        self._check_paused_conditions(rollout)
        resized = any(
            desired_replicas(one) and annotations_of(one).get(DESIRED) not in (None, str(desired_replicas(obj)))
            for one in rollout.sets
        )
        if obj["spec"].get("paused") or resized:
            if rollout.new is not None:
                await self._get_new_replica_set(rollout)
            await self._scale(rollout)
            if obj["spec"].get("paused"):
                await self._clean_up(rollout)
            await self._update_status(rollout)
        elif is_rolling(obj):
            await self._rollout_rolling(rollout)
        else:
            await self._recreate(rollout)

    # --- new ReplicaSet

    async def _get_new_replica_set(self, rollout: _Rollout) -> None:
        """Create or update the new ReplicaSet."""
        obj, new = rollout.deployment, rollout.new
        revision = max(map(revision_of, rollout.old), default=0) + 1
        if new is None:
            new = await self._create_new_replica_set(rollout, revision)
            rollout.new = new
        else:
            annotations = set_annotations(obj, annotations_of(new), revision, True)
            min_ready = obj["spec"].get("minReadySeconds") or 0
            if annotations != annotations_of(new) or min_ready != (new["spec"].get("minReadySeconds") or 0):

                def change(live: JSONObject) -> None:
                    live["metadata"]["annotations"] = annotations
                    live["spec"]["minReadySeconds"] = min_ready

                rollout.new = new = await self._update_set(new, change)
            if deadline_of(obj) is not None and find_condition(rollout.status, "Progressing") is None:
                message = f'Found new replica set "{new["metadata"]["name"]}"'
                self._set(rollout, "Progressing", "True", "FoundNewReplicaSet", message)
        await self._set_deployment_revision(rollout, annotations_of(new).get(REVISION, ""))

    async def _create_new_replica_set(self, rollout: _Rollout, revision: int) -> JSONObject:
        """Create the ReplicaSet of the current template."""
        obj, owner = rollout.deployment, rollout.owner
        template = mutable_copy(obj["spec"]["template"])
        name_hash = template_hash(template, status_count(obj, "collisionCount"))
        template.setdefault("metadata", {}).setdefault("labels", {})[HASH_LABEL] = name_hash
        selector = mutable_copy(obj["spec"]["selector"])
        selector.setdefault("matchLabels", {})[HASH_LABEL] = name_hash
        size = new_replica_set_replicas(obj, rollout.sets, 0)
        new_set = {
            "metadata": {
                "name": f"{owner.name}-{name_hash}",
                "namespace": owner.namespace,
                "labels": dict(template["metadata"]["labels"]),
                "annotations": set_annotations(obj, {}, revision, False),
                "ownerReferences": [owner.reference()],
            },
            "spec": {
                "replicas": size,
                "minReadySeconds": obj["spec"].get("minReadySeconds") or 0,
                "selector": selector,
                "template": template,
            },
        }
        name = new_set["metadata"]["name"]
        try:
            new = decoded_object(await self.client.create("apps", "replicasets", new_set))
        except APIStatusError as error:
            if error.reason == "AlreadyExists":
                return await self._resolve_hash_collision(rollout, str(name))
            if not is_namespace_terminating_error(error):
                message = f'Failed to create new replica set "{name}": {error.message}'
                self._recorder.event(_KIND, obj, WARNING, "ReplicaSetCreateError", message)
                if deadline_of(obj) is not None:
                    self._set(rollout, "Progressing", "False", "ReplicaSetCreateError", message)
                    await self._write(rollout.owner, rollout.status)
            raise
        if size:
            message = f"Scaled up replica set {name} from 0 to {size}"
            self._recorder.event(_KIND, obj, NORMAL, "ScalingReplicaSet", message)
        if deadline_of(obj) is not None:
            self._set(rollout, "Progressing", "True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
        return new

    async def _resolve_hash_collision(self, rollout: _Rollout, name: str) -> JSONObject:
        """Return the existing ReplicaSet if the Deployment owns it. Otherwise increment collisionCount and requeue."""
        obj, owner = rollout.deployment, rollout.owner
        record = self._replica_sets.get(owner.namespace, name)
        if record is not None and (controller_of(record) or {}).get("uid") == owner.uid:
            existing = decoded_object(record)
            if same_template(existing["spec"]["template"], obj["spec"]["template"]):
                return existing
        rollout.status["collisionCount"] = status_count(obj, "collisionCount") + 1
        await self._write(owner, rollout.status)
        raise _RequeueError

    async def _set_deployment_revision(self, rollout: _Rollout, revision: str) -> None:
        if annotations_of(rollout.deployment).get(REVISION, "") == revision:
            return

        def change(live: JSONObject) -> None:
            live["metadata"].setdefault("annotations", {})[REVISION] = revision
            live["status"] = mutable_copy(rollout.status)

        owner = rollout.owner
        record = await self.client.update_status(
            "apps", "deployments", owner.namespace, owner.name, change, uid=owner.uid
        )
        rollout.owner = evolve(owner, obj=decoded_object(record))

    # --- scaling

    async def _update_set(self, one: JSONObject, change: Callable[[JSONObject], None]) -> JSONObject:
        meta = one["metadata"]
        record = await self.client.update(
            "apps", "replicasets", meta["namespace"], meta["name"], change, uid=meta["uid"]
        )
        return decoded_object(record)

    async def _scale_replica_set(self, rollout: _Rollout, one: JSONObject, size: int) -> bool:
        """
        Set the replicas of a ReplicaSet.

        @return: Whether they changed.
        """
        old_size, name = desired_replicas(one), one["metadata"]["name"]
        annotations = size_annotations(rollout.deployment)
        if old_size == size and annotations.items() <= annotations_of(one).items():
            return False

        def change(live: JSONObject) -> None:
            live["spec"]["replicas"] = size
            live["metadata"].setdefault("annotations", {}).update(annotations)

        updated = await self._update_set(one, change)
        if rollout.new is not None and rollout.new["metadata"]["uid"] == one["metadata"]["uid"]:
            rollout.new = updated
        rollout.old = [updated if old["metadata"]["uid"] == one["metadata"]["uid"] else old for old in rollout.old]
        if old_size == size:
            return False
        direction = "up" if size > old_size else "down"
        message = f"Scaled {direction} replica set {name} from {old_size} to {size}"
        self._recorder.event(_KIND, rollout.deployment, NORMAL, "ScalingReplicaSet", message)
        return True

    async def _scale(self, rollout: _Rollout) -> None:
        """Scale the ReplicaSets after the replicas of the Deployment changed, without a rollout step."""
        obj = rollout.deployment
        active = [one for one in rollout.sets if desired_replicas(one)]
        if len(active) <= 1:
            newest = rollout.new or max(rollout.old, key=revision_of, default=None)
            target = active[0] if active else newest
            if target is not None:
                await self._scale_replica_set(rollout, target, desired_replicas(obj))
            return
        new = rollout.new
        size = desired_replicas(obj)
        if (
            new is not None
            and desired_replicas(new) == size == status_count(new, "availableReplicas")
            and annotations_of(new).get(DESIRED) == str(size)
        ):
            for one in [one for one in rollout.old if desired_replicas(one)]:
                await self._scale_replica_set(rollout, one, 0)
        elif is_rolling(obj):
            sizes = proportions(obj, active)
            for one in active:
                await self._scale_replica_set(rollout, one, sizes[one["metadata"]["name"]])

    async def _rollout_rolling(self, rollout: _Rollout) -> None:
        await self._get_new_replica_set(rollout)
        assert rollout.new is not None, "created above"
        obj = rollout.deployment
        current = desired_replicas(rollout.new)
        if current > desired_replicas(obj):
            scaled = await self._scale_replica_set(rollout, rollout.new, desired_replicas(obj))
        else:
            scaled = await self._scale_replica_set(
                rollout, rollout.new, new_replica_set_replicas(obj, rollout.sets, current)
            )
        if not scaled:
            await self._reconcile_old_replica_sets(rollout)
        if is_complete(rollout.deployment, rollout.deployment.get("status") or {}):
            await self._clean_up(rollout)
        await self._update_status(rollout)

    async def _reconcile_old_replica_sets(self, rollout: _Rollout) -> bool:
        """Scale down old ReplicaSets as far as maxUnavailable allows, unhealthy pods first."""
        obj, new = rollout.deployment, rollout.new
        assert new is not None, "created by the caller"
        if not sum_desired_replicas(rollout.old):
            return False
        min_available = desired_replicas(obj) - max_surge_and_unavailable(obj)[1]
        max_scale_down = (
            sum_desired_replicas(rollout.sets)
            - min_available
            - (desired_replicas(new) - status_count(new, "availableReplicas"))
        )
        if max_scale_down <= 0:
            return False
        scaled_down = 0
        for one in sorted(rollout.old, key=age_order):
            unavailable = desired_replicas(one) - status_count(one, "availableReplicas")
            if desired_replicas(one) and unavailable > 0 and scaled_down < max_scale_down:
                count = min(max_scale_down - scaled_down, unavailable)
                scaled_down += count
                await self._scale_replica_set(rollout, one, desired_replicas(one) - count)
        spare = sum(status_count(one, "availableReplicas") for one in rollout.sets) - min_available
        for one in sorted(rollout.old, key=age_order):
            if desired_replicas(one) and spare > 0:
                count = min(desired_replicas(one), spare)
                spare -= count
                scaled_down += count
                await self._scale_replica_set(rollout, one, desired_replicas(one) - count)
        return scaled_down > 0

    async def _recreate(self, rollout: _Rollout) -> None:
        if rollout.new is not None:
            await self._get_new_replica_set(rollout)
        scaled = False
        for one in [one for one in rollout.old if desired_replicas(one)]:
            scaled = await self._scale_replica_set(rollout, one, 0) or scaled
        if scaled or self._old_pods_run(rollout):
            await self._update_status(rollout)
            return
        if rollout.new is None:
            await self._get_new_replica_set(rollout)
        assert rollout.new is not None, "created above"
        await self._scale_replica_set(rollout, rollout.new, desired_replicas(rollout.deployment))
        if is_complete(rollout.deployment, rollout.deployment.get("status") or {}):
            await self._clean_up(rollout)
        await self._update_status(rollout)

    def _old_pods_run(self, rollout: _Rollout) -> bool:
        return any(
            status_count(one, "replicas")
            or any(
                phase_of(decoded_object(pod)) not in ("Succeeded", "Failed")
                for pod in self._pods.by_owner.get(one["metadata"]["uid"])
            )
            for one in rollout.old
        )

    async def _clean_up(self, rollout: _Rollout) -> None:
        """Delete the oldest unused ReplicaSets beyond revisionHistoryLimit."""
        limit = rollout.deployment["spec"].get("revisionHistoryLimit")
        if limit is None or limit == 2**31 - 1:
            return
        candidates = sorted((one for one in rollout.old if "deletionTimestamp" not in one["metadata"]), key=revision_of)
        for one in candidates[: max(0, len(candidates) - limit)]:
            meta = one["metadata"]
            if (
                desired_replicas(one)
                or status_count(one, "replicas")
                or meta["generation"] > status_count(one, "observedGeneration")
            ):
                continue
            try:
                await self.client.delete("apps", "replicasets", meta["namespace"], meta["name"], uid=meta["uid"])
            except APIStatusError as error:
                if error.code not in (404, 409):
                    raise

    # --- status

    def _now(self) -> str:
        return format_time(self.clock.seconds())

    def _set(self, rollout: _Rollout, kind: str, holds: str, reason: str, message: str) -> None:
        set_condition(rollout.status, kind, holds, reason, message, self._now())

    def _check_paused_conditions(self, rollout: _Rollout) -> None:
        """Set the condition Progressing of a paused or resumed Deployment."""
        obj = rollout.deployment
        if deadline_of(obj) is None:
            return
        progress = find_condition(rollout.status, "Progressing") or {}
        if progress.get("reason") == TIMED_OUT_REASON:
            return
        paused, is_paused_condition = bool(obj["spec"].get("paused")), progress.get("reason") == "DeploymentPaused"
        if paused and not is_paused_condition:
            self._set(rollout, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")
        elif not paused and is_paused_condition:
            self._set(rollout, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed")

    async def _update_status(self, rollout: _Rollout) -> None:
        """Update the status."""
        obj, status = rollout.deployment, rollout.status
        old_status = mutable_copy(status)
        self._count(rollout)
        min_available = desired_replicas(obj) - max_surge_and_unavailable(obj)[1]
        if (status.get("availableReplicas") or 0) >= min_available:
            message = "Deployment has minimum availability."
            self._set(rollout, "Available", "True", "MinimumReplicasAvailable", message)
        else:
            message = "Deployment does not have minimum availability."
            self._set(rollout, "Available", "False", "MinimumReplicasUnavailable", message)
        if not rollout.owner.deleted and not obj["spec"].get("paused"):
            self._sync_progress_condition(rollout, old_status)
        self._sync_replica_failure(rollout)
        await self._write(rollout.owner, status)
        seconds_left = seconds_to_deadline(obj, status, self.clock.seconds())
        if seconds_left is not None:
            # Add a second, so that the deadline has passed then.
            self.queue.add_after(f"{rollout.owner.namespace}/{rollout.owner.name}", max(seconds_left, 0.0) + 1)

    def _count(self, rollout: _Rollout) -> None:
        status, sets = rollout.status, rollout.sets
        available = sum(status_count(one, "availableReplicas") for one in sets)
        counts = {
            "observedGeneration": rollout.deployment["metadata"].get("generation", 0),
            "replicas": sum(status_count(one, "replicas") for one in sets),
            "updatedReplicas": status_count(rollout.new, "replicas") if rollout.new is not None else 0,
            "readyReplicas": sum(status_count(one, "readyReplicas") for one in sets),
            "availableReplicas": available,
            "unavailableReplicas": max(0, sum_desired_replicas(sets) - available),
        }
        for name, value in counts.items():
            if value:
                status[name] = value
            else:
                status.pop(name, None)
        status["terminatingReplicas"] = sum(status_count(one, "terminatingReplicas") for one in sets)

    def _sync_progress_condition(self, rollout: _Rollout, old_status: JSONObject) -> None:
        """Update the condition Progressing of a rollout (Go: syncRolloutStatus)."""
        obj, status = rollout.deployment, rollout.status
        if deadline_of(obj) is None:
            drop_condition(status, "Progressing")
            return
        progress = find_condition(status, "Progressing")
        is_done = (status.get("replicas") or 0) == (status.get("updatedReplicas") or 0)
        if is_done and progress is not None and progress.get("reason") == NEW_RS_AVAILABLE_REASON:
            return
        subject = f'Deployment "{rollout.owner.name}"'
        if rollout.new is not None:
            subject = f'ReplicaSet "{rollout.new["metadata"]["name"]}"'
        seconds_left = seconds_to_deadline(obj, status, self.clock.seconds())
        if is_complete(obj, status):
            self._set(
                rollout, "Progressing", "True", NEW_RS_AVAILABLE_REASON, f"{subject} has successfully progressed."
            )
        elif is_progressing(old_status, status):
            if progress is not None:
                # Progress restarts the deadline, even if the reason is the same.
                drop_condition(status, "Progressing")
            self._set(rollout, "Progressing", "True", "ReplicaSetUpdated", f"{subject} is progressing.")
            if progress is not None and progress["status"] == "True":
                new_progress = find_condition(status, "Progressing")
                assert new_progress is not None, "set above"
                new_progress["lastTransitionTime"] = progress["lastTransitionTime"]
        elif seconds_left is not None and seconds_left < 0:
            self._set(rollout, "Progressing", "False", TIMED_OUT_REASON, f"{subject} has timed out progressing.")

    def _sync_replica_failure(self, rollout: _Rollout) -> None:
        failure = next(
            (
                condition
                for one in ([rollout.new] if rollout.new is not None else []) + rollout.old
                if (condition := find_condition(one.get("status") or {}, FAILURE)) is not None
            ),
            None,
        )
        if failure is None:
            drop_condition(rollout.status, FAILURE)
        else:
            reason, message = failure.get("reason", ""), failure.get("message", "")
            self._set(rollout, FAILURE, failure["status"], reason, message)

    async def _write(self, owner: Owner, status: JSONObject) -> None:
        def change(live: JSONObject) -> None:
            live["status"] = mutable_copy(status)

        await self.client.update_status("apps", "deployments", owner.namespace, owner.name, change, uid=owner.uid)
