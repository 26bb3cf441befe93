"""Table rows of Jobs and CronJobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age, human_duration, parse_time, since
from ..generic.printers.columns import AGE, CONTAINERS, NAME, Column, Field, Rows, boolean, integer, wide
from ..generic.printers.texts import (
    NONE,
    condition,
    container_cells,
    go_bool,
    name_of,
    selector_cell,
    spec_of,
    status_of,
)

#: Conditions shown as the status of a job, by precedence; a deletion has precedence after the second.
_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def job(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a Job; its status can be SuccessCriteriaMet since 1.34."""
    return _job(obj, _JOB_STATES)


def job_before(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a Job before 1.34."""
    return _job(obj, _JOB_STATES[:-1])


def _job(obj: JSONObject, states: Sequence[tuple[str, str]]) -> Iterator[Cell]:
    """Return the cells of a Job: status, completions and duration."""
    spec, status = spec_of(obj), status_of(obj)
    yield name_of(obj)
    yield _job_state(obj, status, states)
    succeeded = status.get("succeeded", 0)
    if spec.get("completions") is not None:
        yield f"{succeeded}/{spec['completions']}"
    elif (spec.get("parallelism") or 0) > 1:
        yield f"{succeeded}/1 of {spec['parallelism']}"
    else:
        yield f"{succeeded}/1"
    start, end = parse_time(status.get("startTime")), parse_time(status.get("completionTime"))
    if start is None:
        yield ""
    elif end is None:
        yield since(status["startTime"])
    else:
        yield human_duration(end - start)
    yield age(obj)
    yield from container_cells(spec.get("template"))
    yield selector_cell(spec.get("selector"))


def _job_state(obj: JSONObject, status: JSONObject, states: Sequence[tuple[str, str]]) -> str:
    for kind, state in states:
        if not kind:
            if obj["metadata"].get("deletionTimestamp"):
                return state
            continue
        existing = condition(status, kind)
        if existing is not None and existing.get("status") == "True":
            return state
    return "Running"


def cron_job(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a CronJob: schedule, last schedule time and active jobs."""
    spec, status = spec_of(obj), status_of(obj)
    job_spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    yield name_of(obj)
    yield spec.get("schedule", "")
    yield spec.get("timeZone", NONE)
    yield go_bool(spec.get("suspend"))
    yield len(status.get("active") or ())
    last = status.get("lastScheduleTime")
    yield NONE if last is None else since(last)
    yield age(obj)
    yield from container_cells(job_spec.get("template"))
    yield selector_cell(job_spec.get("selector"))


def _batch(kind: str, field: str) -> Field:
    return Field(f"api.batch.v1.{kind}", field)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Job": (
        NAME,
        Column("Status", "Status of the job."),
        Column("Completions", _batch("JobStatus", "succeeded")),
        Column("Duration", "Time required to complete the job."),
        AGE,
        *CONTAINERS,
        wide("Selector", _batch("JobSpec", "selector")),
    ),
    "CronJob": (
        NAME,
        Column("Schedule", _batch("CronJobSpec", "schedule")),
        Column("Timezone", _batch("CronJobSpec", "timeZone")),
        boolean("Suspend", _batch("CronJobSpec", "suspend")),
        integer("Active", _batch("CronJobStatus", "active")),
        Column("Last Schedule", _batch("CronJobStatus", "lastScheduleTime")),
        AGE,
        *CONTAINERS,
        wide("Selector", _batch("JobSpec", "selector")),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Rows]] = {
    "Job": {"<1.34": job_before, "": job},
    "CronJob": cron_job,
}
