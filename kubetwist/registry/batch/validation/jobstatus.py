"""
Validation of the status of Jobs; see kubernetes, C{pkg/apis/batch/validation/validation.go}.

Most rules apply to changed fields only, so that jobs that violate a newer rule can still be updated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import frozen

from ....api.errors import FieldError, duplicate, invalid, required
from ....api.featuregates import FeatureGates
from ....api.jsontypes import JSONValue
from ....api.resource import JSONObject
from ...generic.validation.fields import ErrorList, go_json, invalid_shown, invalid_without_value, not_negative, quote

#: Maximum number of digits of an integer in Go.
_MAX_DIGITS: Final = 18
_TERMINAL: Final = ("Failed", "Complete", "FailureTarget")


class _View:
    """The status of a Job with its conditions by type."""

    __slots__ = ("_status", "complete", "failed", "failing", "false", "finished", "succeeding", "true")

    def __init__(self, obj: JSONObject) -> None:
        self._status: Mapping[str, Any] = obj.get("status") or {}
        conditions = self._status.get("conditions") or ()
        self.true = {one.get("type") for one in conditions if one.get("status") == "True"}
        self.false = {one.get("type") for one in conditions if one.get("status") == "False"}
        self.complete = "Complete" in self.true
        self.failed = "Failed" in self.true
        self.failing = "FailureTarget" in self.true
        self.succeeding = "SuccessCriteriaMet" in self.true
        self.finished = self.complete or self.failed

    def __getitem__(self, name: str) -> JSONValue:
        return self._status.get(name)

    def count(self, name: str) -> int:
        return self._status.get(name) or 0


@frozen
class JobStatusRules:
    """
    The rules for the status of Jobs that depend on feature gates.

    @ivar strict: Whether transitions are validated, since other controllers may manage Jobs.
    @ivar any_succeeds: Whether Jobs without a success policy, or without indexes, may meet success criteria.
    """

    strict: bool
    any_succeeds: bool

    @classmethod
    def from_features(cls, features: FeatureGates) -> JobStatusRules:
        """Return the rules of a server."""
        managed = features.enabled("JobManagedBy")
        return cls(managed, managed or features.enabled("JobPodReplacementPolicy"))


def validate_job_status_update(obj: JSONObject, old: JSONObject, rules: JobStatusRules) -> list[FieldError]:
    """
    Validate counts, times and conditions, and that a finished job stays finished.

    @param obj: The Job.
    @param old: The stored Job.
    @param rules: The rules of the server.
    """
    errors: ErrorList = []
    spec, now, was = obj["spec"], _View(obj), _View(old)
    for name in ("active", "succeeded", "failed", "ready", "terminating"):
        not_negative(now[name], f"status.{name}", errors)
    _validate_uncounted_pods(now["uncountedTerminatedPods"], errors)
    if rules.strict:
        _validate_conditions(now, was, errors)
        _validate_finished_job(spec, now, was, errors)
        _validate_indexes(spec, now, was, errors)
        _validate_no_pods_in_state("terminating", now, was, errors)
        changed = now["ready"] != was["ready"] or now["active"] != was["active"]
        if changed and now["ready"] is not None and now.count("ready") > now.count("active"):
            errors.append(invalid("status.ready", now["ready"], "cannot set more ready pods than active"))
    _validate_success_criteria(spec, now, errors, rules.any_succeeds or was.succeeding)
    if rules.strict:
        _validate_monotonic_fields(spec, now, was, errors)
    _validate_success_transition(now, was, errors)
    return errors


def _condition(text: str) -> FieldError:
    return invalid_without_value("status.conditions", text)


def _validate_uncounted_pods(pods: JSONObject | None, errors: ErrorList) -> None:
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for index, uid in enumerate((pods or {}).get(name) or ()):
            path = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)


def _validate_conditions(now: _View, was: _View, errors: ErrorList) -> None:
    """Validate conditions that exclude or require each other, and the completion time."""
    completes, fails = now.complete != was.complete, now.failed != was.failed
    targets = now.failing != was.failing
    path, time = "status.completionTime", now["completionTime"]
    timed = time != was["completionTime"]
    if (completes or fails) and now.complete and now.failed:
        errors.append(_condition("cannot set Complete=True and Failed=true conditions"))
    if (completes or targets) and now.complete and now.failing:
        errors.append(_condition("cannot set Complete=True and FailureTarget=true conditions"))
    if (completes or timed) and time is not None and not now.complete:
        text = "cannot set completionTime when there is no Complete=True condition"
        errors.append(invalid(path, time, text, "*v1.Time"))
    if (completes or timed) and time is None and now.complete:
        errors.append(required(path, "completionTime is required for Complete jobs"))
    started = now["startTime"]
    if (timed or started != was["startTime"]) and started and time and time < started:
        earlier = "completionTime cannot be set before startTime"
        errors.append(invalid(path, time, "must be equal to or after `startTime`", "*v1.Time").reworded(1, 34, earlier))
    if (fails or now["failedIndexes"] != was["failedIndexes"]) and now.failed and not now.failing:
        errors.append(_condition("cannot set Failed=True condition without the FailureTarget=true condition"))
    if (completes or now.succeeding != was.succeeding) and now.complete and not now.succeeding:
        errors.append(_condition("cannot set Complete=True condition without the SuccessCriteriaMet=true condition"))


def _validate_finished_job(spec: JSONObject, now: _View, was: _View, errors: ErrorList) -> None:
    """Validate that a finished job has started, and has no active pods."""
    if not now.finished:
        return
    ends = not was.finished
    _validate_no_pods_in_state("active", now, was, errors)
    never_began = spec.get("suspend") and spec.get("completions") == 0
    if (ends or now["startTime"] != was["startTime"]) and now["startTime"] is None and not never_began:
        errors.append(required("status.startTime", "startTime is required for finished job"))
    uncounted = now["uncountedTerminatedPods"]
    if (ends or uncounted != was["uncountedTerminatedPods"]) and uncounted is not None:
        pods = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        if any(pods.values()):
            path = "status.uncountedTerminatedPods"
            go_type, earlier = (
                "batch.UncountedTerminatedPods",
                "uncountedTerminatedPods needs to be empty for finished job",
            )
            field_error = invalid_shown(path, go_json(pods), "must be empty for finished job", uncounted, go_type)
            errors.append(field_error.reworded(1, 34, earlier))


def _validate_no_pods_in_state(name: str, now: _View, was: _View, errors: ErrorList) -> None:
    """Validate that a finished job has no pods of some state."""
    if now.finished and (not was.finished or now[name] != was[name]) and now.count(name) > 0:
        errors.append(invalid(f"status.{name}", now[name], f"{name}>0 is invalid for finished job"))


def _validate_success_criteria(spec: JSONObject, now: _View, errors: ErrorList, any_succeeds: bool) -> None:
    """
    Validate that success criteria are not combined with a failure, and that completion requires success.

    @param spec: The spec of the Job.
    @param now: The new status.
    @param errors: Receives the errors.
    @param any_succeeds: Whether Jobs without a success policy, or without indexes, may meet success criteria.
    """
    if now.succeeding and not any_succeeds and spec.get("completionMode") != "Indexed":
        errors.append(_condition("cannot set SuccessCriteriaMet to NonIndexed Job"))
    if now.succeeding and now.failed:
        errors.append(_condition("cannot set SuccessCriteriaMet=True and Failed=true conditions"))
    if now.succeeding and now.failing:
        errors.append(_condition("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"))
    if now.succeeding and not any_succeeds and spec.get("successPolicy") is None:
        errors.append(_condition("cannot set SuccessCriteriaMet=True for Job without SuccessPolicy"))
    if spec.get("successPolicy") is not None and now.complete and not now.succeeding:
        text = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        errors.append(_condition(text))


def _validate_indexes(spec: JSONObject, now: _View, was: _View, errors: ErrorList) -> None:
    """Validate lists of indexes such as C{"0,2-4"}."""
    completed, failed = now["completedIndexes"] or "", now["failedIndexes"]
    total, limited = spec.get("completions"), spec.get("backoffLimitPerIndex") is not None
    new_completed, new_failed = completed != (was["completedIndexes"] or ""), failed != was["failedIndexes"]
    path = "status.completedIndexes"
    if total is not None:
        if new_completed:
            _check_intervals(completed, total, path, "completedIndexes", errors)
        if new_failed and limited and failed is not None:
            _check_intervals(failed, total, "status.failedIndexes", "failedIndexes", errors)
    if new_completed and completed and spec.get("completionMode") != "Indexed":
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid(path, completed, text))
    if new_failed and failed is not None and not limited:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid("status.failedIndexes", failed, text))
    if (new_completed or new_failed) and failed is not None and total is not None:
        common = _overlap(_good_intervals(completed, total), _good_intervals(failed, total))
        if common is not None:
            text = f"failedIndexes and completedIndexes overlap at index: {common}"
            errors.append(invalid("status.failedIndexes", failed, text))


def _check_intervals(text: str, total: int, path: str, name: str, errors: ErrorList) -> None:
    try:
        for _ in parse_intervals(text, total):
            pass
    except ValueError as error:
        errors.append(invalid(path, text, f"error parsing {name}: {error}"))


def _good_intervals(text: str, total: int) -> list[tuple[int, int]]:
    """Return the valid intervals."""
    intervals = []
    for interval in text.split(",") if text else ():
        with suppress(ValueError):
            intervals.append(_interval(interval, total))
    return intervals


def _overlap(first_list: Sequence[tuple[int, int]], second_list: Sequence[tuple[int, int]]) -> int | None:
    """Return the first index that is in an interval of both lists, in time linear in the number of intervals."""
    first_index = second_index = 0
    while first_index < len(first_list) and second_index < len(second_list):
        (first, last), (begin, end) = first_list[first_index], second_list[second_index]
        if first <= end and begin <= last:
            return max(first, begin)
        if first <= begin:
            first_index += 1
        else:
            second_index += 1
    return None


def parse_intervals(text: str, total: int) -> Iterator[tuple[int, int]]:
    """
    Return the first and last index of each interval of a list such as C{"0,2-4"}, whose intervals ascend.

    @param total: The number of indexes.
    @raise ValueError: The list is invalid; the message is Go's.
    """
    before: int | None = None
    for interval in text.split(",") if text else ():
        first, last = _interval(interval, total)
        if before is not None and first <= before:
            raise ValueError(f"non-increasing order, previous: {before}, current: {first}")
        before = last
        yield first, last


def _interval(text: str, total: int) -> tuple[int, int]:
    limits = text.split("-")
    if len(limits) > 2:
        raise ValueError(
            f"the fragment {quote(text)} violates the requirement that an index interval can have "
            "at most two parts separated by '-'"
        )
    numbers = []
    for limit in limits:
        digits = limit.removeprefix("+")
        if not (digits.isascii() and digits.isdigit()) or len(digits.lstrip("0")) > _MAX_DIGITS:
            raise ValueError(f"cannot convert string to integer for index: {quote(limit)}")
        number = int(digits.lstrip("0") or "0")
        if number >= total:
            raise ValueError(f"too large index: {quote(limit)}")
        numbers.append(number)
    if len(numbers) == 2 and numbers[1] <= numbers[0]:
        raise ValueError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]


def _validate_monotonic_fields(spec: JSONObject, now: _View, was: _View, errors: ErrorList) -> None:
    """Validate fields that may only be set or grow."""
    for kind in _TERMINAL:
        if kind in was.true and kind not in now.true:
            errors.append(_condition(f"cannot disable the terminal {kind}=True condition"))
    if now.count("failed") < was.count("failed"):
        errors.append(invalid("status.failed", now.count("failed"), "cannot decrease the failed counter"))
    # An indexed job whose completions equal its parallelism can be scaled down.
    shrinks = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    if not shrinks and now.count("succeeded") < was.count("succeeded"):
        errors.append(invalid("status.succeeded", now.count("succeeded"), "cannot decrease the succeeded counter"))
    time, completed = now["completionTime"], was["completionTime"]
    if completed is not None and time is not None and time != completed:
        field_error = invalid("status.completionTime", time, "field is immutable", "*v1.Time")
        errors.append(field_error.reworded(1, 34, "completionTime cannot be mutated"))
    started = was["startTime"]
    resumes = "Suspended" in was.true and "Suspended" in now.false
    if started is not None and now["startTime"] != started and not spec.get("suspend") and not resumes:
        text = "field is immutable for unsuspended job once set"
        earlier = required("status.startTime", "startTime cannot be removed for unsuspended job")
        errors.append(invalid("status.startTime", now["startTime"], text, "*v1.Time").since(1, 36, earlier))


def _validate_success_transition(now: _View, was: _View, errors: ErrorList) -> None:
    """Validate that success criteria remain met, and are met before the Job is complete."""
    if was.succeeding and not now.succeeding:
        errors.append(_condition("cannot disable the SuccessCriteriaMet=True condition"))
    if was.complete and now.succeeding and not was.succeeding:
        text = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.append(_condition(text))
