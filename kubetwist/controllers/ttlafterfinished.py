"""
Deletes finished jobs after C{spec.ttlSecondsAfterFinished}.

@see: kubernetes, C{pkg/controller/ttlafterfinished/ttlafterfinished_controller.go}.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ..api.record import Record
from ..api.resource import JSONObject
from ..api.times import seconds_since_epoch
from ..registry.stores import decoded_object
from ..storage.cache.window import DELETED
from .machinery.controller import Controller

_MARK: Final = b'"ttlSecondsAfterFinished":'


def finished_at(job: JSONObject) -> float | None:
    """
    Return when a job finished as a POSIX time, or L{None} if it has not finished.

    @raise ValueError: The condition has no transition time.
    """
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            if not condition.get("lastTransitionTime"):
                meta = job["metadata"]
                raise ValueError(f"unable to find the time when the Job {meta['namespace']}/{meta['name']} finished")
            return seconds_since_epoch(condition["lastTransitionTime"])
    return None


class TTLAfterFinished(Controller[str]):
    """Deletes finished jobs with a TTL. The queue contains keys of jobs."""

    name: ClassVar[str] = "ttl-after-finished-controller"
    workers: ClassVar[int] = 5

    def register_handlers(self) -> None:
        """Register a handler for jobs."""
        self._jobs = self.watch("batch", "jobs", self._changed)

    def _changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type != DELETED and _MARK in record.item:
            self.queue.add(record.key)

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._jobs.by_key(key)
        if record is None:
            return
        job = decoded_object(record)
        meta, ttl = job["metadata"], (job.get("spec") or {}).get("ttlSecondsAfterFinished")
        if ttl is None or "deletionTimestamp" in meta:
            return
        finished = finished_at(job)
        if finished is None:
            return
        left = finished + ttl - self.clock.seconds()
        if left > 0:
            self.queue.add_after(key, left)
            return
        await self.client.delete(
            "batch", "jobs", record.namespace, record.name, uid=meta["uid"], propagation="Foreground"
        )
