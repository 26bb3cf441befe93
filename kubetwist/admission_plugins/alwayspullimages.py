"""AlwaysPullImages: sets the pull policy Always, so that a pod needs credentials for images that a node has cached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.errors import FieldError, aggregate, not_supported
from ..api.podspecs import containers
from ..api.resource import JSONObject
from ..interfaces import IMutatingAdmission, IValidatingAdmission

_ALWAYS: Final = "Always"


@implementer(IMutatingAdmission, IValidatingAdmission)
@frozen
class AlwaysPullImages:
    """See kubernetes, C{plugin/pkg/admission/alwayspullimages/admission.go}."""

    name: ClassVar[str] = "AlwaysPullImages"
    resources: ClassVar[tuple[str, ...]] = ("pods",)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        spec = _spec_with_new_images(attributes)
        if spec is None:
            return
        for container, _, _ in containers(spec):
            container["imagePullPolicy"] = _ALWAYS
        for volume in spec.get("volumes") or ():
            if volume.get("image") is not None:
                volume["image"]["pullPolicy"] = _ALWAYS

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}: other plugins may have changed the policy after L{admit}."""
        spec = _spec_with_new_images(attributes)
        causes = [] if spec is None else list(_causes(spec))
        if causes:
            raise attributes.forbidden(aggregate(causes).removeprefix(": "))


def _spec_with_new_images(attributes: AdmissionAttributes) -> JSONObject | None:
    """Return the spec of a new pod, or of a pod that gets new images; L{None} for other updates."""
    assert attributes.object is not None
    spec: JSONObject = attributes.object["spec"]
    old = attributes.old_object
    if attributes.operation == "UPDATE" and old is not None and _images(spec) <= _images(old["spec"]):
        return None
    return spec


def _images(spec: JSONObject) -> set[str]:
    return {container.get("image") or "" for container, _, _ in containers(spec)}


def _causes(spec: JSONObject) -> Iterator[FieldError]:
    for container, path, _ in containers(spec):
        policy = container.get("imagePullPolicy") or ""
        if policy != _ALWAYS:
            yield not_supported(f"{path}.imagePullPolicy", policy, [_ALWAYS])
    for index, volume in enumerate(spec.get("volumes") or ()):
        image = volume.get("image")
        if image is not None and image.get("pullPolicy") != _ALWAYS:
            path = f"spec.volumes[{index}].image.pullPolicy"
            yield not_supported(path, image.get("pullPolicy") or "", [_ALWAYS])
