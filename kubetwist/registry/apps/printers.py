"""Rows of what runs pods: apps, batch, autoscaling, and the templates and budgets around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...api.resource import JSONObject
from ..generic.printers.ages import age, human_duration, parse_time, since
from ..generic.printers.texts import (
    NONE,
    UNSET,
    InvalidSelector,
    condition,
    container_cells,
    go_bool,
    labels_cell,
    name_of,
    selector_cell,
    selector_text,
    spec_of,
    status_of,
)


def pod_template(obj: JSONObject) -> Iterator[Any]:
    """Containers, images and labels, but no age."""
    template = obj.get("template") or {}
    yield name_of(obj)
    yield from container_cells(template)
    yield labels_cell((template.get("metadata") or {}).get("labels"))


def replication_controller(obj: JSONObject) -> Iterator[Any]:
    """Its selector is plain labels."""
    yield from _replicas(obj)
    yield from container_cells(spec_of(obj).get("template"))
    yield labels_cell(spec_of(obj).get("selector"))


def replica_set(obj: JSONObject) -> Iterator[Any]:
    """Desired, current and ready replicas."""
    yield from _replicas(obj)
    yield from container_cells(spec_of(obj).get("template"))
    yield selector_cell(spec_of(obj).get("selector"))


def _replicas(obj: JSONObject) -> Iterator[Any]:
    status = status_of(obj)
    yield name_of(obj)
    yield spec_of(obj).get("replicas") or 0
    yield status.get("replicas", 0)
    yield status.get("readyReplicas", 0)
    yield age(obj)


def deployment(obj: JSONObject) -> Iterator[Any]:
    """Ready of desired, up to date, available."""
    spec, status = spec_of(obj), status_of(obj)
    yield name_of(obj)
    yield f"{status.get('readyReplicas', 0)}/{spec.get('replicas') or 0}"
    yield status.get("updatedReplicas", 0)
    yield status.get("availableReplicas", 0)
    yield age(obj)
    yield from container_cells(spec.get("template"))
    try:
        yield selector_text(spec.get("selector"))
    except InvalidSelector:
        yield "<invalid>"


def stateful_set(obj: JSONObject) -> Iterator[Any]:
    """Ready of desired."""
    spec = spec_of(obj)
    yield name_of(obj)
    yield f"{status_of(obj).get('readyReplicas', 0)}/{spec.get('replicas') or 0}"
    yield age(obj)
    yield from container_cells(spec.get("template"))


def daemon_set(obj: JSONObject) -> Iterator[Any]:
    """Pods on nodes, and which nodes."""
    spec, status = spec_of(obj), status_of(obj)
    template = spec.get("template") or {}
    yield name_of(obj)
    yield status.get("desiredNumberScheduled", 0)
    yield status.get("currentNumberScheduled", 0)
    yield status.get("numberReady", 0)
    yield status.get("updatedNumberScheduled", 0)
    yield status.get("numberAvailable", 0)
    yield labels_cell((template.get("spec") or {}).get("nodeSelector"))
    yield age(obj)
    yield from container_cells(template)
    yield selector_cell(spec.get("selector"))


def controller_revision(obj: JSONObject) -> Iterator[Any]:
    """Whose revision it is."""
    owner = NONE
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            group, _, _ = reference.get("apiVersion", "").rpartition("/")
            kind = f"{reference.get('kind', '')}.{group}" if group else reference.get("kind", "")
            owner = f"{kind.lower()}/{reference.get('name', '')}" if kind else reference.get("name", "")
            break
    yield name_of(obj)
    yield owner
    yield obj.get("revision", 0)
    yield age(obj)


#: The conditions of a job that count as its status, the weightiest first; a deletion comes behind the second.
_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def job(obj: JSONObject) -> Iterator[Any]:
    """Status, completions, and how long it took or has been taking."""
    spec, status = spec_of(obj), status_of(obj)
    yield name_of(obj)
    yield _job_state(obj, status)
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


def _job_state(obj: JSONObject, status: JSONObject) -> str:
    for kind, state in _JOB_STATES:
        if not kind:
            if obj["metadata"].get("deletionTimestamp"):
                return state
            continue
        found = condition(status, kind)
        if found is not None and found.get("status") == "True":
            return state
    return "Running"


def cron_job(obj: JSONObject) -> Iterator[Any]:
    """When it runs and has run."""
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


def pod_disruption_budget(obj: JSONObject) -> Iterator[Any]:
    """What must stay, and what may go."""
    spec = spec_of(obj)
    yield name_of(obj)
    for bound in ("minAvailable", "maxUnavailable"):
        value = spec.get(bound)
        yield "N/A" if value is None else str(value)
    yield status_of(obj).get("disruptionsAllowed", 0)
    yield age(obj)


def scale(obj: JSONObject) -> Iterator[Any]:
    """The scale subresource."""
    yield name_of(obj)
    yield spec_of(obj).get("replicas", 0)
    yield status_of(obj).get("replicas", 0)
    yield age(obj)


def horizontal_pod_autoscaler(obj: JSONObject) -> Iterator[Any]:
    """What it scales, and the metrics it looks at."""
    spec, status = spec_of(obj), status_of(obj)
    target = spec.get("scaleTargetRef") or {}
    yield name_of(obj)
    yield f"{target.get('kind', '')}/{target.get('name', '')}"
    yield _metrics(spec.get("metrics") or (), status.get("currentMetrics") or ())
    least = spec.get("minReplicas")
    yield UNSET if least is None else str(least)
    yield spec.get("maxReplicas", 0)
    yield status.get("currentReplicas", 0)
    yield age(obj)


def _metrics(metrics: Any, current: Any) -> str:
    if not metrics:
        return NONE
    texts = [_metric(metric, current[place] if place < len(current) else {}) for place, metric in enumerate(metrics)]
    shown = ", ".join(texts[:2])
    return f"{shown} + {len(texts) - 2} more..." if len(texts) > 2 else shown


def _metric(metric: JSONObject, current: JSONObject) -> str:
    kind = metric.get("type", "")
    source_name = kind[:1].lower() + kind[1:]
    if kind not in ("External", "Pods", "Object", "Resource", "ContainerResource"):
        return "<unknown type>"
    source, now = metric.get(source_name) or {}, (current.get(source_name) or {}).get("current") or {}
    target = source.get("target") or {}
    average = target.get("averageValue")
    known = source_name in current
    if kind in ("Resource", "ContainerResource"):
        if average is not None:
            return f"{source.get('name', '')}: {_value(now, 'averageValue', known)}/{average}"
        goal, used = target.get("averageUtilization"), now.get("averageUtilization")
        shown = "<unknown>" if used is None else f"{used}%"
        return f"{source.get('name', '')}: {shown}/{'<auto>' if goal is None else f'{goal}%'}"
    if kind == "Pods":
        return f"{_value(now, 'averageValue', known)}/{_quantity(average)}"
    if average is not None:
        return f"{_value(now, 'averageValue', False)}/{average} (avg)"
    return f"{_value(now, 'value', known)}/{_quantity(target.get('value'))}"


def _value(now: JSONObject, name: str, known: bool) -> str:
    """The current value; one that is not told is Go's nil where the metric is known at all."""
    value = now.get(name)
    if value is None:
        return _quantity(None) if known else "<unknown>"
    return str(value)


def _quantity(value: Any) -> str:
    return "<nil>" if value is None else str(value)
