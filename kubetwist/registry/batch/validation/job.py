"""Validation of Jobs; see kubernetes, C{pkg/apis/batch/validation/validation.go}."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ....api.errors import Cause, invalid, required, too_long, too_many
from ....api.gostructs import (
    go_struct,
    pod_spec_struct,
    pod_template_struct,
)
from ....api.jsontypes import JSONValue
from ....api.names import domain_prefixed_path_problems, is_dns1123_label_problems, qualified_name_problems
from ....api.objectmeta import Parts
from ....api.resource import JSONObject
from ...core.pod.validation.template import validate_template
from ...generic.validation.fields import (
    Causes,
    check,
    go_json,
    immutable,
    invalid_shown,
    invalid_without_value,
    is_selector,
    label_selector,
    not_negative,
    quote,
    selector_shown,
    selects,
    unsupported,
)
from .jobstatus import parse_intervals

_UID: Final = "batch.kubernetes.io/controller-uid"
_NAME: Final = "batch.kubernetes.io/job-name"
#: Of indexes, and of pods at a time; with limits for each of very many indexes it is fewer.
_MANY: Final = 100000
_FEWER: Final = 10000
_MOST_RULES: Final = 20
#: In bytes.
_LONGEST_MANAGER: Final = 63
_LONGEST_INDEXES: Final = 64 * 1024
_ONLY_INDEXED: Final = "requires indexed completion mode"


def validate_job(obj: JSONObject, prefixed: bool = True) -> list[Cause]:
    """
    A job as it may stand.

    @param prefixed: Whether its pods have to have the labels with prefixes, as all but very old ones have.
    """
    causes: Causes = []
    spec = obj["spec"]
    _generated(obj, spec, prefixed, causes)
    job_spec(spec, "spec", causes, template_of_job=True)
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        name = obj["metadata"].get("name") or ""
        hostname = f"{name}-{spec['completions'] - 1}"
        if is_dns1123_label_problems(hostname):
            text = f"will not able to create pod with invalid DNS label: {hostname}"
            causes.append(invalid("metadata.name", name, text))
    return causes


def _generated(obj: JSONObject, spec: JSONObject, prefixed: bool, causes: Causes) -> None:
    """The selector and the labels are the server's, unless the client takes charge of them."""
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    uid, name = obj["metadata"].get("uid") or "", obj["metadata"].get("name") or ""
    found = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    wanted = {"controller-uid": uid, "job-name": name}
    if prefixed:
        wanted |= {_UID: uid, _NAME: name}
    for label, value in wanted.items():
        if found.get(label) != value:
            path, text = f"spec.template.metadata.labels[{label}]", f"must be '{value}'"
            causes.append(invalid(path, found, text) if label in found else required(path, text))
    if is_selector(spec["selector"]) and not selects(spec["selector"], wanted):
        shown = selector_shown(spec["selector"])
        causes.append(invalid_shown("spec.selector", shown, "`selector` not auto-generated"))


def job_spec(spec: JSONObject, path: str, causes: Causes, *, template_of_job: bool) -> None:
    """Check the spec of a job, or of a cron job's template."""
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
    if spec.get("managedBy") is not None:
        _managed_by(spec["managedBy"], f"{path}.managedBy", causes)
    mode = spec.get("completionMode")
    if mode is not None:
        if mode not in ("NonIndexed", "Indexed"):
            causes.append(unsupported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
        if mode == "Indexed":
            _indexed(spec, path, causes)
    if mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                causes.append(invalid(f"{path}.{name}", spec[name], _ONLY_INDEXED))
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    if spec.get("podFailurePolicy") is not None:
        _failure_policy(spec, pod, f"{path}.podFailurePolicy", causes)
    if spec.get("successPolicy") is not None:
        _success_policy(spec, f"{path}.successPolicy", causes)
    if spec.get("podReplacementPolicy") is not None:
        replacement = spec["podReplacementPolicy"]
        where = f"{path}.podReplacementPolicy"
        if spec.get("podFailurePolicy") is not None and replacement != "Failed":
            causes.append(unsupported(where, replacement, ("Failed",)))
        elif replacement not in ("Failed", "TerminatingOrFailed"):
            causes.append(unsupported(where, replacement, ("Failed", "TerminatingOrFailed")))
    _template(template, pod, f"{path}.template", spec.get("podFailurePolicy") is not None, causes)
    if not template_of_job:
        return
    selector = spec.get("selector")
    if selector is None:
        causes.append(required(f"{path}.selector"))
        good = False
    else:
        before = len(causes)
        label_selector(selector, f"{path}.selector", causes)
        good = len(causes) == before
    found = (template.get("metadata") or {}).get("labels")
    # What is missing selects nothing; what makes no sense is told of above, and only that.
    if selector is None or (good and not selects(selector, found or {})):
        text = "`selector` does not match template `labels`"
        causes.append(invalid(f"{path}.template.metadata.labels", found, text))


def _managed_by(name: str, path: str, causes: Causes) -> None:
    for shown, text in domain_prefixed_path_problems(name):
        causes.append(invalid(path, shown, text) if text else required(path))
    if len(name.encode()) > _LONGEST_MANAGER:
        causes.append(too_long(path, _LONGEST_MANAGER))


def _indexed(spec: JSONObject, path: str, causes: Causes) -> None:
    """How many indexes there may be, and how many of them at once."""
    completions, parallelism, failed = (spec.get(name) for name in ("completions", "parallelism", "maxFailedIndexes"))
    if completions is None:
        causes.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism is not None and parallelism > _MANY:
        text = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        causes.append(invalid(f"{path}.parallelism", parallelism, text))
    if failed is not None:
        if completions is not None and failed > completions:
            causes.append(invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions"))
        if failed > _MANY:
            causes.append(invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MANY}"))
    if completions is None or completions <= _MANY or spec.get("backoffLimitPerIndex") is None:
        return
    if failed is None:
        text = f"must be specified when completions is above {_MANY}"
        causes.append(required(f"{path}.maxFailedIndexes", text))
    for name, value in (("parallelism", parallelism), ("maxFailedIndexes", failed)):
        if value is not None and value > _FEWER:
            text = (
                f"must be less than or equal to {_FEWER} when completions are above {_MANY} "
                "and used with backoff limit per index"
            )
            causes.append(invalid(f"{path}.{name}", value, text))


def _template(template: JSONObject, pod: JSONObject, path: str, has_failure_policy: bool, causes: Causes) -> None:
    validate_template(template, path, causes)
    policy = pod.get("restartPolicy") or ""
    if policy in ("", "Always"):
        causes.append(required(f"{path}.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        causes.append(unsupported(f"{path}.spec.restartPolicy", policy, ("OnFailure", "Never")))
    elif has_failure_policy and policy != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        causes.append(invalid(f"{path}.spec.restartPolicy", policy, text))


def _failure_policy(spec: JSONObject, pod: JSONObject, path: str, causes: Causes) -> None:
    rules = spec["podFailurePolicy"].get("rules") or []
    if len(rules) > _MOST_RULES:
        causes.append(too_many(f"{path}.rules", len(rules), _MOST_RULES))
    names = {container.get("name") for kind in ("containers", "initContainers") for container in pod.get(kind) or ()}
    for index, rule in enumerate(rules):
        here = f"{path}.rules[{index}]"
        action = rule.get("action") or ""
        choice = ("Count", "FailIndex", "FailJob", "Ignore")
        if not action:
            causes.append(required(f"{here}.action", f"valid values: {_listed(choice)}"))
        elif action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                causes.append(invalid(f"{here}.action", action, "requires the backoffLimitPerIndex to be set"))
        elif action not in choice:
            causes.append(unsupported(f"{here}.action", action, choice))
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is not None:
            _exit_codes(codes, names, f"{here}.onExitCodes", causes)
        _pod_conditions(conditions, f"{here}.onPodConditions", causes)
        if codes is not None and conditions:
            text = "specifying both OnExitCodes and OnPodConditions is not supported"
            causes.append(invalid_without_value(here, text))
        if codes is None and not conditions:
            text = "specifying one of OnExitCodes and OnPodConditions is required"
            causes.append(invalid_without_value(here, text))


def _listed(choice: Sequence[str]) -> str:
    """As Go prints a list of quoted texts."""
    return f"[{' '.join(map(quote, choice))}]"


def _pod_conditions(conditions: Sequence[JSONObject], path: str, causes: Causes) -> None:
    if len(conditions) > _MOST_RULES:
        causes.append(too_many(path, len(conditions), _MOST_RULES))
    choice = ("False", "True", "Unknown")
    for index, pattern in enumerate(conditions):
        check(pattern.get("type") or "", f"{path}[{index}].type", qualified_name_problems, causes)
        status, where = pattern.get("status") or "", f"{path}[{index}].status"
        if not status:
            causes.append(required(where, f"valid values: {_listed(choice)}"))
        elif status not in choice:
            causes.append(unsupported(where, status, choice))


def _success_policy(spec: JSONObject, path: str, causes: Causes) -> None:
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        causes.append(invalid_shown(path, go_json(go_struct(policy, _STRUCTS["successPolicy"])), _ONLY_INDEXED))
        return
    rules, completions = policy.get("rules") or [], spec.get("completions")
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        causes.append(required(f"{path}.rules", text))
    if len(rules) > _MOST_RULES:
        causes.append(too_many(f"{path}.rules", len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        _success_rule(rule, completions or 0, f"{path}.rules[{index}]", causes)


def _success_rule(rule: JSONObject, completions: int, path: str, causes: Causes) -> None:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        text = "at least one of succeededCount or succeededIndexes must be specified"
        causes.append(required(path, text))
    total = 0
    if indexes is not None:
        where = f"{path}.succeededIndexes"
        if len(indexes.encode()) > _LONGEST_INDEXES:
            causes.append(too_long(where, _LONGEST_INDEXES))
        try:
            total = sum(last - first + 1 for first, last in parse_intervals(indexes, completions))
        except ValueError as error:
            causes.append(invalid(where, indexes, f"error parsing succeededIndexes: {error}"))
    if count is None:
        return
    where = f"{path}.succeededCount"
    not_negative(count, where, causes)
    if count > completions:
        text = f"must be less than or equal to {completions} (the number of specified completions)"
        causes.append(invalid(where, count, text))
    if indexes is not None and count > total:
        text = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        causes.append(invalid(where, count, text))


def _exit_codes(codes: JSONObject, names: set[JSONValue], path: str, causes: Causes) -> None:
    operator = codes.get("operator") or ""
    if not operator:
        causes.append(required(f"{path}.operator", f"valid values: {_listed(('In', 'NotIn'))}"))
    elif operator not in ("In", "NotIn"):
        causes.append(unsupported(f"{path}.operator", operator, ("In", "NotIn")))
    if codes.get("containerName") is not None and codes["containerName"] not in names:
        text = "must be one of the container or initContainer names in the pod template"
        causes.append(invalid(f"{path}.containerName", codes["containerName"], text))
    values = codes.get("values") or []
    if not values:
        causes.append(invalid(f"{path}.values", codes.get("values"), "at least one value is required"))
    elif len(values) > 255:
        causes.append(too_many(f"{path}.values", len(values), 255))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            causes.append(invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in seen:
            causes.append(Cause("FieldValueDuplicate", f"Duplicate value: {value}", f"{path}.values[{index}]"))
        seen.add(value)
    if sorted(values) != values:
        causes.append(invalid(f"{path}.values", values, "must be ordered"))


def validate_job_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """
    What a job does stays; how much of it at once does not.

    The reference looks at the new job by itself before.
    """
    held_labels = ((old["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
    first = validate_job(obj, prefixed=_UID in held_labels and _NAME in held_labels)
    causes: Causes = []
    spec, before = obj["spec"], old["spec"]
    job_spec(spec, "spec", causes, template_of_job=True)
    completions, was = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != "Indexed":
        immutable(completions, was, "spec.completions", causes)
    elif completions not in (was, None, spec.get("parallelism") or 0):
        text = "can only be modified in tandem with spec.parallelism"
        causes.append(invalid("spec.completions", completions, text))
    immutable(
        spec.get("selector"), before.get("selector"), "spec.selector", causes, selector_shown(spec.get("selector"))
    )
    _template_update(spec.get("template") or {}, before.get("template") or {}, old, causes)
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        found, was = spec.get(name), before.get(name)
        if name in _STRUCTS and found is not None and found != was:
            immutable(found, was, f"spec.{name}", causes, go_json(go_struct(found, _STRUCTS[name])))
        else:
            immutable(found, was, f"spec.{name}", causes)
    return Parts(first, causes)


#: Fields that messages show as Go has them.
_STRUCTS: Final = {"podFailurePolicy": "batch.PodFailurePolicy", "successPolicy": "batch.SuccessPolicy"}


def _template_update(template: JSONObject, held: JSONObject, old: JSONObject, causes: Causes) -> None:
    """Of a job that is suspended, and has no pods, it may change where its pods go, and what containers ask for."""
    if not _pauses(old):
        if template != held:
            immutable(template, held, "spec.template", causes, go_json(pod_template_struct(template)))
        return
    pod, was = template.get("spec") or {}, dict(held.get("spec") or {})
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        _carry(was, pod, name)
    affinity = _other_affinity(was.get("affinity"), pod.get("affinity"))
    if affinity is None:
        was.pop("affinity", None)
    else:
        was["affinity"] = affinity
    for kind in ("containers", "initContainers"):
        containers, before = pod.get(kind) or [], was.get(kind) or []
        if containers and len(containers) == len(before):
            was[kind] = [_resized(*pair) for pair in zip(before, containers, strict=True)]
    if pod != was:
        immutable(pod, was, "spec.template.spec", causes, go_json(pod_spec_struct(pod)))


def _pauses(old: JSONObject) -> bool:
    if not old["spec"].get("suspend"):
        return False
    status = old.get("status") or {}
    suspended = any(
        one.get("type") == "Suspended" and one.get("status") == "True" for one in status.get("conditions") or ()
    )
    return (status.get("startTime") is None or suspended) and not status.get("active")


def _carry(target: JSONObject, source: JSONObject, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _other_affinity(old: JSONObject | None, new: JSONObject | None) -> JSONObject | None:
    """An affinity as it was, but for that to nodes, which is the new one's."""
    if old is None and new is None:
        return None
    kept = {name: part for name, part in (old or {}).items() if name != "nodeAffinity"}
    if new is None:
        return kept or None
    _carry(kept, new, "nodeAffinity")
    return kept


def _resized(container: JSONObject, new: JSONObject) -> JSONObject:
    """A container as it was, but for its resources, which are those of the new one if it is the same."""
    if container.get("name") != new.get("name"):
        return container
    resized = dict(container)
    _carry(resized, new, "resources")
    return resized
