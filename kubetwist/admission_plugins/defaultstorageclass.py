"""DefaultStorageClass: sets the default StorageClass of the cluster on PersistentVolumeClaims without a class."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.resource import JSONObject
from ..interfaces import IMutatingAdmission

#: Annotations of a default class; the second one is the beta form.
DEFAULT: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


@implementer(IMutatingAdmission)
@frozen
class DefaultStorageClass:
    """See kubernetes, C{plugin/pkg/admission/storage/storageclass/setdefault/admission.go}."""

    name: ClassVar[str] = "DefaultStorageClass"
    resources: ClassVar[tuple[str, ...]] = ("persistentvolumeclaims",)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE; the class is not defaulted later."""
        return operation == "CREATE"

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        claim = attributes.object
        assert claim is not None
        if claim["spec"].get("storageClassName") is not None:
            return
        if _CLASS_ANNOTATION in (claim["metadata"].get("annotations") or {}):
            return
        classes = attributes.context.list_decoded("storage.k8s.io", "storageclasses")
        default_class = newest_default(classes, DEFAULT)
        if default_class is not None:
            claim["spec"]["storageClassName"] = default_class["metadata"]["name"]


def newest_default(classes: list[JSONObject], annotations: tuple[str, ...]) -> JSONObject | None:
    """
    Return the newest default class; of several with the same creation time, the first by name.

    @param annotations: The annotations that mark a default class with the value C{true}.
    """
    defaults = [
        one
        for one in classes
        if any((one["metadata"].get("annotations") or {}).get(annotation) == "true" for annotation in annotations)
    ]
    defaults.sort(key=lambda one: str(one["metadata"]["name"]))
    return max(defaults, key=lambda one: str(one["metadata"]["creationTimestamp"]), default=None)
