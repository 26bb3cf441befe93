"""NamespaceExists: rejects writes in namespaces that do not exist, including deletes."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.resource import GroupResource
from ..interfaces import IValidatingAdmission

_NAMESPACES: Final = GroupResource("", "namespaces")


@implementer(IValidatingAdmission)
@frozen
class NamespaceExists:
    """See kubernetes, C{plugin/pkg/admission/namespace/exists/admission.go}."""

    name: ClassVar[str] = "NamespaceExists"

    def handles(self, operation: str) -> bool:
        """Return true for all operations that write."""
        return operation in ("CREATE", "UPDATE", "DELETE")

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        namespace = attributes.namespace
        if not namespace or attributes.group_resource == _NAMESPACES:
            return
        if attributes.context.get_decoded("", "namespaces", "", namespace) is None:
            raise APIStatusError.not_found(_NAMESPACES, namespace)
