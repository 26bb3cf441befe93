"""NamespaceLifecycle: rejects new objects in missing or terminating namespaces, and deletes of system namespaces."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.resource import GroupResource
from ..interfaces import IMutatingAdmission

#: Namespaces that the server itself needs.
IMMORTAL: Final = frozenset(("default", "kube-system", "kube-public"))
_NAMESPACES: Final = GroupResource("", "namespaces")
#: Access reviews do not reveal whether a namespace exists.
_REVIEWS: Final = "localsubjectaccessreviews"


@implementer(IMutatingAdmission)
@frozen
class NamespaceLifecycle:
    """
    See kubernetes/apiserver, C{pkg/admission/plugin/namespace/lifecycle/admission.go}.

    It runs in the mutating phase, before other plugins process the object, as in the reference.
    """

    name: ClassVar[str] = "NamespaceLifecycle"

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and DELETE."""
        return operation in ("CREATE", "DELETE")

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}; changes nothing."""
        namespace, resource = attributes.namespace, attributes.resource
        if attributes.operation == "DELETE":
            if resource == "namespaces" and not attributes.group and attributes.name in IMMORTAL:
                raise APIStatusError.forbidden(_NAMESPACES, attributes.name, "this namespace may not be deleted")
            return
        if not namespace or (resource == "namespaces" and not attributes.group) or resource == _REVIEWS:
            return
        existing = attributes.context.get_decoded("", "namespaces", "", namespace)
        if existing is None:
            raise APIStatusError.not_found(_NAMESPACES, namespace)
        if existing["metadata"].get("deletionTimestamp") is not None:
            raise terminating(attributes)


def terminating(attributes: AdmissionAttributes) -> APIStatusError:
    """Return the 403 for new content of a terminating namespace; its cause stops controllers from retrying."""
    namespace = attributes.namespace
    error = attributes.forbidden(
        f"unable to create new content in namespace {namespace} because it is being terminated"
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
