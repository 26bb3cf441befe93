"""Keeps deleted pod groups until their last pod is gone, and admits no new pods to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject
from ..interfaces import IMutatingAdmission, IValidatingAdmission
from .pluginconfig import minor

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext

_GROUP: Final = "scheduling.k8s.io"
_FINALIZERS: Final = {
    "podgroups": "scheduling.k8s.io/podgroup-protection",
    "compositepodgroups": "scheduling.k8s.io/compositepodgroup-protection",
}
#: By resource: its kind, the kind and the resource of what it can be part of.
_PARENTS: Final = {
    "pods": ("Pod", "PodGroup", "podgroups"),
    "podgroups": ("PodGroup", "CompositePodGroup", "compositepodgroups"),
    "compositepodgroups": ("CompositePodGroup", "CompositePodGroup", "compositepodgroups"),
}


@implementer(IMutatingAdmission, IValidatingAdmission)
@frozen
class PodGroupProtection:
    """
    See kubernetes, C{plugin/pkg/admission/scheduling/podgroupprotection/admission.go}.

    The reference looks at feature gates; here these kinds are served or not.

    @ivar closing: Whether nothing new comes into a group that is deleted, as from 1.37 on.
    """

    name: ClassVar[str] = "PodGroupProtection"
    resources: ClassVar[tuple[str, ...]] = ("pods", f"podgroups.{_GROUP}", f"compositepodgroups.{_GROUP}")

    closing: bool = True

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> PodGroupProtection:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        return cls(minor(server) >= 37)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE."""
        return operation == "CREATE"

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        finalizer = _FINALIZERS.get(attributes.resource)
        if finalizer is None:
            return
        assert attributes.object is not None
        meta = attributes.object["metadata"]
        finalizers = meta.get("finalizers") or []
        if finalizer not in finalizers:
            meta["finalizers"] = [*finalizers, finalizer]

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        if not self.closing:
            return
        assert attributes.object is not None
        spec: JSONObject = attributes.object.get("spec") or {}
        if attributes.resource == "pods":
            name = (spec.get("schedulingGroup") or {}).get("podGroupName")
        else:
            name = spec.get("parentCompositePodGroupName")
        if not name:
            return
        kind, parent_kind, parents = _PARENTS[attributes.resource]
        parent = attributes.context.get_decoded(_GROUP, parents, attributes.namespace, name)
        if parent is not None and parent["metadata"].get("deletionTimestamp") is not None:
            why = f"cannot create {kind} referencing {parent_kind} {quoted(name)} because it is being deleted"
            raise attributes.forbidden(why)
