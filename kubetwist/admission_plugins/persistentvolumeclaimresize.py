"""PersistentVolumeClaimResize: rejects larger claims whose StorageClass does not allow volume expansion."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.quantity import Quantity
from ..api.resource import JSONObject
from ..interfaces import IValidatingAdmission

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


@implementer(IValidatingAdmission)
@frozen
class PersistentVolumeClaimResize:
    """See kubernetes, C{plugin/pkg/admission/storage/persistentvolume/resize/admission.go}."""

    name: ClassVar[str] = "PersistentVolumeClaimResize"
    resources: ClassVar[tuple[str, ...]] = ("persistentvolumeclaims",)

    def handles(self, operation: str) -> bool:
        """Return true for UPDATE."""
        return operation == "UPDATE"

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        claim, old = attributes.object, attributes.old_object
        assert claim is not None and old is not None
        if _size(claim) <= _size(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise attributes.forbidden("Only bound persistent volume claims can be expanded")
        name = _class_name(old)
        is_same = name and name == _class_name(claim)
        storage_class = (
            attributes.context.get_decoded("storage.k8s.io", "storageclasses", "", name) if is_same else None
        )
        if storage_class is None or not storage_class.get("allowVolumeExpansion"):
            message = (
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
                "support resize"
            )
            raise attributes.forbidden(message)


def _size(claim: JSONObject) -> Quantity:
    return Quantity.parse(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _class_name(claim: JSONObject) -> str:
    annotation = (claim["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    return (claim["spec"].get("storageClassName") if annotation is None else annotation) or ""
