"""Gives claims of storage that name no class the cluster's default one."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.resource import JSONObject
from ..interfaces import IMutatingAdmission

#: Marks a default class; the second is from before that was settled.
DEFAULT: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


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
        if _OLD_CLASS in (claim["metadata"].get("annotations") or {}):
            return
        classes = attributes.context.list_decoded("storage.k8s.io", "storageclasses")
        chosen = newest_default(classes, DEFAULT)
        if chosen is not None:
            claim["spec"]["storageClassName"] = chosen["metadata"]["name"]


def newest_default(classes: list[JSONObject], marks: tuple[str, ...]) -> JSONObject | None:
    """Return the newest class with a default annotation; of several, the first by name."""
    found = [
        one for one in classes if any((one["metadata"].get("annotations") or {}).get(mark) == "true" for mark in marks)
    ]
    found.sort(key=lambda one: str(one["metadata"]["name"]))
    return max(found, key=lambda one: str(one["metadata"]["creationTimestamp"]), default=None)
