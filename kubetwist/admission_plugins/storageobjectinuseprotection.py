"""Keeps volumes and claims that are deleted until nobody uses them any more."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..admission.attributes import AdmissionAttributes
from ..interfaces import IMutatingAdmission

_FINALIZERS: Final = {
    "persistentvolumes": "kubernetes.io/pv-protection",
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
}


@implementer(IMutatingAdmission)
@frozen
class StorageObjectInUseProtection:
    """See kubernetes, C{plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go}."""

    name: ClassVar[str] = "StorageObjectInUseProtection"

    def handles(self, operation: str) -> bool:
        """Creating."""
        return operation == "CREATE"

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        finalizer = _FINALIZERS.get(attributes.resource)
        obj = attributes.object
        if finalizer is None or attributes.group or attributes.subresource or obj is None:
            return
        finalizers = obj["metadata"].get("finalizers") or []
        if finalizer not in finalizers:
            obj["metadata"]["finalizers"] = [*finalizers, finalizer]
