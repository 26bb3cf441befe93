"""Jobs and cron jobs; see kubernetes, C{pkg/apis/batch/validation/validation.go}."""

from __future__ import annotations

import zoneinfo
from typing import Any, Final

from ...api.errors import Cause, invalid, required, too_many
from ...api.resource import JSONObject
from ...schema.gostructs import go_struct, pod_template_struct
from .cron import CronError, check_schedule
from .fields import (
    Causes,
    annotation_keys,
    go_json,
    immutable,
    invalid_shown,
    label_selector,
    labels,
    not_negative,
    quote,
    selector_shown,
    selects,
    unsupported,
)
from .workloads import validate_template

_UID: Final = "batch.kubernetes.io/controller-uid"
_NAME: Final = "batch.kubernetes.io/job-name"
_MANY: Final = 100000


def validate_job(obj: JSONObject) -> list[Cause]:
    """A new job."""
    causes: Causes = []
    spec = obj["spec"]
    _generated(obj, spec, causes)
    _job_spec(spec, "spec", causes, template_of_job=True)
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        name = obj["metadata"].get("name") or ""
        if len(f"{name}-{spec['completions'] - 1}") > 63:
            text = "must be no more than 63 characters"
            causes.append(
                invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {name}: {text}")
            )
    return causes


def _generated(obj: JSONObject, spec: JSONObject, causes: Causes) -> None:
    """The selector and the labels are the server's, unless the client takes charge of them."""
    if spec.get("manualSelector"):
        return
    uid, name = obj["metadata"].get("uid") or "", obj["metadata"].get("name") or ""
    found = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    path = "spec.template.metadata.labels"
    wanted = {"controller-uid": uid, _UID: uid, "job-name": name, _NAME: name}
    for label, value in wanted.items():
        if found.get(label) != value:
            text = f"must be '{value}'"
            if label in found:
                causes.append(invalid(path, found, text))
            else:
                causes.append(required(path, text))
    selector = spec.get("selector") or {}
    if selector not in ({"matchLabels": {_UID: uid}}, {"matchLabels": {"controller-uid": uid}}):
        shown = selector_shown(spec.get("selector"))
        causes.append(invalid_shown("spec.selector", shown, "`selector` not auto-generated"))


def _job_spec(spec: JSONObject, path: str, causes: Causes, *, template_of_job: bool) -> None:
    if template_of_job:
        selector = spec.get("selector")
        if selector is None:
            causes.append(required(f"{path}.selector"))
        else:
            label_selector(selector, f"{path}.selector", causes)
    names = (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
    )
    for name in names:
        not_negative(spec.get(name), f"{path}.{name}", causes)
    if spec.get("maxFailedIndexes") is not None:
        not_negative(spec["maxFailedIndexes"], f"{path}.maxFailedIndexes", causes)
        if spec.get("backoffLimitPerIndex") is None:
            text = "when maxFailedIndexes is specified"
            causes.append(required(f"{path}.backoffLimitPerIndex", text))
    if spec.get("managedBy") is not None and "/" not in spec["managedBy"]:
        text = 'must be a domain-prefixed path (such as "acme.io/foo")'
        causes.append(invalid(f"{path}.managedBy", spec["managedBy"], text))
    mode = spec.get("completionMode")
    if (mode is not None and template_of_job) or mode:
        if mode not in ("NonIndexed", "Indexed"):
            causes.append(unsupported(f"{path}.completionMode", mode or "", ("Indexed", "NonIndexed")))
        if mode == "Indexed":
            completions = spec.get("completions")
            if completions is None:
                text = f"when completion mode is {mode}"
                causes.append(required(f"{path}.completions", text))
            elif (spec.get("parallelism") or 0) > _MANY:
                text = f"must be less than or equal to {_MANY} when completion mode is {mode}"
                causes.append(invalid(f"{path}.parallelism", spec["parallelism"], text))
    if mode != "Indexed":
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                text = "requires indexed completion mode"
                causes.append(invalid(f"{path}.{name}", spec[name], text))
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    if spec.get("podFailurePolicy") is not None:
        _failure_policy(spec["podFailurePolicy"], pod, f"{path}.podFailurePolicy", causes)
    if spec.get("podReplacementPolicy") is not None:
        replacement = spec["podReplacementPolicy"]
        where = f"{path}.podReplacementPolicy"
        if spec.get("podFailurePolicy") is not None and replacement != "Failed":
            causes.append(unsupported(where, replacement, ("Failed",)))
        elif replacement not in ("Failed", "TerminatingOrFailed"):
            causes.append(unsupported(where, replacement, ("Failed", "TerminatingOrFailed")))
    _template(template, pod, f"{path}.template", causes)
    if template_of_job and spec.get("selector") is not None:
        found = (template.get("metadata") or {}).get("labels") or {}
        if not selects(spec["selector"], found):
            text = "`selector` does not match template `labels`"
            causes.append(invalid(f"{path}.template.metadata.labels", found, text))


def _template(template: JSONObject, pod: JSONObject, path: str, causes: Causes) -> None:
    validate_template(template, path, causes)
    policy = pod.get("restartPolicy") or ""
    if policy in ("", "Always"):
        causes.append(required(f"{path}.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        causes.append(unsupported(f"{path}.spec.restartPolicy", policy, ("OnFailure", "Never")))


def _failure_policy(policy: JSONObject, pod: JSONObject, path: str, causes: Causes) -> None:
    if pod.get("restartPolicy") != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        where = path.removesuffix("podFailurePolicy") + "template.spec.restartPolicy"
        causes.append(invalid(where, pod.get("restartPolicy") or "", text))
    rules = policy.get("rules") or []
    if len(rules) > 20:
        causes.append(too_many(f"{path}.rules", len(rules), 20))
    names = {container.get("name") for kind in ("containers", "initContainers") for container in pod.get(kind) or ()}
    for index, rule in enumerate(rules):
        here = f"{path}.rules[{index}]"
        action = rule.get("action") or ""
        choice = ("Count", "FailIndex", "FailJob", "Ignore")
        if not action:
            causes.append(required(f"{here}.action", f"valid values: {', '.join(quote(one) for one in choice)}"))
        elif action not in choice:
            causes.append(unsupported(f"{here}.action", action, choice))
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is not None:
            _exit_codes(codes, names, f"{here}.onExitCodes", causes)
        for place, pattern in enumerate(conditions):
            if pattern.get("status") not in ("False", "True", "Unknown"):
                where = f"{here}.onPodConditions[{place}].status"
                causes.append(unsupported(where, pattern.get("status") or "", ("False", "True", "Unknown")))
        if codes is not None and conditions:
            text = "specifying both OnExitCodes and OnPodConditions is not supported"
            causes.append(invalid_shown(here, go_json(go_struct(rule, "batch.PodFailurePolicyRule")), text))
        if codes is None and not conditions:
            text = "specifying one of OnExitCodes and OnPodConditions is required"
            causes.append(invalid_shown(here, go_json(go_struct(rule, "batch.PodFailurePolicyRule")), text))


def _exit_codes(codes: JSONObject, names: set[Any], path: str, causes: Causes) -> None:
    operator = codes.get("operator") or ""
    if not operator:
        causes.append(required(f"{path}.operator", 'valid values: "In", "NotIn"'))
    elif operator not in ("In", "NotIn"):
        causes.append(unsupported(f"{path}.operator", operator, ("In", "NotIn")))
    if codes.get("containerName") is not None and codes["containerName"] not in names:
        text = "must be one of the container or initContainer names in the pod template"
        causes.append(invalid(f"{path}.containerName", codes["containerName"], text))
    values = codes.get("values") or []
    if not values:
        causes.append(invalid(f"{path}.values", values, "at least one value is required"))
    elif len(values) > 255:
        causes.append(too_many(f"{path}.values", len(values), 255))
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            causes.append(invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in values[:index]:
            causes.append(Cause("FieldValueDuplicate", f"Duplicate value: {value}", f"{path}.values[{index}]"))
    if sorted(values) != values:
        causes.append(invalid(f"{path}.values", values, "must be ordered"))


def validate_job_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """What a job does stays; how much of it at once does not."""
    causes: Causes = []
    spec, before = obj["spec"], old["spec"]
    _job_spec(spec, "spec", causes, template_of_job=True)
    completions, was = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != "Indexed":
        immutable(completions, was, "spec.completions", causes)
    elif completions not in (was, None, spec.get("parallelism")):
        text = "can only be modified in tandem with spec.parallelism"
        causes.append(invalid("spec.completions", completions, text))
    immutable(
        spec.get("selector"), before.get("selector"), "spec.selector", causes, selector_shown(spec.get("selector"))
    )
    template, held = spec.get("template") or {}, before.get("template") or {}
    if template != held and not _suspended_change(spec, before, old):
        immutable(template, held, "spec.template", causes, go_json(pod_template_struct(template)))
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        found, was = spec.get(name), before.get(name)
        if name in _STRUCTS and found is not None and found != was:
            immutable(found, was, f"spec.{name}", causes, go_json(go_struct(found, _STRUCTS[name])))
        else:
            immutable(found, was, f"spec.{name}", causes)
    return causes


#: Fields that messages show as Go has them.
_STRUCTS: Final = {"podFailurePolicy": "batch.PodFailurePolicy", "successPolicy": "batch.SuccessPolicy"}
_SCHEDULING: Final = ("nodeSelector", "tolerations", "schedulingGates", "affinity")


def _suspended_change(spec: JSONObject, before: JSONObject, old: JSONObject) -> bool:
    """Whether only what a job that has not started yet may change was changed: where its pods go."""
    if not before.get("suspend") or (old.get("status") or {}).get("startTime") is not None:
        return False

    def rest(template: JSONObject) -> tuple[JSONObject, JSONObject]:
        metadata = {
            name: part
            for name, part in (template.get("metadata") or {}).items()
            if name not in ("labels", "annotations")
        }
        pod = {name: part for name, part in (template.get("spec") or {}).items() if name not in _SCHEDULING}
        return metadata, pod

    return rest(spec.get("template") or {}) == rest(before.get("template") or {})


# --- cron jobs ---------------------------------------------------------------------------------------------------


def validate_cron_job(obj: JSONObject) -> list[Cause]:
    """A new cron job: its name has to leave room for those of its jobs."""
    causes = _cron_job(obj, None)
    name = obj["metadata"].get("name") or ""
    if len(name) > 52:
        causes.append(invalid("metadata.name", name, "must be no more than 52 characters"))
    return causes


def validate_cron_job_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """The spec; a time zone that was taken once stays good."""
    return _cron_job(obj, old)


def _cron_job(obj: JSONObject, old: JSONObject | None) -> list[Cause]:
    causes: Causes = []
    spec = obj["spec"]
    schedule = spec.get("schedule") or ""
    if not schedule:
        causes.append(required("spec.schedule"))
    else:
        try:
            check_schedule(schedule)
        except CronError as error:
            causes.append(invalid("spec.schedule", schedule, str(error)))
        if "TZ" in schedule and (old is None or old["spec"].get("schedule") != schedule):
            text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            causes.append(invalid("spec.schedule", schedule, text))
    not_negative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds", causes)
    zone = spec.get("timeZone")
    if zone is not None and (old is None or old["spec"].get("timeZone") != zone):
        _time_zone(zone, causes)
    policy = spec.get("concurrencyPolicy") or ""
    choice = ("Allow", "Forbid", "Replace")
    if not policy:
        causes.append(required("spec.concurrencyPolicy"))
    elif policy not in choice:
        causes.append(unsupported("spec.concurrencyPolicy", policy, choice))
    _job_template(spec.get("jobTemplate") or {}, "spec.jobTemplate", causes)
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        not_negative(spec.get(name), f"spec.{name}", causes)
    return causes


def _time_zone(zone: str, causes: Causes) -> None:
    if not zone:
        causes.append(invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string"))
        return
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        causes.append(invalid("spec.timeZone", zone, text))
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        causes.append(invalid("spec.timeZone", zone, f"unknown time zone {zone}"))


def _job_template(template: JSONObject, path: str, causes: Causes) -> None:
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    if metadata.get("annotations"):
        annotation_keys(metadata["annotations"], f"{path}.annotations", causes)
    if metadata.get("labels"):
        labels(metadata["labels"], f"{path}.labels", causes)
    _job_spec(spec, f"{path}.spec", causes, template_of_job=False)
    if spec.get("selector") is not None:
        shown = selector_shown(spec["selector"])
        causes.append(invalid_shown(f"{path}.spec.selector", shown, "`selector` will be auto-generated"))
    if spec.get("manualSelector"):
        causes.append(unsupported(f"{path}.spec.manualSelector", True, ("nil", "false")))
