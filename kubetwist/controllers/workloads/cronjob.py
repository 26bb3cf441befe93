"""
The CronJob controller: creates a job at each time of a schedule.

@see: kubernetes, C{pkg/controller/cronjob/cronjob_controllerv2.go}, C{utils.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import ClassVar, Final

from ...api.errors import APIStatusError
from ...api.frozen import mutable_copy
from ...api.go.quote import quoted
from ...api.record import Record
from ...api.resource import (
    GroupVersionKind,
    JSONObject,
)
from ...api.times import (
    format_time,
    seconds_since_epoch,
)
from ...registry.batch.schedule import CronError
from ...registry.stores import decoded_object
from ..machinery.client import is_namespace_terminating_error
from ..machinery.controller import Controller
from ..machinery.events import (
    NORMAL,
    WARNING,
)
from ..machinery.metadata import (
    controller_of,
    controller_reference,
    controller_uid,
)
from .job import (
    find_true_condition,
    finished_type,
)
from .schedules import (
    CronSchedule,
    is_known_zone,
)

_KIND: Final = GroupVersionKind("batch", "v1", "CronJob")
_TIMESTAMP: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
#: Seconds after a scheduled time until the job is created.
_START_DELAY: Final = 0.1


class CronJobController(Controller[str]):
    """Creates jobs at the scheduled times. The queue contains keys of CronJobs."""

    name: ClassVar[str] = "cronjob-controller"
    workers: ClassVar[int] = 5

    def register_handlers(self) -> None:
        """Register handlers for CronJobs and jobs."""
        self._crons = self.watch("batch", "cronjobs")
        self._jobs = self.watch("batch", "jobs", self._job_changed)
        self._by_owner = self._jobs.index("controller", controller_uid)
        self.recorder = self.context.recorder(self.name)

    def _job_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        owner = controller_of(record)
        if owner is not None and owner["kind"] == "CronJob":
            self.queue.add(f"{record.namespace}/{owner['name']}")

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._crons.by_key(key)
        if record is None:
            return
        cron = decoded_object(record)
        jobs = [decoded_object(job) for job in self._by_owner.get(cron["metadata"]["uid"])]
        context = _SyncContext(self, key, cron)
        try:
            await context.run(jobs)
        finally:
            # The status is written even if something failed.
            await context.write()

    def job(self, namespace: str, name: str) -> JSONObject | None:
        """Return the current state of a job, or L{None}."""
        return self._jobs.get_decoded(namespace, name)


class _SyncContext:
    """State of one sync of a CronJob."""

    def __init__(self, controller: CronJobController, key: str, cron: JSONObject) -> None:
        self._controller = controller
        self._key = key
        self._cron = cron
        self._spec: JSONObject = cron["spec"]
        self._meta: JSONObject = cron["metadata"]
        self._status: JSONObject = mutable_copy(cron.get("status") or {})
        self._active: list[JSONObject] = self._status.pop("active", None) or []
        self._now = controller.clock.seconds()

    def _event(self, kind: str, reason: str, message: str) -> None:
        self._controller.recorder.event(_KIND, self._cron, kind, reason, message)

    async def run(self, jobs: Sequence[JSONObject]) -> None:
        await self._clean_up_jobs(jobs)
        self._sync_active_jobs(jobs)
        if "deletionTimestamp" in self._meta:
            return
        zone = self._spec.get("timeZone")
        if zone is not None and not is_known_zone(zone):
            self._event(WARNING, "UnknownTimeZone", f"invalid timeZone: {quoted(zone)}: unknown time zone {zone}")
            return
        if self._spec.get("suspend"):
            return
        schedule = self._spec["schedule"]
        if "TZ" in schedule:
            reason = (
                "is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
            )
            message = f"CRON_TZ or TZ used in schedule {quoted(schedule)} {reason} for more details"
            self._event(WARNING, "UnsupportedSchedule", message)
        try:
            times = CronSchedule(schedule, zone)
        except CronError as error:
            self._event(WARNING, "UnparseableSchedule", f"unparseable schedule: {quoted(schedule)} : {error}")
            return
        due = self._most_recent_schedule_time(times)
        if due is not None and self._should_start(due):
            await self._start(due)
        next_time = times.next_after(self._earliest_time(), self._now)
        if next_time is not None:
            self._controller.queue.add_after(self._key, next_time + _START_DELAY - self._now)

    # --- existing jobs

    async def _clean_up_jobs(self, jobs: Sequence[JSONObject]) -> None:
        """Delete the oldest finished jobs above the history limits."""
        for kind, field in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            limit = self._spec.get(field)
            finished = [
                job for job in jobs if finished_type(job) == kind and "deletionTimestamp" not in job["metadata"]
            ]
            if limit is None or len(finished) <= limit:
                continue
            finished.sort(key=lambda job: (job["status"].get("startTime") or "9", job["metadata"]["name"]))
            for job in finished[: len(finished) - limit]:
                await self._delete(job)

    async def _delete(self, job: JSONObject) -> None:
        meta = job["metadata"]
        try:
            await self._controller.client.delete(
                "batch", "jobs", meta["namespace"], meta["name"], uid=meta["uid"], propagation="Background"
            )
        except APIStatusError as error:
            if error.code != 404:
                self._event(WARNING, "FailedDelete", f"Deleted job: {error.message}")
                raise
        self._forget(meta["uid"])
        self._event(NORMAL, "SuccessfulDelete", f"Deleted job {meta['name']}")

    def _forget(self, uid: str) -> None:
        self._active = [one for one in self._active if one.get("uid") != uid]

    def _is_active(self, uid: str) -> bool:
        return any(one.get("uid") == uid for one in self._active)

    def _sync_active_jobs(self, jobs: Sequence[JSONObject]) -> None:
        """Update the list of active jobs in the status."""
        for job in jobs:
            meta, kind = job["metadata"], finished_type(job)
            if not kind:
                if not self._is_active(meta["uid"]) and not self._is_next(job):
                    message = f"Saw a job that the controller did not create or forgot: {meta['name']}"
                    self._event(WARNING, "UnexpectedJob", message)
                continue
            if self._is_active(meta["uid"]):
                self._forget(meta["uid"])
                self._event(NORMAL, "SawCompletedJob", f"Saw completed job: {meta['name']}, condition: {kind}")
            completed_at = job["status"].get("completionTime")
            if find_true_condition(job["status"], "Complete") and completed_at:
                # All times have the same length, so text comparison orders them.
                last = self._status.get("lastSuccessfulTime")
                self._status["lastSuccessfulTime"] = max(completed_at, last) if last else completed_at
        uids = {job["metadata"]["uid"] for job in jobs}
        for one in list(self._active):
            if one.get("uid") not in uids:
                self._forget(one.get("uid") or "")
                self._event(NORMAL, "MissingJob", f"Active job went missing: {one.get('name')}")

    def _is_next(self, job: JSONObject) -> bool:
        """Return whether an earlier sync created the job but failed to write the status."""
        return _TIMESTAMP in (job["metadata"].get("annotations") or {})

    # --- next job

    def _earliest_time(self) -> float:
        """Return the last scheduled time, or the creation time of the CronJob."""
        return seconds_since_epoch(self._status.get("lastScheduleTime") or self._meta["creationTimestamp"])

    def _most_recent_schedule_time(self, times: CronSchedule) -> float | None:
        """Return the last scheduled time for which no job was created, or L{None}."""
        since = self._earliest_time()
        deadline = self._spec.get("startingDeadlineSeconds")
        if deadline is not None:
            since = max(since, self._now - deadline)
        due, too_many = times.most_recent(since, self._now)
        if too_many:
            message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._event(WARNING, "TooManyMissedTimes", message)
        return due

    def _name(self, due: float) -> str:
        return f"{self._meta['name']}-{int(due) // 60}"

    def _should_start(self, due: float) -> bool:
        deadline = self._spec.get("startingDeadlineSeconds")
        if deadline is not None and due + deadline < self._now:
            due_text = format_datetime(datetime.fromtimestamp(due, UTC))
            self._event(WARNING, "MissSchedule", f"Missed scheduled time to start a job: {due_text}")
            return False
        if self._status.get("lastScheduleTime") == format_time(due):
            return False
        if any(one.get("name") == self._name(due) for one in self._active):
            return False
        if self._spec.get("concurrencyPolicy") == "Forbid" and self._active:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._event(NORMAL, "JobAlreadyActive", message)
            return False
        return True

    async def _start(self, due: float) -> None:
        client, namespace = self._controller.client, self._meta["namespace"]
        if self._spec.get("concurrencyPolicy") == "Replace":
            for one in list(self._active):
                running = self._controller.job(namespace, one["name"])
                if running is not None:
                    await self._delete(running)
        try:
            await client.create("batch", "jobs", self._new_job(due))
            self._event(NORMAL, "SuccessfulCreate", f"Created job {self._name(due)}")
        except APIStatusError as error:
            if is_namespace_terminating_error(error):
                return
            if error.reason != "AlreadyExists":
                self._event(WARNING, "FailedCreate", f"Error creating job: {error.message}")
                raise
        job = self._controller.job(namespace, self._name(due))
        if job is None:
            return
        owners = job["metadata"].get("ownerReferences") or ()
        if not any(one.get("controller") and one["uid"] == self._meta["uid"] for one in owners):
            # The job has another controller.
            return
        if not finished_type(job) and not self._is_active(job["metadata"]["uid"]):
            meta = job["metadata"]
            self._active.append(
                {
                    "kind": "Job",
                    "namespace": namespace,
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "apiVersion": "batch/v1",
                    "resourceVersion": meta["resourceVersion"],
                }
            )
        self._status["lastScheduleTime"] = format_time(due)

    def _new_job(self, due: float) -> JSONObject:
        template = self._spec["jobTemplate"]
        meta = template.get("metadata") or {}
        due_text = format_time(due)
        zone = self._spec.get("timeZone")
        if zone:
            import zoneinfo

            due_text = datetime.fromtimestamp(due, zoneinfo.ZoneInfo(zone)).isoformat().replace("+00:00", "Z")
        new_meta: JSONObject = {
            "name": self._name(due),
            "namespace": self._meta["namespace"],
            "annotations": {**(meta.get("annotations") or {}), _TIMESTAMP: due_text},
            "ownerReferences": [controller_reference("CronJob", "batch/v1", self._cron)],
        }
        if meta.get("labels"):
            new_meta["labels"] = meta["labels"]
        return {"metadata": new_meta, "spec": template["spec"]}

    async def write(self) -> None:
        """Write the status."""
        status = {**self._status, **({"active": self._active} if self._active else {})}
        if status == (self._cron.get("status") or {}):
            return

        def change(obj: JSONObject) -> None:
            obj["status"] = mutable_copy(status)

        meta = self._meta
        await self._controller.client.update_status(
            "batch", "cronjobs", meta["namespace"], meta["name"], change, uid=meta["uid"]
        )
