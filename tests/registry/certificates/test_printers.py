"""Tests for L{kubetwist.registry.certificates.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RequestTests(SynchronousTestCase):
    """Tests for rows of CertificateSigningRequests."""

    def test_certificate_request(self) -> None:
        """A request shows its approval, and whether it failed or was issued."""
        for types, certificate, state in (
            ([], "", "Pending"),
            (["Approved"], "Zm9v", "Approved,Issued"),
            (["Approved", "Failed"], "", "Approved,Failed"),
            (["Denied", "Approved"], "", "Denied"),
        ):
            status = {"conditions": [{"type": one} for one in types], "certificate": certificate}
            obj = made({"spec": {"username": "ann", "expirationSeconds": 3600}, "status": status})
            self.assertEqual(
                cells("certificates.k8s.io", "CertificateSigningRequest", obj, NOW),
                ["x", "3m", "<none>", "ann", "60m", state],
            )
