"""Validation of Jobs; see kubernetes, C{pkg/apis/batch/validation/validation.go}."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from ....api.errors import MAX_LENGTH, FieldError, invalid, required, too_long, too_many
from ....api.featuregates import FeatureGates
from ....api.gostructs import (
    go_struct,
    pod_spec_struct,
    pod_template_struct,
)
from ....api.jsontypes import JSONValue
from ....api.names import validate_dns1123_label, validate_domain_prefixed_path, validate_qualified_name
from ....api.objectmeta import UpdateErrors
from ....api.resource import JSONObject
from ...core.pod.validation.options import PodValidationOptions
from ...core.pod.validation.template import validate_template
from ...generic.validation.fields import (
    ErrorList,
    check,
    go_json,
    immutable,
    invalid_selector,
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
#: Maximum number of indexes and of parallel pods; the second applies to large jobs with a backoff limit per index.
_MAX_INDEXES: Final = 100000
_MAX_INDEXES_OF_LARGE_JOB: Final = 10000
_MAX_RULES: Final = 20
#: Maximum lengths, in bytes.
_MAX_MANAGER_LENGTH: Final = 63
_MAX_INDEXES_LENGTH: Final = 64 * 1024
_ONLY_INDEXED: Final = "requires indexed completion mode"


@frozen
class JobUpdateRules:
    """
    The parts of the template of a suspended Job that may change, by feature gates.

    @ivar resources: Whether the resources of containers may change.
    @ivar directives: Whether the scheduling directives may change if the Job has no pods; otherwise only if it never
        started.
    @ivar unconfirmed: Whether a Job that never started needs no condition that it is suspended.
    """

    resources: bool
    directives: bool
    unconfirmed: bool

    @classmethod
    def from_features(cls, features: FeatureGates) -> JobUpdateRules:
        """Return the rules of a server."""
        return cls(
            features.enabled("MutablePodResourcesForSuspendedJobs"),
            features.enabled("MutableSchedulingDirectivesForSuspendedJobs"),
            features.since(1, 36),
        )


def validate_job(obj: JSONObject, options: PodValidationOptions, prefixed: bool = True) -> list[FieldError]:
    """
    Validate a Job.

    @param obj: The Job.
    @param options: What the server permits in templates.
    @param prefixed: Whether its pods must have the labels with a prefix, which jobs of old releases do not have.
    """
    errors: ErrorList = []
    spec = obj["spec"]
    _validate_generated_selector(obj, spec, prefixed, errors)
    validate_job_spec(spec, "spec", errors, options, has_selector=True)
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        name = obj["metadata"].get("name") or ""
        hostname = f"{name}-{spec['completions'] - 1}"
        if validate_dns1123_label(hostname):
            text = f"will not able to create pod with invalid DNS label: {hostname}"
            errors.append(invalid("metadata.name", name, text))
    return errors


def _validate_generated_selector(obj: JSONObject, spec: JSONObject, prefixed: bool, errors: ErrorList) -> None:
    """Validate that the selector and labels are the generated ones, unless C{manualSelector} is set."""
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    uid, name = obj["metadata"].get("uid") or "", obj["metadata"].get("name") or ""
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    generated = {"controller-uid": uid, "job-name": name}
    if prefixed:
        generated |= {_UID: uid, _NAME: name}
    for label, value in generated.items():
        if labels.get(label) != value:
            path, text = f"spec.template.metadata.labels[{label}]", f"must be '{value}'"
            errors.append(invalid(path, labels, text) if label in labels else required(path, text))
    if is_selector(spec["selector"]) and not selects(spec["selector"], generated):
        errors.append(invalid_selector("spec.selector", spec["selector"], "`selector` not auto-generated"))


def validate_job_spec(
    spec: JSONObject, path: str, errors: ErrorList, options: PodValidationOptions, *, has_selector: bool
) -> None:
    """
    Validate the spec of a Job, or of the job template of a CronJob.

    @param spec: The spec.
    @param path: Its path.
    @param errors: Receives the errors.
    @param options: What the server permits in templates.
    @param has_selector: Whether it is the spec of a Job, which has a selector.
    """
    names = (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
    )
    for name in names:
        not_negative(spec.get(name), f"{path}.{name}", errors)
    if spec.get("maxFailedIndexes") is not None:
        not_negative(spec["maxFailedIndexes"], f"{path}.maxFailedIndexes", errors)
        if spec.get("backoffLimitPerIndex") is None:
            text = "when maxFailedIndexes is specified"
            errors.append(required(f"{path}.backoffLimitPerIndex", text))
    if spec.get("managedBy") is not None:
        _validate_managed_by(spec["managedBy"], f"{path}.managedBy", errors)
    mode = spec.get("completionMode")
    if mode is not None:
        if mode not in ("NonIndexed", "Indexed"):
            errors.append(unsupported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
        if mode == "Indexed":
            _validate_indexed_job(spec, path, errors)
    if mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                errors.append(invalid(f"{path}.{name}", spec[name], _ONLY_INDEXED))
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    if spec.get("podFailurePolicy") is not None:
        _validate_failure_policy(spec, pod, f"{path}.podFailurePolicy", errors)
    if spec.get("successPolicy") is not None:
        _validate_success_policy(spec, f"{path}.successPolicy", errors)
    if spec.get("podReplacementPolicy") is not None:
        replacement = spec["podReplacementPolicy"]
        field_path = f"{path}.podReplacementPolicy"
        if spec.get("podFailurePolicy") is not None and replacement != "Failed":
            errors.append(unsupported(field_path, replacement, ("Failed",)))
        elif replacement not in ("Failed", "TerminatingOrFailed"):
            errors.append(unsupported(field_path, replacement, ("Failed", "TerminatingOrFailed")))
    validate_template(template, f"{path}.template", errors, options)
    _validate_restart_policy(pod, f"{path}.template", spec.get("podFailurePolicy") is not None, errors)
    if not has_selector:
        return
    selector = spec.get("selector")
    if selector is None:
        errors.append(required(f"{path}.selector"))
        is_valid = False
    else:
        before = len(errors)
        label_selector(selector, f"{path}.selector", errors)
        is_valid = len(errors) == before
    result = (template.get("metadata") or {}).get("labels")
    # A missing selector selects nothing; an invalid one has an error already.
    if selector is None or (is_valid and not selects(selector, result or {})):
        text = "`selector` does not match template `labels`"
        errors.append(invalid(f"{path}.template.metadata.labels", result, text))


def _validate_managed_by(name: str, path: str, errors: ErrorList) -> None:
    for shown, text in validate_domain_prefixed_path(name):
        errors.append(invalid(path, shown, text) if text else required(path))
    if len(name.encode()) > _MAX_MANAGER_LENGTH:
        errors.append(too_long(path, _MAX_MANAGER_LENGTH, earlier=MAX_LENGTH))


def _validate_indexed_job(spec: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate the numbers of indexes and of parallel pods."""
    completions, parallelism, failed = (spec.get(name) for name in ("completions", "parallelism", "maxFailedIndexes"))
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism is not None and parallelism > _MAX_INDEXES:
        text = f"must be less than or equal to {_MAX_INDEXES} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallelism, text))
    if failed is not None:
        if completions is not None and failed > completions:
            errors.append(invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions"))
        if failed > _MAX_INDEXES:
            errors.append(invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MAX_INDEXES}"))
    if completions is None or completions <= _MAX_INDEXES or spec.get("backoffLimitPerIndex") is None:
        return
    if failed is None:
        text = f"must be specified when completions is above {_MAX_INDEXES}"
        errors.append(required(f"{path}.maxFailedIndexes", text))
    for name, value in (("parallelism", parallelism), ("maxFailedIndexes", failed)):
        if value is not None and value > _MAX_INDEXES_OF_LARGE_JOB:
            text = (
                f"must be less than or equal to {_MAX_INDEXES_OF_LARGE_JOB} when completions are above {_MAX_INDEXES} "
                "and used with backoff limit per index"
            )
            errors.append(invalid(f"{path}.{name}", value, text))


def _validate_restart_policy(pod: JSONObject, path: str, has_failure_policy: bool, errors: ErrorList) -> None:
    policy = pod.get("restartPolicy") or ""
    if policy in ("", "Always"):
        errors.append(required(f"{path}.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        errors.append(unsupported(f"{path}.spec.restartPolicy", policy, ("OnFailure", "Never")))
    elif has_failure_policy and policy != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        errors.append(invalid(f"{path}.spec.restartPolicy", policy, text))


def _validate_failure_policy(spec: JSONObject, pod: JSONObject, path: str, errors: ErrorList) -> None:
    rules = spec["podFailurePolicy"].get("rules") or []
    if len(rules) > _MAX_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), _MAX_RULES))
    names = {container.get("name") for kind in ("containers", "initContainers") for container in pod.get(kind) or ()}
    for index, rule in enumerate(rules):
        item_path = f"{path}.rules[{index}]"
        action = rule.get("action") or ""
        choice = ("Count", "FailIndex", "FailJob", "Ignore")
        if not action:
            errors.append(required(f"{item_path}.action", f"valid values: {_quoted_choices(choice)}"))
        elif action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                errors.append(invalid(f"{item_path}.action", action, "requires the backoffLimitPerIndex to be set"))
        elif action not in choice:
            errors.append(unsupported(f"{item_path}.action", action, choice))
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is not None:
            _validate_exit_codes(codes, names, f"{item_path}.onExitCodes", errors)
        _validate_pod_conditions(conditions, f"{item_path}.onPodConditions", errors)
        if codes is not None and conditions:
            text = "specifying both OnExitCodes and OnPodConditions is not supported"
            errors.append(invalid_without_value(item_path, text))
        if codes is None and not conditions:
            text = "specifying one of OnExitCodes and OnPodConditions is required"
            errors.append(invalid_without_value(item_path, text))


def _quoted_choices(choice: Sequence[str]) -> str:
    """Return the choices as Go prints a slice of quoted strings."""
    return f"[{' '.join(map(quote, choice))}]"


def _validate_pod_conditions(conditions: Sequence[JSONObject], path: str, errors: ErrorList) -> None:
    if len(conditions) > _MAX_RULES:
        errors.append(too_many(path, len(conditions), _MAX_RULES))
    choice = ("False", "True", "Unknown")
    for index, pattern in enumerate(conditions):
        check(pattern.get("type") or "", f"{path}[{index}].type", validate_qualified_name, errors)
        status, field_path = pattern.get("status") or "", f"{path}[{index}].status"
        if not status:
            errors.append(required(field_path, f"valid values: {_quoted_choices(choice)}"))
        elif status not in choice:
            errors.append(unsupported(field_path, status, choice))


def _validate_success_policy(spec: JSONObject, path: str, errors: ErrorList) -> None:
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        shown, go_type = go_json(go_struct(policy, _STRUCTS["successPolicy"])), _STRUCTS["successPolicy"]
        errors.append(invalid_shown(path, shown, _ONLY_INDEXED, policy, go_type))
        return
    rules, completions = policy.get("rules") or [], spec.get("completions")
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", text))
    if len(rules) > _MAX_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), _MAX_RULES))
    for index, rule in enumerate(rules):
        _validate_success_rule(rule, completions or 0, f"{path}.rules[{index}]", errors)


def _validate_success_rule(rule: JSONObject, completions: int, path: str, errors: ErrorList) -> None:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        text = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(required(path, text))
    total = 0
    if indexes is not None:
        field_path = f"{path}.succeededIndexes"
        if len(indexes.encode()) > _MAX_INDEXES_LENGTH:
            errors.append(too_long(field_path, _MAX_INDEXES_LENGTH))
        try:
            total = sum(last - first + 1 for first, last in parse_intervals(indexes, completions))
        except ValueError as error:
            errors.append(invalid(field_path, indexes, f"error parsing succeededIndexes: {error}"))
    if count is None:
        return
    field_path = f"{path}.succeededCount"
    not_negative(count, field_path, errors)
    if count > completions:
        text = f"must be less than or equal to {completions} (the number of specified completions)"
        errors.append(invalid(field_path, count, text))
    if indexes is not None and count > total:
        text = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        errors.append(invalid(field_path, count, text))


def _validate_exit_codes(codes: JSONObject, names: set[JSONValue], path: str, errors: ErrorList) -> None:
    operator = codes.get("operator") or ""
    if not operator:
        errors.append(required(f"{path}.operator", f"valid values: {_quoted_choices(('In', 'NotIn'))}"))
    elif operator not in ("In", "NotIn"):
        errors.append(unsupported(f"{path}.operator", operator, ("In", "NotIn")))
    if codes.get("containerName") is not None and codes["containerName"] not in names:
        text = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", codes["containerName"], text))
    values = codes.get("values") or []
    if not values:
        errors.append(invalid(f"{path}.values", codes.get("values"), "at least one value is required"))
    elif len(values) > 255:
        errors.append(too_many(f"{path}.values", len(values), 255))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in seen:
            errors.append(FieldError("FieldValueDuplicate", f"Duplicate value: {value}", f"{path}.values[{index}]"))
        seen.add(value)
    if sorted(values) != values:
        errors.append(invalid(f"{path}.values", values, "must be ordered"))


def validate_job_update(
    obj: JSONObject, old: JSONObject, options: PodValidationOptions, rules: JobUpdateRules
) -> list[FieldError]:
    """
    Validate a Job and that its immutable fields are unchanged.

    The errors of the new object come first, as in the reference.

    @param obj: The Job.
    @param old: The stored Job.
    @param options: What the server permits in templates.
    @param rules: The parts of the template that may change.
    """
    held_labels = ((old["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
    first = validate_job(obj, options, prefixed=_UID in held_labels and _NAME in held_labels)
    errors: ErrorList = []
    spec, before = obj["spec"], old["spec"]
    validate_job_spec(spec, "spec", errors, options, has_selector=True)
    completions, was = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != "Indexed":
        immutable(completions, was, "spec.completions", errors)
    elif completions not in (was, None, spec.get("parallelism") or 0):
        text = "can only be modified in tandem with spec.parallelism"
        errors.append(invalid("spec.completions", completions, text))
    selector, shown = spec.get("selector"), selector_shown(spec.get("selector"))
    immutable(selector, before.get("selector"), "spec.selector", errors, shown, go_type="*v1.LabelSelector")
    _validate_template_update(spec.get("template") or {}, before.get("template") or {}, old, rules, errors)
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        result, was = spec.get(name), before.get(name)
        if name in _STRUCTS and result is not None and result != was:
            immutable(
                result, was, f"spec.{name}", errors, go_json(go_struct(result, _STRUCTS[name])), go_type=_STRUCTS[name]
            )
        else:
            immutable(result, was, f"spec.{name}", errors)
    return UpdateErrors(first, errors)


#: Fields that messages show as Go has them.
_STRUCTS: Final = {"podFailurePolicy": "batch.PodFailurePolicy", "successPolicy": "batch.SuccessPolicy"}


def _validate_template_update(
    template: JSONObject, comparable: JSONObject, old: JSONObject, rules: JobUpdateRules, errors: ErrorList
) -> None:
    """
    Validate a change of the template: a suspended job without pods may change scheduling directives and resources.

    @param template: The new template.
    @param comparable: The stored template.
    @param old: The stored Job.
    @param rules: The parts of the template that may change.
    @param errors: Receives the errors.
    """
    if _may_change_directives(old, rules):
        pod = template.get("spec") or {}
        comparable = _with_directives(comparable, template, pod)
    if not (old["spec"].get("suspend") and rules.resources and _may_change_template(old, rules)):
        if template != comparable:
            immutable(
                template,
                comparable,
                "spec.template",
                errors,
                go_json(pod_template_struct(template)),
                go_type="core.PodTemplateSpec",
            )
        return
    pod, was = template.get("spec") or {}, dict(comparable.get("spec") or {})
    for kind in ("containers", "initContainers"):
        containers, before = pod.get(kind) or [], was.get(kind) or []
        if containers and len(containers) == len(before):
            was[kind] = [_with_resources(*pair) for pair in zip(before, containers, strict=True)]
    if pod != was:
        immutable(pod, was, "spec.template.spec", errors, go_json(pod_spec_struct(pod)), go_type="core.PodSpec")


def _with_directives(comparable: JSONObject, template: JSONObject, pod: JSONObject) -> JSONObject:
    """Return the stored template with the labels, annotations and scheduling directives of the new one."""
    was, metadata = dict(comparable.get("spec") or {}), dict(comparable.get("metadata") or {})
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        _copy_field(was, pod, name)
    for name in ("labels", "annotations"):
        _copy_field(metadata, template.get("metadata") or {}, name)
    affinity = _with_node_affinity(was.get("affinity"), pod.get("affinity"))
    if affinity is None:
        was.pop("affinity", None)
    else:
        was["affinity"] = affinity
    return {**comparable, "metadata": metadata, "spec": was}


def _may_change_directives(old: JSONObject, rules: JobUpdateRules) -> bool:
    if not old["spec"].get("suspend"):
        return False
    if rules.directives:
        return _may_change_template(old, rules)
    return (old.get("status") or {}).get("startTime") is None


def _may_change_template(old: JSONObject, rules: JobUpdateRules) -> bool:
    """Return whether a suspended Job has no pods: it never started, or a condition confirms that it is suspended."""
    status = old.get("status") or {}
    suspended = any(
        one.get("type") == "Suspended" and one.get("status") == "True" for one in status.get("conditions") or ()
    )
    never_started = rules.unconfirmed and status.get("startTime") is None
    return (never_started or suspended) and not status.get("active")


def _copy_field(target: JSONObject, source: JSONObject, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _with_node_affinity(old: JSONObject | None, new: JSONObject | None) -> JSONObject | None:
    """Return the old affinity with the new node affinity."""
    if old is None and new is None:
        return None
    affinity = {name: part for name, part in (old or {}).items() if name != "nodeAffinity"}
    if new is None:
        return affinity or None
    _copy_field(affinity, new, "nodeAffinity")
    return affinity


def _with_resources(container: JSONObject, new: JSONObject) -> JSONObject:
    """Return the old container with the new resources, if both have the same name."""
    if container.get("name") != new.get("name"):
        return container
    resized = dict(container)
    _copy_field(resized, new, "resources")
    return resized
