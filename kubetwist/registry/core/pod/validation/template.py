"""Validation of pod templates; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from typing import Final

from .....api.errors import forbidden, too_long
from .....api.names import byte_length
from .....api.resource import JSONObject
from ....generic.validation.fields import ErrorList, annotation_keys, labels, unsupported
from .options import PodValidationOptions
from .pod import validate_pod_annotations, validate_profile_annotations
from .spec import validate_pod_spec

_MAX_ANNOTATIONS_SIZE: Final = 256 * 1024


def validate_template(template: JSONObject, path: str, errors: ErrorList, options: PodValidationOptions) -> None:
    """
    Validate a pod template; the field paths of labels and annotations are those of the reference.

    @param template: The template.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param options: What the server permits.
    """
    template_metadata(template, path, errors, options)
    spec = template.get("spec") or {}
    validate_pod_spec(spec, f"{path}.spec", errors, options)
    validate_profile_annotations((template.get("metadata") or {}).get("annotations"), spec, f"{path}.spec", errors)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))


def template_metadata(template: JSONObject, path: str, errors: ErrorList, options: PodValidationOptions) -> None:
    """Check the labels, annotations of a pod template; see L{validate_template}."""
    metadata = template.get("metadata") or {}
    if metadata.get("labels"):
        labels(metadata["labels"], f"{path}.labels", errors)
    if metadata.get("annotations"):
        annotation_keys(metadata["annotations"], f"{path}.annotations", errors)
        size = sum(byte_length(key) + byte_length(value) for key, value in metadata["annotations"].items())
        if size > _MAX_ANNOTATIONS_SIZE:
            errors.append(too_long(f"{path}.annotations", _MAX_ANNOTATIONS_SIZE))
        spec = template.get("spec") or {}
        validate_pod_annotations(metadata["annotations"], spec, f"{path}.annotations", errors, options)


def always_restarts(spec: JSONObject, path: str, owner: str, errors: ErrorList) -> None:
    """
    Validate that the restart policy of a template is Always.

    @param spec: The spec of the template.
    @param path: The field path for errors.
    @param owner: The kind of the workload for the error.
    @param errors: Receives the errors.
    """
    policy = spec.get("restartPolicy") or ""
    if policy != "Always":
        errors.append(unsupported(f"{path}.spec.restartPolicy", policy, ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {owner} is not Supported"
        errors.append(forbidden(f"{path}.spec.activeDeadlineSeconds", text))
