"""DenyServiceExternalIPs: rejects new external IPs, which could intercept traffic of other hosts (CVE-2020-8554)."""

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
        new_ips = attributes.object["spec"].get("externalIPs")
        if not new_ips:
            return
        old = attributes.old_object
        old_ips = ((old or {}).get("spec") or {}).get("externalIPs") or ()
        if not set(new_ips) <= set(old_ips):
            raise attributes.forbidden("Use of external IPs is denied by admission control")
