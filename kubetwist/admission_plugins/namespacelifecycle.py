"""Nothing new in namespaces that are not there or on their way out; the cluster's own namespaces stay."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..admission.attributes import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.resource import GroupResource
from ..interfaces import IMutatingAdmission, IValidatingAdmission

#: Namespaces that the server itself needs.
IMMORTAL: Final = frozenset(("default", "kube-system", "kube-public"))
_NAMESPACES: Final = GroupResource("", "namespaces")


@implementer(IMutatingAdmission, IValidatingAdmission)
@frozen
class NamespaceLifecycle:
    """
    Refuses to create in a namespace that is missing or terminating, and to delete some namespaces.

    Creation is looked at in the mutating phase, before anybody spends thought on the object, as in the reference.
    """

    name: ClassVar[str] = "NamespaceLifecycle"

    def handles(self, operation: str) -> bool:
        """Creating and deleting."""
        return operation in ("CREATE", "DELETE")

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}; changes nothing."""
        namespace = attributes.namespace
        if attributes.operation != "CREATE" or not namespace or attributes.resource == "namespaces":
            return
        found = attributes.context.lookup("", "namespaces", "", namespace)
        if found is None:
            raise APIStatusError.not_found(_NAMESPACES, namespace)
        if found["metadata"].get("deletionTimestamp") is not None:
            raise terminating(attributes)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        if attributes.operation != "DELETE" or attributes.resource != "namespaces" or attributes.group:
            return
        if attributes.name in IMMORTAL and not attributes.subresource:
            raise APIStatusError.forbidden(_NAMESPACES, attributes.name, "this namespace may not be deleted")


def terminating(attributes: AdmissionAttributes) -> APIStatusError:
    """The 403 for new content of a namespace that goes; its cause lets controllers know that trying again is no use."""
    namespace = attributes.namespace
    error = APIStatusError.forbidden(
        GroupResource(attributes.group, attributes.resource),
        attributes.name,
        f"unable to create new content in namespace {namespace} because it is being terminated",
    )
    assert error.details is not None
    error.details["causes"] = [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    return error
