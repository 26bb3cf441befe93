"""StorageObjectInUseProtection: adds finalizers that keep deleted volumes and claims while they are in use."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..interfaces import IMutatingAdmission

_FINALIZERS: Final = {
    "persistentvolumes": "kubernetes.io/pv-protection",
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "volumeattributesclasses": "kubernetes.io/vac-protection",
}


@implementer(IMutatingAdmission)
@frozen
class StorageObjectInUseProtection:
    """See kubernetes, C{plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go}."""

    name: ClassVar[str] = "StorageObjectInUseProtection"
    resources: ClassVar[tuple[str, ...]] = (
        "persistentvolumes",
        "persistentvolumeclaims",
        "volumeattributesclasses.storage.k8s.io",
    )

    def handles(self, operation: str) -> bool:
        """Return true for CREATE."""
        return operation == "CREATE"

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        assert attributes.object is not None
        finalizer, meta = _FINALIZERS[attributes.resource], attributes.object["metadata"]
        finalizers = meta.get("finalizers") or []
        if finalizer not in finalizers:
            meta["finalizers"] = [*finalizers, finalizer]
