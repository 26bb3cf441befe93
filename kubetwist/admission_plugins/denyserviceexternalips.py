"""Rejects new external IPs: a service could intercept the traffic of a foreign address (CVE-2020-8554)."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..interfaces import IValidatingAdmission


@implementer(IValidatingAdmission)
@frozen
class DenyServiceExternalIPs:
    """See kubernetes, C{plugin/pkg/admission/network/denyserviceexternalips/admission.go}."""

    name: ClassVar[str] = "DenyServiceExternalIPs"
    resources: ClassVar[tuple[str, ...]] = ("services",)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}: existing addresses may stay."""
        assert attributes.object is not None
        wanted = attributes.object["spec"].get("externalIPs")
        if not wanted:
            return
        old = attributes.old_object
        had = ((old or {}).get("spec") or {}).get("externalIPs") or ()
        if not set(wanted) <= set(had):
            raise attributes.forbidden("Use of external IPs is denied by admission control")
