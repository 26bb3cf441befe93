"""Validation of Deployments, ReplicaSets, DaemonSets, StatefulSets; see kubernetes, C{pkg/apis/apps/validation}."""

from __future__ import annotations

from typing import Any, Final

from ...api.errors import FieldError, forbidden, go_json, invalid, required
from ...api.objectmeta import UpdateErrors
from ...api.resource import JSONObject
from ..core.persistentvolumeclaim.validation import validate_claim_spec
from ..core.pod.validation.options import PodValidationOptions
from ..core.pod.validation.template import always_restarts, template_metadata, validate_template
from ..core.replicationcontroller.validation import check_within_replicas
from ..generic.validation.fields import (
    ErrorList,
    at_most_whole,
    check,
    dns_label,
    immutable,
    invalid_name,
    invalid_selector,
    invalid_shown,
    invalid_without_value,
    label_selector,
    not_negative,
    number_or_percent,
    selector_empty,
    selector_shown,
    selects,
    share_or_number,
    unsupported,
)
from .conversion import ROLLBACK_TO

_STATEFUL_SET: Final = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)


# --- templates ---------------------------------------------------------------------------------------------------


#: The Go type of numbers of pods that may be percentages.
_COUNT: Final = "intstr.IntOrString"


def _validate_selected_template(
    spec: JSONObject, path: str, owner: str, errors: ErrorList, options: PodValidationOptions
) -> None:
    """Validate a template: the selector must match its labels, and its restart policy must be C{Always}."""
    template = spec.get("template") or {}
    _validate_template_labels(spec.get("selector"), template, path, errors)
    validate_template(template, path, errors, options)
    always_restarts(template.get("spec") or {}, path, owner, errors)


def _validate_template_labels(selector: JSONObject | None, template: JSONObject, path: str, errors: ErrorList) -> None:
    labels = (template.get("metadata") or {}).get("labels")
    # An empty selector has an error already; a missing one matches nothing.
    if selector is None or not (selector_empty(selector) or selects(selector, labels or {})):
        text = "`selector` does not match template `labels`"
        errors.append(invalid(f"{path}.metadata.labels", labels, text, "map[string]string"))


def _validate_selector(spec: JSONObject, owner: str, errors: ErrorList) -> bool:
    """Validate a required selector that is not empty; return whether it is usable."""
    selector = spec.get("selector")
    if selector is None:
        errors.append(required("spec.selector"))
        return True
    before = len(errors)
    label_selector(selector, "spec.selector", errors)
    if selector_empty(selector):
        errors.append(invalid_selector("spec.selector", selector, f"empty selector is invalid for {owner}"))
    return len(errors) == before or selector_empty(selector)


def _add_invalid_selector(spec: JSONObject, errors: ErrorList) -> None:
    errors.append(invalid_selector("spec.selector", spec.get("selector"), "invalid label selector"))


def _validate_immutable_selector(obj: JSONObject, old: JSONObject, errors: ErrorList) -> None:
    new_selector, old_selector = obj["spec"].get("selector"), (old.get("spec") or {}).get("selector")
    shown = selector_shown(new_selector)
    immutable(new_selector, old_selector, "spec.selector", errors, shown, go_type="*v1.LabelSelector")


# --- deployments -------------------------------------------------------------------------------------------------


def validate_deployment(obj: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Validate a Deployment."""
    errors: ErrorList = []
    spec = obj["spec"]
    not_negative(spec.get("replicas"), "spec.replicas", errors)
    if _validate_selector(spec, "deployment", errors):
        _validate_selected_template(spec, "spec.template", "ReplicaSet", errors, options)
    else:
        _add_invalid_selector(spec, errors)
    _validate_deployment_strategy(spec.get("strategy") or {}, errors)
    for name in ("minReadySeconds", "revisionHistoryLimit"):
        not_negative(spec.get(name), f"spec.{name}", errors)
    revision = (obj["metadata"].get("annotations") or {}).get(ROLLBACK_TO)
    if revision is not None:
        not_negative(int(revision), "spec.rollback.version", errors)
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        not_negative(deadline, "spec.progressDeadlineSeconds", errors)
        if deadline <= (spec.get("minReadySeconds") or 0):
            text = "must be greater than minReadySeconds"
            errors.append(invalid("spec.progressDeadlineSeconds", deadline, text))
    return errors


def _validate_deployment_strategy(strategy: JSONObject, errors: ErrorList) -> None:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    path = "spec.strategy"
    if kind == "Recreate":
        if rolling is not None:
            text = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(forbidden(f"{path}.rollingUpdate", text))
    elif kind == "RollingUpdate":
        if rolling is None:
            text = "this should be defaulted and never be nil"
            errors.append(required(f"{path}.rollingUpdate", text))
        else:
            _validate_rolling_update(rolling, f"{path}.rollingUpdate", errors)
    else:
        shown = {"Type": kind or "", "RollingUpdate": _rolling_update_shown(rolling)}
        choice = ("Recreate", "RollingUpdate")
        errors.append(unsupported(path, shown, choice, strategy, "apps.DeploymentStrategy"))


def _rolling_update_shown(rolling: JSONObject | None) -> JSONObject | None:
    if rolling is None:
        return None
    max_unavailable, max_surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    return {
        "MaxUnavailable": 0 if max_unavailable is None else max_unavailable,
        "MaxSurge": 0 if max_surge is None else max_surge,
    }


def _validate_rolling_update(rolling: JSONObject, path: str, errors: ErrorList) -> None:
    max_unavailable, max_surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    number_or_percent(max_unavailable, f"{path}.maxUnavailable", errors)
    number_or_percent(max_surge, f"{path}.maxSurge", errors)
    if share_or_number(max_unavailable) == 0 and share_or_number(max_surge) == 0:
        errors.append(invalid(f"{path}.maxUnavailable", max_unavailable, "may not be 0 when `maxSurge` is 0", _COUNT))
    at_most_whole(max_unavailable, f"{path}.maxUnavailable", errors)


def validate_deployment_update(obj: JSONObject, old: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Validate a Deployment and that its selector is unchanged."""
    errors = validate_deployment(obj, options)
    _validate_immutable_selector(obj, old, errors)
    return errors


def validate_deployment_status(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate the replica counts and their relations."""
    errors: ErrorList = []
    status = obj.get("status") or {}
    before = old.get("status") or {}
    names = (
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    )
    for name in names:
        not_negative(status.get(name), f"status.{name}", errors)
    check_within_replicas(status, ("updatedReplicas", "readyReplicas", "availableReplicas"), errors)
    if (status.get("availableReplicas") or 0) > (status.get("readyReplicas") or 0):
        text = "cannot be greater than readyReplicas"
        errors.append(invalid("status.availableReplicas", status.get("availableReplicas") or 0, text))
    _validate_not_decremented(status, before, errors)
    return errors


def _validate_not_decremented(status: JSONObject, before: JSONObject, errors: ErrorList) -> None:
    count, old_count = status.get("collisionCount"), before.get("collisionCount")
    if old_count is not None and (count is None or count < old_count):
        errors.append(invalid("status.collisionCount", count or 0, "cannot be decremented"))


# --- replica sets ------------------------------------------------------------------------------------------------


def validate_replica_set(obj: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Validate a ReplicaSet."""
    errors: ErrorList = []
    spec = obj["spec"]
    for name in ("replicas", "minReadySeconds"):
        not_negative(spec.get(name), f"spec.{name}", errors)
    if _validate_selector(spec, "deployment", errors):
        _validate_selected_template(spec, "spec.template", "ReplicaSet", errors, options)
    else:
        _add_invalid_selector(spec, errors)
    return errors


def validate_replica_set_update(obj: JSONObject, old: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Validate a ReplicaSet and that its selector is unchanged."""
    errors = validate_replica_set(obj, options)
    _validate_immutable_selector(obj, old, errors)
    return errors


# --- daemon sets -------------------------------------------------------------------------------------------------


def validate_daemon_set(obj: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Validate a DaemonSet."""
    errors: ErrorList = []
    spec = obj["spec"]
    template, selector = spec.get("template") or {}, spec.get("selector")
    label_selector(selector, "spec.selector", errors)
    if not errors:
        # Only this kind does not require a selector; a missing one matches nothing.
        _validate_template_labels(selector, template, "spec.template", errors)
    if selector is not None and selector_empty(selector):
        errors.append(invalid_selector("spec.selector", selector, "empty selector is invalid for daemonset"))
    validate_template(template, "spec.template", errors, options)
    always_restarts(template.get("spec") or {}, "spec.template", "DaemonSet", errors)
    for name in ("minReadySeconds", "templateGeneration"):
        not_negative(spec.get(name), f"spec.{name}", errors)
    strategy = spec.get("updateStrategy") or {}
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    path = "spec.updateStrategy"
    if kind == "RollingUpdate":
        if rolling is None:
            errors.append(required(f"{path}.rollingUpdate"))
        else:
            _validate_daemon_rolling_update(rolling, f"{path}.rollingUpdate", errors)
    elif kind != "OnDelete":
        shown = {"Type": kind or "", "RollingUpdate": _rolling_update_shown(rolling)}
        errors.append(unsupported(path, shown, ("RollingUpdate", "OnDelete"), strategy, "apps.DaemonSetUpdateStrategy"))
    not_negative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit", errors)
    return errors


def _validate_daemon_rolling_update(rolling: JSONObject, path: str, errors: ErrorList) -> None:
    max_unavailable, max_surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    number_or_percent(max_unavailable, f"{path}.maxUnavailable", errors)
    number_or_percent(max_surge, f"{path}.maxSurge", errors)
    at_most_whole(max_unavailable, f"{path}.maxUnavailable", errors)
    at_most_whole(max_surge, f"{path}.maxSurge", errors)
    if share_or_number(max_unavailable) and share_or_number(max_surge):
        errors.append(invalid(f"{path}.maxSurge", max_surge, "may not be set when maxUnavailable is non-zero", _COUNT))
    if not share_or_number(max_unavailable) and not share_or_number(max_surge):
        errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))


def validate_daemon_set_update(obj: JSONObject, old: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Validate an update; errors of the immutable selector come first."""
    errors: ErrorList = []
    _validate_immutable_selector(obj, old, errors)
    return errors + validate_daemon_set(obj, options)


def validate_daemon_set_status(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate the pod counts; C{collisionCount} must not decrease."""
    errors: ErrorList = []
    status = obj.get("status") or {}
    names = (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    )
    for name in names:
        not_negative(status.get(name), f"status.{name}", errors)
    _validate_not_decremented(status, old.get("status") or {}, errors)
    return errors


# --- stateful sets -----------------------------------------------------------------------------------------------


def validate_stateful_set(
    obj: JSONObject, options: PodValidationOptions, old: JSONObject | None = None
) -> list[FieldError]:
    """
    Validate a StatefulSet.

    @param obj: The StatefulSet.
    @param options: What the server permits in templates.
    @param old: The stored StatefulSet, whose errors are ignored; L{None} when it is created.
    """
    errors: ErrorList = []
    spec = obj["spec"]
    policy = spec.get("podManagementPolicy") or ""
    if not policy:
        errors.append(required("spec.podManagementPolicy"))
    elif policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid_name("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    recreates = options.features.enabled("StatefulSetRecreateStrategy") or (
        old is not None and (old["spec"].get("updateStrategy") or {}).get("type") == "Recreate"
    )
    _validate_stateful_strategy(spec.get("updateStrategy") or {}, recreates, errors)
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for name in ("whenDeleted", "whenScaled"):
        if retention and retention.get(name) not in ("Retain", "Delete"):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
            errors.append(unsupported(path, retention.get(name) or "", ("Retain", "Delete")))
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or () if old is None else ()):
        validate_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec", errors)
    for name in ("replicas", "minReadySeconds"):
        not_negative(spec.get(name), f"spec.{name}", errors)
    if spec.get("ordinals") is not None:
        not_negative(spec["ordinals"].get("start"), "spec.ordinals.start", errors)
    if spec.get("serviceName") and old is None:
        check(spec["serviceName"], "spec.serviceName", dns_label, errors)
    template = spec.get("template") or {}
    if _validate_selector(spec, "statefulset", errors):
        _validate_template_labels(spec.get("selector"), template, "spec.template", errors)
        if old is None or not _validate_template(old["spec"], options):
            errors.extend(_validate_template(spec, options))
        # The reference validates them separately, too.
        template_metadata(template, "spec.template", errors, options)
    else:
        errors.append(invalid_without_value("spec.selector", selector_shown(spec.get("selector"))))
    always_restarts(template.get("spec") or {}, "spec.template", "StatefulSet", errors)
    return errors


def _validate_template(spec: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """
    Validate a template as its pods will be.

    Volumes for the claims are added before the template's volumes. The controller sets the hostname when it creates a
    pod.
    """
    errors: ErrorList = []
    template = spec.get("template") or {}
    pod = {name: value for name, value in (template.get("spec") or {}).items() if name not in ("hostname", "subdomain")}
    template = {**template, "spec": pod}
    claims = spec.get("volumeClaimTemplates") or ()
    names = dict.fromkeys((claim.get("metadata") or {}).get("name") or "" for claim in claims)
    if names:
        volumes: list[JSONObject] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
        volumes += [volume for volume in pod.get("volumes") or () if (volume.get("name") or "") not in names]
        template = {**template, "spec": {**pod, "volumes": volumes}}
    validate_template(template, "spec.template", errors, options)
    return errors


def _validate_stateful_strategy(strategy: JSONObject, recreates: bool, errors: ErrorList) -> None:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    path = "spec.updateStrategy"
    if not kind:
        errors.append(required(path))
    elif kind == "OnDelete" or (kind == "Recreate" and recreates):
        if rolling is not None:
            text = "only allowed for updateStrategy 'RollingUpdate'"
            shown, go_type = go_json(_partition_shown(rolling)), "apps.RollingUpdateStatefulSetStrategy"
            errors.append(invalid_shown(f"{path}.rollingUpdate", shown, text, rolling, go_type))
    elif kind == "RollingUpdate":
        if rolling is not None:
            not_negative(rolling.get("partition"), f"{path}.rollingUpdate.partition", errors)
            max_unavailable: Any = rolling.get("maxUnavailable")
            if max_unavailable is not None:
                number_or_percent(max_unavailable, f"{path}.rollingUpdate.maxUnavailable", errors)
                if share_or_number(max_unavailable) == 0:
                    errors.append(
                        invalid(f"{path}.rollingUpdate.maxUnavailable", max_unavailable, "cannot be 0", _COUNT)
                    )
                at_most_whole(max_unavailable, f"{path}.rollingUpdate.maxUnavailable", errors)
    else:
        shown = go_json({"Type": kind, "RollingUpdate": _partition_shown(rolling)})
        text = "must be 'RollingUpdate' or 'OnDelete'"
        errors.append(invalid_shown(path, shown, text, strategy, "apps.StatefulSetUpdateStrategy"))


def _partition_shown(rolling: JSONObject | None) -> JSONObject | None:
    if rolling is None:
        return None
    return {"Partition": rolling.get("partition") or 0, "MaxUnavailable": rolling.get("maxUnavailable")}


def validate_stateful_set_update(obj: JSONObject, old: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Validate that the identity and storage of the pods are unchanged."""
    errors = validate_stateful_set(obj, options, old)
    spec, before = obj["spec"], old["spec"]
    changed = any(
        spec.get(name) != before.get(name) for name in spec.keys() | before.keys() if name not in _STATEFUL_SET
    )
    if changed:
        text = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        errors.append(forbidden("spec", text))
    return errors


def validate_stateful_set_status(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate the replica counts and their relations."""
    errors: ErrorList = []
    status = obj.get("status") or {}
    names = (
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    )
    for name in names:
        not_negative(status.get(name), f"status.{name}", errors)
    check_within_replicas(status, ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"), errors)
    if (status.get("availableReplicas") or 0) > (status.get("readyReplicas") or 0):
        text = "cannot be greater than status.readyReplicas"
        errors.append(invalid("status.availableReplicas", status.get("availableReplicas") or 0, text))
    _validate_not_decremented(status, old.get("status") or {}, errors)
    return UpdateErrors(errors)


# --- controller revisions ----------------------------------------------------------------------------------------


def validate_controller_revision(obj: JSONObject) -> list[FieldError]:
    """Validate that a ControllerRevision has data and a revision."""
    errors: ErrorList = []
    not_negative(obj.get("revision"), "revision", errors)
    if obj.get("data") is None:
        errors.append(required("data", "data is mandatory"))
    elif not isinstance(obj["data"], dict):
        errors.append(required("data", "data must be a valid JSON object"))
    return errors


def validate_controller_revision_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that the data is unchanged."""
    errors: ErrorList = []
    not_negative(obj.get("revision"), "revision", errors)
    shown = go_json(obj.get("data"), sort_keys=True, raw=True)
    immutable(obj.get("data"), old.get("data"), "data", errors, shown, untyped=True, go_type="runtime.RawExtension")
    return errors
