"""StorageObjectInUseProtection: adds finalizers that keep deleted volumes and claims while they are in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.jsontypes import JSONValue
from ..interfaces import IMutatingAdmission

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext

_FINALIZERS: Final = {
    "persistentvolumes": "kubernetes.io/pv-protection",
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "volumeattributesclasses": "kubernetes.io/vac-protection",
}


@implementer(IMutatingAdmission)
@frozen
class StorageObjectInUseProtection:
    """
    See kubernetes, C{plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go}.

    @ivar classes: Whether the feature gate VolumeAttributesClass is enabled.
    """

    name: ClassVar[str] = "StorageObjectInUseProtection"
    resources: ClassVar[tuple[str, ...]] = (
        "persistentvolumes",
        "persistentvolumeclaims",
        "volumeattributesclasses.storage.k8s.io",
    )

    classes: bool = True

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> StorageObjectInUseProtection:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        return cls(server.features.enabled("VolumeAttributesClass"))

    def handles(self, operation: str) -> bool:
        """Return true for CREATE."""
        return operation == "CREATE"

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        assert attributes.object is not None
        if attributes.resource == "volumeattributesclasses" and not self.classes:
            return
        finalizer, meta = _FINALIZERS[attributes.resource], attributes.object["metadata"]
        finalizers = meta.get("finalizers") or []
        if finalizer not in finalizers:
            meta["finalizers"] = [*finalizers, finalizer]
