"""AlwaysDeny: rejects every request; for tests."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..interfaces import IMutatingAdmission, IValidatingAdmission


@implementer(IMutatingAdmission, IValidatingAdmission)
@frozen
class AlwaysDeny:
    """See kubernetes, C{plugin/pkg/admission/deny/admission.go}."""

    name: ClassVar[str] = "AlwaysDeny"

    def handles(self, operation: str) -> bool:
        """Return true for all operations."""
        return True

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        raise attributes.forbidden("admission control is denying all modifications")

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        raise attributes.forbidden("admission control is denying all modifications")
