"""Has claims of storage grow only where the storage can."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from zope.interface import implementer

from ..admission.attributes import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.quantity import Quantity
from ..api.resource import GroupResource, JSONObject
from ..interfaces import IValidatingAdmission


@implementer(IValidatingAdmission)
@frozen
class PersistentVolumeClaimResize:
    """See kubernetes, C{plugin/pkg/admission/storage/persistentvolume/resize/admission.go}."""

    name: ClassVar[str] = "PersistentVolumeClaimResize"

    def handles(self, operation: str) -> bool:
        """Updating."""
        return operation == "UPDATE"

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        claim, old = attributes.object, attributes.old_object
        if attributes.resource != "persistentvolumeclaims" or attributes.group or attributes.subresource:
            return
        if claim is None or old is None or _size(claim) <= _size(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise _forbidden(attributes, "Only bound persistent volume claims can be expanded")
        name = old["spec"].get("storageClassName")
        storage_class = attributes.context.lookup("storage.k8s.io", "storageclasses", "", name) if name else None
        if storage_class is None or not storage_class.get("allowVolumeExpansion"):
            why = (
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
                "support resize"
            )
            raise _forbidden(attributes, why)


def _size(claim: JSONObject) -> Quantity:
    return Quantity.parse(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _forbidden(attributes: AdmissionAttributes, why: str) -> APIStatusError:
    return APIStatusError.forbidden(GroupResource("", attributes.resource), attributes.name, why)
