"""NamespaceAutoProvision: creates the namespace of a new object if it does not exist."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.resource import GroupResource
from ..interfaces import IMutatingAdmission

_NAMESPACES: Final = GroupResource("", "namespaces")


@implementer(IMutatingAdmission)
@frozen
class NamespaceAutoProvision:
    """See kubernetes, C{plugin/pkg/admission/namespace/autoprovision/admission.go}."""

    name: ClassVar[str] = "NamespaceAutoProvision"

    def handles(self, operation: str) -> bool:
        """Return true for CREATE."""
        return operation == "CREATE"

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}; a dry run creates no namespace."""
        namespace = attributes.namespace
        if not namespace or attributes.dry_run or attributes.group_resource == _NAMESPACES:
            return
        if attributes.context.get_decoded("", "namespaces", "", namespace) is not None:
            return
        try:
            await attributes.context.create("", "namespaces", "", {"metadata": {"name": namespace}})
        except APIStatusError as error:
            if error.reason != "AlreadyExists":
                raise attributes.forbidden(error.message) from error
