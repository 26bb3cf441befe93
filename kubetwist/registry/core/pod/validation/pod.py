"""Validation of new pods, and of annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .....api.errors import FieldError, forbidden, invalid, required
from .....api.resource import JSONObject
from ....generic.validation.fields import ErrorList, local_path, quote, unsupported_string
from ..warnings import APP_ARMOR, SECCOMP, SECCOMP_POD
from .containers import trimmed_image
from .options import DELETION_COST, PodValidationOptions, is_deletion_cost
from .spec import MIRROR, validate_pod_spec, with_paths

_PATH: Final = "metadata.annotations"
#: The names of profile types in deprecated annotations, for seccomp and AppArmor.
_SECCOMP_NAMES: Final = {"RuntimeDefault": ("runtime/default", "docker/default"), "Unconfined": ("unconfined",)}
_APP_ARMOR_NAMES: Final = {"RuntimeDefault": ("runtime/default",), "Unconfined": ("unconfined",)}


def validate_pod(obj: JSONObject, errors: ErrorList, options: PodValidationOptions) -> None:
    """
    Validate a new or changed pod.

    @param obj: The pod.
    @param errors: Receives the errors.
    @param options: What the server permits.
    """
    spec, metadata = obj["spec"], obj["metadata"]
    if metadata.get("annotations"):
        validate_pod_annotations(metadata["annotations"], spec, _PATH, errors, options)
    validate_pod_spec(spec, "spec", errors, options, pod=metadata)
    if not spec.get("serviceAccountName"):
        for index, volume in enumerate(spec.get("volumes") or ()):
            for position, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    field_path = f"spec.volumes[{index}].projected.sources[{position}].serviceAccountToken"
                    errors.append(forbidden(field_path, "must not be specified when serviceAccountName is not set"))
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            trimmed_image(container, f"spec.{kind}[{index}]", errors)


def validate_pod_create(obj: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Return the validation errors of a new pod."""
    errors: ErrorList = []
    validate_pod(obj, errors, options)
    spec = obj["spec"]
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    validate_profile_annotations(obj["metadata"].get("annotations"), spec, "spec", errors)
    return errors


def validate_profile_annotations(
    annotations: JSONObject | None, spec: JSONObject, path: str, errors: ErrorList
) -> None:
    """
    Validate that deprecated annotations of profiles match the fields of a new pod.

    @param annotations: The annotations.
    @param spec: The spec of the pod.
    @param path: The field path of the spec.
    @param errors: Receives the errors.
    """
    if annotations:
        _seccomp_matches(annotations, spec, path, errors)
        if (spec.get("os") or {}).get("name") != "windows":
            _app_armor_matches(annotations, spec, path, errors)


def validate_annotation_update(
    obj: JSONObject, old: JSONObject, errors: ErrorList, options: PodValidationOptions
) -> None:
    """
    Validate that annotations for kubelets are unchanged, and the other annotations.

    @param obj: The pod.
    @param old: The stored pod.
    @param errors: Receives the errors.
    @param options: What the server permits.
    """
    new, was = obj["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    for before, text in ((True, "may not remove or update"), (False, "may not add")):
        for key in sorted(was if before else new.keys() - was.keys()):
            if before and new.get(key) == was[key]:
                continue
            if key.startswith(APP_ARMOR):
                errors.append(forbidden(f"{_PATH}[{key}]", f"{text} AppArmor annotations"))
            elif key == MIRROR:
                errors.append(forbidden(f"{_PATH}[{key}]", f"{text} mirror pod annotation"))
    if new:
        validate_pod_annotations(new, obj["spec"], _PATH, errors, options)


def validate_pod_annotations(
    annotations: JSONObject, spec: JSONObject, path: str, errors: ErrorList, options: PodValidationOptions
) -> None:
    """
    Validate the annotations of a pod that have a meaning for pods.

    @param annotations: The annotations.
    @param spec: The spec of the pod.
    @param path: The field path of the annotations.
    @param errors: Receives the errors.
    @param options: What the server permits.
    """
    if MIRROR in annotations and not spec.get("nodeName"):
        text = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{MIRROR}]", annotations[MIRROR], text))
    cost = annotations.get(DELETION_COST)
    if cost is not None and not is_deletion_cost(cost) and options.validates_deletion_cost():
        errors.append(invalid(f"{path}[{DELETION_COST}]", cost, "must be a 32bit integer"))
    for key in sorted(annotations, key=lambda key: (key != SECCOMP_POD, key)):
        if key == SECCOMP_POD or key.startswith(SECCOMP):
            _seccomp(annotations[key], f"{path}.{key}", errors)
    profile_keys = [key for key in sorted(annotations) if key.startswith(APP_ARMOR)]
    names = {container.get("name") for container, _ in with_paths(spec, "spec")} if profile_keys else set()
    for key in profile_keys:
        name, profile = key.removeprefix(APP_ARMOR), annotations[key]
        if name not in names:
            errors.append(invalid(f"{path}[{key}]", name, "container not found"))
        if profile not in ("", "runtime/default", "unconfined") and not profile.startswith("localhost/"):
            text = f"invalid AppArmor profile name: {quote(profile)}"
            errors.append(invalid(f"{path}[{key}]", profile, text))


def _seccomp(profile: str, path: str, errors: ErrorList) -> None:
    """Validate a deprecated seccomp annotation."""
    if profile.startswith("localhost/"):
        local_path(profile.removeprefix("localhost/"), path, errors)
    elif profile not in ("runtime/default", "docker/default", "unconfined"):
        errors.append(invalid(path, profile, "must be a valid seccomp profile"))


def _seccomp_matches(annotations: JSONObject, spec: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate that seccomp annotations match the fields."""
    profile = (spec.get("securityContext") or {}).get("seccompProfile")
    if profile is not None and SECCOMP_POD in annotations:
        field_path = f"{path}.securityContext.seccompProfile"
        _matches(annotations[SECCOMP_POD], profile, _SECCOMP_NAMES, field_path, "seccomp", errors)
    for container, field_path in with_paths(spec, path):
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        text = annotations.get(SECCOMP + (container.get("name") or ""))
        if profile is not None and text is not None:
            _matches(text, profile, _SECCOMP_NAMES, f"{field_path}.securityContext.seccompProfile", "seccomp", errors)


def _app_armor_matches(annotations: JSONObject, spec: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate that AppArmor annotations match the fields of the container or the pod."""
    pod_profile = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container, field_path in with_paths(spec, path):
        container_profile = (container.get("securityContext") or {}).get("appArmorProfile")
        profile = pod_profile if container_profile is None else container_profile
        text = annotations.get(APP_ARMOR + (container.get("name") or ""))
        if profile is not None and text is not None:
            _matches(
                text, profile, _APP_ARMOR_NAMES, f"{field_path}.securityContext.appArmorProfile", "apparmor", errors
            )


def _matches(
    text: str, profile: JSONObject, names: Mapping[str, tuple[str, ...]], path: str, what: str, errors: ErrorList
) -> None:
    kind = profile.get("type") or ""
    if kind == "Localhost":
        good = text.startswith("localhost/")
        if good and text.removeprefix("localhost/") != profile.get("localhostProfile"):
            detail = f"{what} profile in annotation and field must match"
            errors.append(forbidden(f"{path}.localhostProfile", detail))
    else:
        good = kind not in names or text in names[kind]
    if not good:
        errors.append(forbidden(f"{path}.type", f"{what} type in annotation and field must match"))


def validate_binding(obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of a binding."""
    errors: ErrorList = []
    target = obj.get("target") or {}
    if target.get("kind") and target["kind"] != "Node":
        errors.append(unsupported_string("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required("target.name"))
    return errors
