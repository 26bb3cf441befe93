"""
The Job controller: runs pods until a number of them has succeeded, and counts each terminated pod once.

Pods have a finalizer until they are counted: first their uids are added to the status of the job, then the finalizers
are removed, then the uids are replaced by counters. An interrupted sync is continued by the next one.

@see: kubernetes, C{pkg/controller/job/job_controller.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from ...api.errors import APIStatusError
from ...api.frozen import mutable_copy
from ...api.jsontypes import JSONValue
from ...api.record import Record
from ...api.resource import (
    GroupVersionKind,
    JSONObject,
)
from ...api.selectors import label_selector_from_object
from ...api.times import (
    format_time,
    seconds_since_epoch,
)
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..machinery.client import is_namespace_terminating_error
from ..machinery.context import ControllerContext
from ..machinery.controller import Controller
from ..machinery.events import (
    NORMAL,
    WARNING,
)
from ..machinery.metadata import controller_of
from ..machinery.queue import WorkQueue
from .jobindexes import (
    failures_of,
    format_indexes,
    ignored_of,
    index_of,
    parse_indexes,
    pending,
    success_rule,
    with_index,
)
from .jobpolicies import (
    TRACKING_FINALIZER,
    Backoff,
    delay_after,
    finished_at,
    has_failed,
    is_tracked,
    match_pod_failure_policy,
    replaces_failed_only,
    restarts_exceed,
)
from .pods import (
    BURST,
    ControllerRefManager,
    Owner,
    PodControl,
    deletion_rank,
    from_template,
    is_active,
    is_ready,
    phase_of,
)

if TYPE_CHECKING:
    from ..machinery.informer import Informer

JOB: Final = GroupVersionKind("batch", "v1", "Job")
_MANAGER: Final = "kubernetes.io/job-controller"
#: Maximum number of uids in uncountedTerminatedPods.
_MAX_UNCOUNTED: Final = 500


def find_true_condition(status: JSONObject, kind: str) -> JSONObject | None:
    """Return the condition of a type if its status is True, or L{None}."""
    for one in status.get("conditions") or ():
        if one["type"] == kind and one["status"] == "True":
            condition: JSONObject = one
            return condition
    return None


def finished_type(job: JSONObject) -> str:
    """Return C{"Complete"} or C{"Failed"}; C{""} if the job has not finished."""
    status = job.get("status") or {}
    return next((kind for kind in ("Complete", "Failed") if find_true_condition(status, kind)), "")


class JobController(Controller[str]):
    """Runs jobs. The queue contains keys of jobs."""

    name: ClassVar[str] = "job-controller"
    workers: ClassVar[int] = 5

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.backoffs: dict[str, Backoff] = {}
        self._orphan_pods: WorkQueue[str] = WorkQueue(self.clock, self._sync_orphan_pod, workers=2)

    def register_handlers(self) -> None:
        """Register handlers for jobs and pods."""
        self._jobs: Informer = self.watch("batch", "jobs", self._job_changed)
        self._informer = self.context.informer("", "pods")
        self.pods = ControllerRefManager(self._informer, self.client, "", "pods")
        self.watch("", "pods", self._pod_changed)
        self.control = PodControl(self.context, self.client, self.name)

    def _handlers_ready(self) -> None:
        super()._handlers_ready()
        if not self.stopped:
            self._orphan_pods.start()

    async def stop(self) -> None:
        """See L{Controller.stop}."""
        await self._orphan_pods.stop()
        await super().stop()

    def _job_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        self.queue.add(record.key)
        if event_type == DELETED:
            for pod in self.pods.by_owner.get(decoded_object(record)["metadata"]["uid"]):
                self._orphan_pods.add(pod.key)

    def _pod_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        owners = [one for one in (controller_of(record), controller_of(old) if old is not None else None) if one]
        job_keys = {one["uid"]: f"{record.namespace}/{one['name']}" for one in owners if one["kind"] == "Job"}
        for uid, key in job_keys.items():
            self.pods.enqueue_owner(self.queue, key, event_type, uid)
        if (
            event_type != DELETED
            and TRACKING_FINALIZER.encode() in record.item
            and not any(map(self._jobs.by_key, job_keys.values()))
        ):
            self._orphan_pods.add(record.key)
        if not owners and record.labels:
            # A job whose selector matches may adopt it.
            for candidate in self._jobs.list(record.namespace):
                if label_selector_from_object(decoded_object(candidate)["spec"].get("selector")).matches(record.labels):
                    self.queue.add(candidate.key)

    # --- orphan pods

    async def _sync_orphan_pod(self, key: str) -> None:
        try:
            record = self._informer.by_key(key)
            if record is None:
                return
            pod, owner = decoded_object(record), controller_of(record)
            if owner is not None and owner["kind"] == "Job":
                job = self._jobs.get_decoded(record.namespace, owner["name"])
                if job is not None and job["metadata"]["uid"] == owner["uid"] and not finished_type(job):
                    return
            await self.remove_tracking_finalizer(pod)
        except Exception as error:
            if not self._orphan_pods.num_requeues(key) and not self.stopped:
                self._log.warn("{name}: {key}: {error}", name=self.name, key=key, error=error)
            self._orphan_pods.add_rate_limited(key)
        else:
            self._orphan_pods.forget(key)

    async def remove_tracking_finalizer(self, pod: JSONObject) -> None:
        """Remove the tracking finalizer from a pod."""
        if not is_tracked(pod):
            return
        meta = pod["metadata"]

        def change(obj: JSONObject) -> None:
            remaining = [one for one in obj["metadata"].get("finalizers") or () if one != TRACKING_FINALIZER]
            obj["metadata"].pop("finalizers", None)
            if remaining:
                obj["metadata"]["finalizers"] = remaining

        try:
            await self.client.update("", "pods", meta["namespace"], meta["name"], change, uid=meta["uid"])
        except APIStatusError as error:
            if error.code not in (404, 409):
                raise

    async def add_tracking_finalizer(self, pod: JSONObject) -> None:
        """Add the tracking finalizer to an adopted pod."""
        meta = pod["metadata"]

        def change(obj: JSONObject) -> None:
            finalizers = obj["metadata"].setdefault("finalizers", [])
            if TRACKING_FINALIZER not in finalizers and "deletionTimestamp" not in obj["metadata"]:
                finalizers.append(TRACKING_FINALIZER)

        await self.client.update("", "pods", meta["namespace"], meta["name"], change, uid=meta["uid"])

    # --- jobs

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        job = self._get_job(key)
        if job is None:
            self.backoffs.pop(key, None)
            return
        if (job["spec"].get("managedBy") or _MANAGER) != _MANAGER:
            return
        if finished_type(job):
            self.backoffs.pop(key, None)
            for record in self.pods.by_owner.get(job["metadata"]["uid"]):
                if TRACKING_FINALIZER.encode() in record.item:
                    self._orphan_pods.add(record.key)
            return
        owner = Owner(JOB, job, label_selector_from_object(job["spec"].get("selector")))
        await self.pods.claim(owner, lambda: self._exists(key, owner.uid))
        for pod in self.pods.list_owned(owner):
            if is_active(pod) and not is_tracked(pod):
                await self.add_tracking_finalizer(pod)
        await _SyncContext(self, key, owner).run()

    def _get_job(self, key: str) -> JSONObject | None:
        record = self._jobs.by_key(key)
        return None if record is None else decoded_object(record)

    def _exists(self, key: str, uid: str) -> bool:
        job = self._get_job(key)
        return job is not None and job["metadata"]["uid"] == uid


class _SyncContext:
    """The state of one sync of a job (Go: syncJobCtx)."""

    def __init__(self, controller: JobController, key: str, owner: Owner) -> None:
        self._controller = controller
        self._control = controller.control
        self._key = key
        self._owner = owner
        self._job = owner.obj
        self._spec: JSONObject = owner.obj["spec"]
        self._now = controller.clock.seconds()
        self._now_text = format_time(self._now)
        self._status: JSONObject = mutable_copy(self._job.get("status") or {})
        self._uncounted: JSONObject = self._status.setdefault("uncountedTerminatedPods", {})
        self._pods = controller.pods.list_owned(owner)
        self._active = [pod for pod in self._pods if is_active(pod)]
        self._ready = sum(map(is_ready, self._active))
        self._terminating = sum(
            "deletionTimestamp" in pod["metadata"] and phase_of(pod) not in ("Succeeded", "Failed")
            for pod in self._pods
        )
        self._count = len(self._active)
        self._indexed = self._spec.get("completionMode") == "Indexed"
        self._completions: int | None = self._spec.get("completions")
        self._per_index: int | None = self._spec.get("backoffLimitPerIndex")
        self._done: set[int] = set()
        self._before: set[int] = set()
        self._failed_indexes: set[int] | None = None
        #: The last failed pod of each index, kept until it is replaced, since it has the number of failures.
        self._delayed_deletion_per_index: dict[int, JSONObject] = {}
        self._finish: JSONObject | None = None
        self._error: Exception | None = None

    # --- phases

    async def run(self) -> None:
        self._count_terminated()
        status = self._status
        suspended = bool(self._spec.get("suspend"))
        if not status.get("startTime") and not suspended:
            status["startTime"] = self._now_text
        self._check_finished(suspended)
        if self._indexed:
            self._check_indexes()
        if self._finish is not None:
            await self._delete_active()
        else:
            if not self._owner.deleted:
                await self._manage(suspended)
            self._check_success(suspended)
        status["active"] = self._count
        status["ready"] = self._ready
        status["terminating"] = self._terminating
        await self._track_and_remove_finalizers()
        if self._error is not None:
            raise self._error

    def _uids(self, phase: str) -> list[str]:
        return list(self._uncounted.get(phase) or ())

    def _countable(self, pod: JSONObject) -> bool:
        """Return whether a pod has the tracking finalizer and a valid index."""
        if not is_tracked(pod):
            return False
        return not self._indexed or self._valid(index_of(pod))

    def _valid(self, index: int | None) -> bool:
        return index is not None and index < (self._completions or 0)

    def _count_terminated(self) -> None:
        """Count the pods that terminated since the last sync."""
        uncounted = {*self._uids("succeeded"), *self._uids("failed")}
        new = [pod for pod in self._pods if self._countable(pod) and pod["metadata"]["uid"] not in uncounted]
        succeeded = [pod for pod in new if phase_of(pod) == "Succeeded"]
        failed = [pod for pod in new if has_failed(pod, self._job)]
        policy = self._spec.get("podFailurePolicy")
        status = self._status
        self._succeeded = (status.get("succeeded") or 0) + len(succeeded) + len(self._uids("succeeded"))
        counted = sum(match_pod_failure_policy(policy, pod).counts for pod in failed)
        self._failed = (status.get("failed") or 0) + counted + len(self._uids("failed"))
        self._backoff = self._controller.backoffs.get(self._key, Backoff()).after(succeeded, failed, self._now)

    def _check_finished(self, suspended: bool) -> None:
        """Set the finish condition if the job as a whole has succeeded or failed."""
        self._finish = find_true_condition(self._status, "SuccessCriteriaMet") or find_true_condition(
            self._status, "FailureTarget"
        )
        if self._finish is not None:
            return
        policy = self._spec.get("podFailurePolicy")
        for pod in self._pods if policy is not None else ():
            message = match_pod_failure_policy(policy, pod).message if has_failed(pod, self._job) else ""
            if message:
                self._fail("PodFailurePolicy", message)
                return
        if self._failed > self._spec["backoffLimit"] or restarts_exceed(self._job, self._pods):
            self._fail("BackoffLimitExceeded", "Job has reached the specified backoff limit")
            return
        limit = self._spec.get("activeDeadlineSeconds")
        if limit is not None and not suspended:
            remaining = seconds_since_epoch(self._status["startTime"]) + limit - self._now
            if remaining <= 0:
                self._fail("DeadlineExceeded", "Job was active longer than specified deadline")
            else:
                self._controller.queue.add_after(self._key, remaining)

    def _check_indexes(self) -> None:
        """Set the finish condition from the completed and failed indexes."""
        completions = self._completions or 0
        self._before = parse_indexes(self._status.get("completedIndexes"), completions)
        new = [pod for pod in self._pods if self._countable(pod)]
        done = {index_of(pod) for pod in new if phase_of(pod) == "Succeeded"}
        self._done = self._before | {index for index in done if index is not None}
        self._succeeded = len(self._done)
        if self._per_index is not None:
            failed = parse_indexes(self._status.get("failedIndexes"), completions)
            failed |= {index for pod in new if (index := index_of(pod)) is not None and self._index_failed(pod)}
            self._failed_indexes = failed
            if self._finish is None:
                max_failed = self._spec.get("maxFailedIndexes")
                if max_failed is not None and len(failed) > max_failed:
                    message = "Job has exceeded the specified maximal number of failed indexes"
                    self._fail("MaxFailedIndexesExceeded", message)
                elif failed and len(failed) + len(self._done) >= completions:
                    self._fail("FailedIndexes", "Job has failed indexes")
            self._delay_deletion(new)
        if self._finish is None:
            success_message = success_rule(self._spec.get("successPolicy"), self._done, completions)
            if success_message is not None:
                self._finish = self._condition("SuccessCriteriaMet", "SuccessPolicy", success_message)

    def _index_failed(self, pod: JSONObject) -> bool:
        if not has_failed(pod, self._job):
            return False
        result = match_pod_failure_policy(self._spec.get("podFailurePolicy"), pod)
        return result.action == "FailIndex" or (result.counts and failures_of(pod) >= (self._per_index or 0))

    def _delay_deletion(self, pods: Sequence[JSONObject]) -> None:
        finished = self._done | (self._failed_indexes or set()) | {index_of(pod) for pod in self._active}
        for pod in pods:
            index = index_of(pod)
            if index is None or index in finished or not has_failed(pod, self._job):
                continue
            previous = self._delayed_deletion_per_index.get(index)
            if previous is None or self._failure_order(pod) >= self._failure_order(previous):
                self._delayed_deletion_per_index[index] = pod

    def _failure_order(self, pod: JSONObject) -> tuple[int, float]:
        return failures_of(pod) + ignored_of(pod), finished_at(pod, self._now)

    # --- conditions

    def _condition(self, kind: str, reason: str, message: str, status: str = "True") -> JSONObject:
        base = {"type": kind, "status": status, "lastProbeTime": self._now_text, "lastTransitionTime": self._now_text}
        return {**base, "reason": reason, "message": message}

    def _fail(self, reason: str, message: str) -> None:
        self._finish = self._condition("FailureTarget", reason, message)

    def _set_condition(self, new: JSONObject) -> bool:
        """Set a condition in the status, and return whether it changed. A missing condition is not set to False."""
        conditions = self._status.setdefault("conditions", [])
        for number, old in enumerate(conditions):
            if old["type"] == new["type"]:
                if all(old.get(name) == new[name] for name in ("status", "reason", "message")):
                    return False
                conditions[number] = new
                return True
        if new["status"] == "True":
            conditions.append(new)
            return True
        return False

    def _check_success(self, suspended: bool) -> None:
        if self._completions is None:
            complete = self._succeeded > 0 and self._count == 0
        else:
            complete = self._succeeded >= self._completions and self._count == 0
        if complete:
            message = "Reached expected number of succeeded pods"
            self._finish = self._condition("SuccessCriteriaMet", "CompletionsReached", message)
        elif self._owner.deleted:
            return
        elif suspended:
            if self._set_condition(self._condition("Suspended", "JobSuspended", "Job suspended")):
                self._control.event(self._owner, NORMAL, "Suspended", "Job suspended")
        elif self._set_condition(self._condition("Suspended", "JobResumed", "Job resumed", "False")):
            self._control.event(self._owner, NORMAL, "Resumed", "Job resumed")
            # The active deadline starts when the job is resumed.
            self._status["startTime"] = self._now_text

    # --- pods

    async def _delete_active(self) -> None:
        """Delete the active pods of a finished job. The finished condition is written after they have terminated."""
        for pod in self._active:
            try:
                await self._control.delete(self._owner, pod)
            except Exception as error:
                self._error = error
                continue
            self._count_deleted(pod)
        if self._count:
            self._finish = None

    def _count_deleted(self, pod: JSONObject) -> None:
        self._count -= 1
        self._terminating += 1
        self._ready -= is_ready(pod)

    async def _delete(self, pods: Sequence[JSONObject]) -> None:
        """Delete pods without counting them."""
        for pod in pods[:BURST]:
            try:
                await self._controller.remove_tracking_finalizer(pod)
                await self._control.delete(self._owner, pod)
            except Exception as error:
                self._error = error
                return
            self._count_deleted(pod)
            await self._controller.yield_to_reactor()

    async def _manage(self, suspended: bool) -> None:
        """Create missing pods, or delete surplus ones."""
        if suspended:
            await self._delete(self._active)
            return
        parallelism: int = self._spec["parallelism"]
        if self._completions is None:
            desired = self._count if self._succeeded else parallelism
        else:
            desired = max(0, min(self._completions - self._succeeded, parallelism))
        surplus = self._surplus(max(0, self._count - desired))
        if surplus:
            await self._delete(surplus)
            return
        missing = desired - self._count - (self._terminating if replaces_failed_only(self._job) else 0)
        if missing <= 0:
            return
        wait = self._backoff.wait(self._now) if self._per_index is None else 0.0
        if wait:
            self._controller.queue.add_after(self._key, wait)
            return
        missing = min(missing, BURST)
        await self._create(self._indexes(missing) if self._indexed else [None] * missing)

    def _surplus(self, count: int) -> list[JSONObject]:
        """Return the active pods to delete, including duplicates of an index."""
        duplicates: list[JSONObject] = []
        ranked = sorted(self._active, key=lambda pod: deletion_rank(pod, 0, self._now))
        candidates = ranked
        if self._indexed:
            candidates = []
            taken: set[int | None] = set()
            for pod in reversed(ranked):
                index = index_of(pod)
                if not self._valid(index) or index in taken:
                    duplicates.append(pod)
                else:
                    taken.add(index)
                    candidates.insert(0, pod)
        return duplicates + candidates[: max(0, count - len(duplicates))]

    def _indexes(self, count: int) -> list[int | None]:
        """Return the next indexes to create pods for whose backoff has passed."""
        taken = self._done | (self._failed_indexes or set())
        taken |= {index for pod in self._active if (index := index_of(pod)) is not None}
        if replaces_failed_only(self._job):
            terminating = [
                pod for pod in self._pods if "deletionTimestamp" in pod["metadata"] and not has_failed(pod, self._job)
            ]
            taken |= {index for pod in terminating if (index := index_of(pod)) is not None}
        ready: list[int | None] = []
        waits = []
        for index in pending(taken, self._completions or 0, count):
            failed_pod = self._delayed_deletion_per_index.get(index)
            wait = 0.0
            if failed_pod is not None:
                wait = (
                    finished_at(failed_pod, self._now)
                    + delay_after(failures_of(failed_pod) + ignored_of(failed_pod) + 1)
                    - self._now
                )
            if wait > 0:
                waits.append(wait)
            else:
                ready.append(index)
        if waits:
            self._controller.queue.add_after(self._key, min(waits))
        return ready

    async def _create(self, indexes: Sequence[int | None]) -> None:
        owner, template = self._owner, self._spec["template"]
        for index in indexes:
            pod = from_template(template, owner.reference(), f"{owner.name}-", owner.namespace)
            finalizers = list(pod["metadata"].get("finalizers") or ())
            pod["metadata"]["finalizers"] = (
                finalizers if TRACKING_FINALIZER in finalizers else [*finalizers, TRACKING_FINALIZER]
            )
            if index is not None:
                with_index(pod, owner.name, index, self._failures(index))
            error = await self._control.create(owner, pod)
            if error is not None:
                if not is_namespace_terminating_error(error):
                    self._error = error
                return
            self._count += 1
            await self._controller.yield_to_reactor()

    def _failures(self, index: int) -> tuple[int, int] | None:
        if self._per_index is None:
            return None
        failed_pod = self._delayed_deletion_per_index.get(index)
        if failed_pod is None:
            return 0, 0
        counts = match_pod_failure_policy(self._spec.get("podFailurePolicy"), failed_pod).counts
        return failures_of(failed_pod) + counts, ignored_of(failed_pod) + (not counts)

    # --- counting

    async def _track_and_remove_finalizers(self) -> None:
        """Count each terminated pod once, and remove the tracking finalizers."""
        status = self._status
        untracked = self._collect_uncounted()
        if self._indexed:
            status["succeeded"] = len(self._done)
            _set(status, "completedIndexes", format_indexes(self._done))
            if self._failed_indexes is not None:
                status["failedIndexes"] = format_indexes(self._failed_indexes)
        finish = self._finish
        if finish is not None:
            # The interim condition is written before the pods can be removed.
            if find_true_condition(status, finish["type"]) is None:
                self._set_condition(finish)
            kind = "Complete" if finish["type"] == "SuccessCriteriaMet" else "Failed"
            finish = self._condition(kind, finish.get("reason") or "", finish.get("message") or "")
        await self._write()
        self._controller.backoffs[self._key] = self._backoff
        for pod in untracked:
            await self._controller.remove_tracking_finalizer(pod)
            await self._controller.yield_to_reactor()
        self._flush_uncounted({pod["metadata"]["uid"] for pod in untracked})
        finished = False
        if finish is not None and not any(self._uncounted.values()) and not self._terminating:
            finished = self._set_condition(finish)
            if finish["type"] == "Complete":
                status["completionTime"] = self._now_text
        await self._write()
        if finished and finish is not None:
            self._record_job_finished(finish)

    def _collect_uncounted(self) -> list[JSONObject]:
        """
        Add terminated pods to uncountedTerminatedPods, and return the pods whose finalizer can be removed after that.
        """
        tracked = {pod["metadata"]["uid"] for pod in self._pods if is_tracked(pod)}
        self._flush_uncounted({*self._uids("succeeded"), *self._uids("failed")} - tracked)
        failed_job = self._finish is not None and self._finish["type"] == "FailureTarget"
        policy = self._spec.get("podFailurePolicy")
        uncounted = {phase: set(self._uids(phase)) for phase in ("succeeded", "failed")}
        finished: list[JSONObject] = []
        for pod in self._pods:
            failed = has_failed(pod, self._job)
            if not is_tracked(pod) or not self._can_remove_finalizer(pod, failed):
                continue
            if sum(map(len, uncounted.values())) >= _MAX_UNCOUNTED:
                # The next sync counts the remaining pods.
                self._finish = None
                self._controller.queue.add(self._key)
                break
            finished.append(pod)
            uid = pod["metadata"]["uid"]
            if phase_of(pod) == "Succeeded":
                if not self._indexed and uid not in uncounted["failed"]:
                    self._add_uncounted("succeeded", uid, uncounted)
            elif (
                (failed or failed_job)
                and (not self._indexed or self._valid(index_of(pod)))
                and match_pod_failure_policy(policy, pod).counts
            ):
                self._add_uncounted("failed", uid, uncounted)
        return finished

    def _add_uncounted(self, phase: str, uid: str, uncounted: dict[str, set[str]]) -> None:
        if uid not in uncounted[phase]:
            uncounted[phase].add(uid)
            self._uncounted.setdefault(phase, []).append(uid)

    def _can_remove_finalizer(self, pod: JSONObject, failed: bool) -> bool:
        if self._owner.deleted or self._finish is not None or phase_of(pod) == "Succeeded":
            return True
        index = index_of(pod)
        failed_pod = self._delayed_deletion_per_index.get(index) if index is not None else None
        return failed and (failed_pod is None or failed_pod["metadata"]["uid"] != pod["metadata"]["uid"])

    def _flush_uncounted(self, uids: set[str]) -> None:
        """Replace the uids of pods without finalizer by counters."""
        for phase in ("succeeded", "failed"):
            uids_before = self._uids(phase)
            remaining = [uid for uid in uids_before if uid not in uids]
            if len(remaining) < len(uids_before):
                self._status[phase] = (self._status.get(phase) or 0) + len(uids_before) - len(remaining)
            self._uncounted.pop(phase, None)
            if remaining:
                self._uncounted[phase] = remaining

    def _record_job_finished(self, finish: JSONObject) -> None:
        if finish["type"] == "Failed":
            self._control.event(self._owner, WARNING, finish["reason"], finish["message"])
            return
        if self._completions is not None and (self._status.get("succeeded") or 0) > self._completions:
            message = "Too many succeeded pods running after completion count reached"
            self._control.event(self._owner, WARNING, "TooManySucceededPods", message)
        self._control.event(self._owner, NORMAL, "Completed", "Job completed")

    async def _write(self) -> None:
        status = self._status
        for name in ("active", "succeeded", "failed"):
            _set(status, name, status.get(name))

        def change(obj: JSONObject) -> None:
            obj["status"] = mutable_copy(status)

        owner = self._owner
        await self._controller.client.update_status("batch", "jobs", owner.namespace, owner.name, change, uid=owner.uid)


def _set(status: JSONObject, name: str, value: JSONValue) -> None:
    """Set a field, or remove it if the value is empty."""
    if value:
        status[name] = value
    else:
        status.pop(name, None)
