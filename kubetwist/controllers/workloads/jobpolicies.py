"""
Failure policies of jobs: which failed pods count, and which fail the job or an index.

@see: kubernetes, C{pkg/controller/job/pod_failure_policy.go}, C{backoff_utils.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from ...api.resource import JSONObject
from ...api.times import seconds_since_epoch
from .pods import condition_of, phase_of

#: First and maximum delay, in seconds, until a failed pod is replaced. The delay doubles after each failure.
INITIAL_BACKOFF_SECONDS: Final = 10.0
MAX_BACKOFF_SECONDS: Final = 600.0
TRACKING_FINALIZER: Final = "batch.kubernetes.io/job-tracking"


@frozen
class FailurePolicyResult:
    """
    The effect of a failed pod.

    @ivar counts: Whether the failure counts towards the backoff limit.
    @ivar action: The action of the matching rule; C{""} if no rule matches.
    @ivar message: The failure message of the job; C{""} if the job does not fail.
    """

    counts: bool = True
    action: str = ""
    message: str = ""


_DEFAULT_RESULT: Final = FailurePolicyResult()


def match_pod_failure_policy(policy: JSONObject | None, pod: JSONObject) -> FailurePolicyResult:
    """Return the effect of a failed pod. The first matching rule decides."""
    meta = pod["metadata"]
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        description = ""
        if rule.get("onExitCodes") is not None:
            exit_code = _exit_code(pod, rule["onExitCodes"])
            if exit_code is not None:
                container, code = exit_code
                description = (
                    f"Container {container} for pod {meta['namespace']}/{meta['name']} failed with exit code {code}"
                )
        else:
            kind = _matching_condition(pod, rule.get("onPodConditions") or ())
            if kind:
                description = f"Pod {meta['namespace']}/{meta['name']} has condition {kind}"
        if description:
            action = rule["action"]
            message = f"{description} matching {action} rule at index {number}" if action == "FailJob" else ""
            return FailurePolicyResult(action != "Ignore", action, message)
    return _DEFAULT_RESULT


def _exit_code(pod: JSONObject, requirement: JSONObject) -> tuple[str, int] | None:
    status = pod.get("status") or {}
    for one in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        terminated = (one.get("state") or {}).get("terminated")
        if terminated is None or not terminated.get("exitCode"):
            continue
        if requirement.get("containerName") not in (None, one["name"]):
            continue
        if (terminated["exitCode"] in requirement["values"]) == (requirement["operator"] == "In"):
            return one["name"], terminated["exitCode"]
    return None


def _matching_condition(pod: JSONObject, patterns: Sequence[JSONObject]) -> str:
    for pattern in patterns:
        condition = condition_of(pod, pattern["type"])
        if condition is not None and condition.get("status") == (pattern.get("status") or "True"):
            return str(pattern["type"])
    return ""


def replaces_failed_only(job: JSONObject) -> bool:
    """Return whether terminating pods are replaced only after they have terminated (C{podReplacementPolicy})."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def has_failed(pod: JSONObject, job: JSONObject) -> bool:
    """Return whether a pod counts as failed, which includes pods deleted before they terminated."""
    phase = phase_of(pod)
    if phase == "Failed":
        return True
    if phase == "Succeeded" or "deletionTimestamp" not in pod["metadata"]:
        return False
    # No kubelet will report an unscheduled pod as failed.
    return not replaces_failed_only(job) or not pod["spec"].get("nodeName")


def is_tracked(pod: JSONObject) -> bool:
    """Return whether a pod has the tracking finalizer."""
    return TRACKING_FINALIZER in (pod["metadata"].get("finalizers") or ())


def finished_at(pod: JSONObject, now: float) -> float:
    """Return when a pod finished as a POSIX time, or the best approximation."""
    status, meta = pod.get("status") or {}, pod["metadata"]
    times = [
        ((one.get("state") or {}).get("terminated") or {}).get("finishedAt")
        for one in status.get("containerStatuses") or ()
    ]
    finish_times = [seconds_since_epoch(one) for one in times if one]
    if finish_times and len(finish_times) == len(times):
        return max(finish_times)
    ready = condition_of(pod, "Ready") or {}
    timestamp = ready.get("lastTransitionTime") or meta.get("deletionTimestamp")
    return min(now, seconds_since_epoch(timestamp)) if timestamp else now


def delay_after(failures: int) -> float:
    """Return the backoff in seconds after a number of consecutive failures."""
    return min(INITIAL_BACKOFF_SECONDS * 2.0 ** min(failures - 1, 30), MAX_BACKOFF_SECONDS) if failures > 0 else 0.0


@frozen
class Backoff:
    """
    Backoff state of a job.

    @ivar failures: Number of failed pods since the last success.
    @ivar last: Time of the last failure.
    """

    failures: int = 0
    last: float = 0.0

    def after(self, succeeded: Sequence[JSONObject], failed: Sequence[JSONObject], now: float) -> Backoff:
        """Return the state after further pods have finished."""
        failure_times = sorted(finished_at(pod, now) for pod in failed)
        if succeeded:
            success = max(finished_at(pod, now) for pod in succeeded)
            failure_times = [one for one in failure_times if one > success]
            return Backoff(len(failure_times), failure_times[-1]) if failure_times else Backoff()
        return Backoff(self.failures + len(failure_times), failure_times[-1]) if failure_times else self

    def wait(self, now: float) -> float:
        """Return the seconds until the next pod may be created."""
        return max(0.0, self.last + delay_after(self.failures) - now) if self.failures else 0.0


def restarts_exceed(job: JSONObject, pods: Sequence[JSONObject]) -> bool:
    """Return whether the restarts of containers exceed the backoff limit (restart policy OnFailure)."""
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    total = 0
    for pod in pods:
        if phase_of(pod) in ("Running", "Pending"):
            status = pod["status"]
            for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
                total += one.get("restartCount") or 0
    limit = job["spec"]["backoffLimit"]
    return bool(total >= limit if limit else total > 0)
