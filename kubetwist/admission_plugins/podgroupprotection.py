"""PodGroupProtection: adds a finalizer to pod groups and their pods, and rejects new members of a deleted group."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject
from ..interfaces import IMutatingAdmission, IValidatingAdmission
from .pluginconfig import release_minor

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext

_GROUP: Final = "scheduling.k8s.io"
_FINALIZERS: Final = {
    "podgroups": "scheduling.k8s.io/podgroup-protection",
    "compositepodgroups": "scheduling.k8s.io/compositepodgroup-protection",
}
#: By resource: its kind, and the kind and resource of its parent.
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

    The reference checks feature gates. This plugin depends on whether these kinds are served.

    @ivar rejects_deleted_parent: Whether new members of a deleted group are rejected, as 1.37 does.
    """

    name: ClassVar[str] = "PodGroupProtection"
    resources: ClassVar[tuple[str, ...]] = ("pods", f"podgroups.{_GROUP}", f"compositepodgroups.{_GROUP}")

    rejects_deleted_parent: bool = True

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> PodGroupProtection:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        return cls(release_minor(server) >= 37)

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
        if not self.rejects_deleted_parent:
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
            message = f"cannot create {kind} referencing {parent_kind} {quoted(name)} because it is being deleted"
            raise attributes.forbidden(message)
