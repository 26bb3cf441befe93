"""Tests for L{kubetwist.registry.certificates.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
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

    def test_pod_certificate_request(self) -> None:
        """A request for a pod shows its annotations since 1.35."""
        kind = ("certificates.k8s.io", "PodCertificateRequest")
        spec = {"podName": "p", "serviceAccountName": "s", "nodeName": "n", "signerName": "a/b"}
        obj = made({"spec": {**spec, "unverifiedUserAnnotations": {"k": "v"}}})
        self.assertEqual(cells(*kind, obj, NOW), ["x", "p", "s", "n", "a/b", "Pending", "k=v"])
        self.assertEqual(len(cells(*kind, obj, NOW, FeatureGates((1, 34)))), 6)
