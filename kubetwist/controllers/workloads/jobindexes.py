"""
Indexes of indexed jobs: completed, failed and pending ones.

@see: kubernetes, C{pkg/controller/job/indexed_job_utils.go}, C{success_policy.go}.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ...api.resource import JSONObject

_PREFIX: Final = "batch.kubernetes.io/"
INDEX: Final = _PREFIX + "job-completion-index"
FAILURES: Final = _PREFIX + "job-index-failure-count"
IGNORED: Final = _PREFIX + "job-index-ignored-failure-count"
#: Maximum number of known completed indexes of a job.
MAX_INDEXES: Final = 1_000_000
#: Five characters are added to the name prefix.
_MAX_PREFIX_LENGTH: Final = 58
_ENVIRONMENT_VARIABLE: Final = "JOB_COMPLETION_INDEX"


def _intervals(text: str | None, completions: int) -> Iterator[tuple[int, int]]:
    for item in (text or "").split(","):
        first, dash, last = item.partition("-")
        last = last if dash else first
        start, has_end = _number(first), last.isascii() and last.isdigit()
        if start is not None and has_end:
            end = _number(last)
            end = completions - 1 if end is None else min(end, completions - 1)
            if start <= end:
                yield start, end


def parse_indexes(text: str | None, completions: int) -> set[int]:
    """
    Parse indexes in the format of the status: C{"0-3,7"}. Indexes beyond the completions are omitted.

    A status can contain ranges of billions of indexes, so indexes beyond L{MAX_INDEXES} are omitted too.
    """
    indexes: set[int] = set()
    for start, end in _intervals(text, completions):
        indexes.update(range(start, min(end + 1, start + MAX_INDEXES - len(indexes))))
    return indexes


def format_indexes(indexes: Iterable[int]) -> str:
    """Format indexes for the status. Two consecutive indexes are listed, more are a range."""
    parts: list[str] = []
    ordered = sorted(indexes)
    start = 0
    while start < len(ordered):
        end = start
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        if end > start:
            parts.append(f"{ordered[start]}{',' if end == start + 1 else '-'}{ordered[end]}")
        else:
            parts.append(str(ordered[start]))
        start = end + 1
    return ",".join(parts)


def index_of(pod: JSONObject) -> int | None:
    """Return the completion index of a pod, or L{None}."""
    return _number((pod["metadata"].get("annotations") or {}).get(INDEX))


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else None


def failures_of(pod: JSONObject) -> int:
    """Return the number of failures of the index before this pod."""
    return _number((pod["metadata"].get("annotations") or {}).get(FAILURES)) or 0


def ignored_of(pod: JSONObject) -> int:
    """Return the number of ignored failures of the index before this pod."""
    return _number((pod["metadata"].get("annotations") or {}).get(IGNORED)) or 0


def pending(taken: set[int], completions: int, count: int) -> list[int]:
    """
    Return the first indexes for which no pod is needed or exists.

    @param taken: Completed, failed and active indexes.
    @param completions: The number of indexes.
    @param count: Maximum number of results.
    """
    indexes: list[int] = []
    for index in range(completions):
        if len(indexes) >= count:
            break
        if index not in taken:
            indexes.append(index)
    return indexes


def with_index(pod: JSONObject, job: str, index: int, failures: tuple[int, int] | None) -> None:
    """
    Set the index of a new pod: annotation, label, host name and environment variable.

    @param pod: The pod, which is modified.
    @param job: The name of the job.
    @param index: The index.
    @param failures: The number of counted and of ignored failures of the index; L{None} without
        C{backoffLimitPerIndex}.
    """
    meta, spec = pod["metadata"], pod["spec"]
    annotations: dict[str, Any] = {**(meta.get("annotations") or {}), INDEX: str(index)}
    if failures is not None:
        annotations[FAILURES] = str(failures[0])
        if failures[1]:
            annotations[IGNORED] = str(failures[1])
    meta["annotations"] = annotations
    meta["labels"] = {**(meta.get("labels") or {}), INDEX: str(index)}
    suffix = f"-{index}-"
    meta["generateName"] = job[: _MAX_PREFIX_LENGTH - len(suffix)] + suffix
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    new: JSONObject = {**spec, "hostname": f"{job}-{index}"}
    for name in ("initContainers", "containers"):
        if spec.get(name):
            new[name] = [_with_variable(container, source) for container in spec[name]]
    pod["spec"] = new


def _with_variable(container: JSONObject, source: JSONObject) -> JSONObject:
    variables = container.get("env") or []
    if any(one.get("name") == _ENVIRONMENT_VARIABLE for one in variables):
        return container
    return {**container, "env": [*variables, {"name": _ENVIRONMENT_VARIABLE, "valueFrom": source}]}


def _contains(index: int, intervals: Sequence[tuple[int, int]], ends: Sequence[int]) -> bool:
    """Return whether an index is in one of the ascending intervals."""
    position = bisect_left(ends, index)
    return position < len(ends) and intervals[position][0] <= index


def success_rule(policy: JSONObject | None, succeeded: set[int], completions: int) -> str | None:
    """Return the message of the first matching rule of a success policy, or L{None}."""
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        if indexes is not None:
            intervals = list(_intervals(indexes, completions))
            ends = [end for _, end in intervals]
            succeeded_count = sum(1 for index in succeeded if _contains(index, intervals, ends))
            required = sum(end - start + 1 for start, end in intervals)
            is_met = succeeded_count >= count if count is not None else succeeded_count == required
        else:
            is_met = count is not None and len(succeeded) >= count
        if is_met:
            return f"Matched rules at index {number}"
    return None
