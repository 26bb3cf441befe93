"""Tests for L{CertificateSigning}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.certificatesigning import CertificateSigning
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, Rights, write
from tests.admission_plugins.signers import SIGNER, request


class CertificateSigningTests(PluginTestCase):
    """Tests for L{CertificateSigning}."""

    def test_signing(self) -> None:
        """Setting a certificate or a condition requires permission to sign."""
        plugin, resource = CertificateSigning(), "certificatesigningrequests.certificates.k8s.io/status"
        verifyObject(IValidatingAdmission, plugin)
        for status in ({"certificate": "x"}, {"conditions": [{"type": "Failed"}]}):
            for rights in (Rights(), Rights({("sign", "signers", SIGNER)})):
                update = write(request(**status), resource, "UPDATE", old=request(), context=Context(authorizer=rights))
                if rights.allowed:
                    self.validate(plugin, update)
                else:
                    message = self.error_text(plugin, update)
                    self.assertEqual(message, f'user not permitted to sign requests with signerName "{SIGNER}"')
        unchanged = write(request(), resource, "UPDATE", old=request(), context=Context(authorizer=Rights()))
        self.validate(plugin, unchanged)
