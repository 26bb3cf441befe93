"""AlwaysAdmit: admits every request."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..interfaces import IMutatingAdmission, IValidatingAdmission


@implementer(IMutatingAdmission, IValidatingAdmission)
@frozen
class AlwaysAdmit:
    """See kubernetes, C{plugin/pkg/admission/admit/admission.go}."""

    name: ClassVar[str] = "AlwaysAdmit"

    def handles(self, operation: str) -> bool:
        """Return false: the plugin rejects nothing, so it is never called."""
        return False

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
