"""Tests for L{CertificateApproval}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.certificateapproval import CertificateApproval
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, Rights, write
from tests.admission_plugins.signers import SIGNER, request


class CertificateApprovalTests(PluginTestCase):
    """Tests for L{CertificateApproval}."""

    def test_approval(self) -> None:
        """Approval requires permission for the signer, or for all signers of its domain."""
        plugin, resource = CertificateApproval(), "certificatesigningrequests.certificates.k8s.io/approval"
        verifyObject(IValidatingAdmission, plugin)
        for allowed in ("", SIGNER, "example.com/*"):
            rights = Rights({("approve", "signers", allowed)})
            # The signer in the update is ignored.
            update = write(
                request("other.com/x"), resource, "UPDATE", old=request(), context=Context(authorizer=rights)
            )
            if allowed:
                self.validate(plugin, update)
            else:
                message = self.error_text(plugin, update)
                self.assertEqual(message, f'user not permitted to approve requests with signerName "{SIGNER}"')
            attributes = rights.requests[0]
            self.assertEqual(
                (attributes.user.name, attributes.group, attributes.version, attributes.namespace),
                ("alice", "certificates.k8s.io", "*", ""),
            )
