"""ClusterTrustBundleAttest: writing a ClusterTrustBundle requires the permission C{attest} on its signer."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.go.quote import quoted
from ..interfaces import IValidatingAdmission
from ..registry.rbac.store import without_gc_fields
from .authorization import is_authorized_for_signer_name


@implementer(IValidatingAdmission)
@frozen
class ClusterTrustBundleAttest:
    """See kubernetes, C{plugin/pkg/admission/certificates/ctbattest/admission.go}."""

    name: ClassVar[str] = "ClusterTrustBundleAttest"
    resources: ClassVar[tuple[str, ...]] = ("clustertrustbundles.certificates.k8s.io",)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        bundle = attributes.object
        assert bundle is not None
        signer = bundle["spec"].get("signerName") or ""
        if not signer:
            return
        old = attributes.old_object
        if old is not None and without_gc_fields(bundle) == without_gc_fields(old):
            return
        if not await is_authorized_for_signer_name(attributes, "attest", signer):
            raise attributes.forbidden(f"user not permitted to attest for signerName {quoted(signer)}")
