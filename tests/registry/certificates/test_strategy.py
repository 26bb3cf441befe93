"""Tests for L{kubetwist.registry.certificates.strategy}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.certificates.validation import certificates_error
from kubetwist.registry.strategies import strategy_for
from tests.registry.keypairs import encoded, pair


class SignedRequestTests(SynchronousTestCase):
    """Who may write what of a request for a certificate."""

    def setUp(self) -> None:
        """A request that waits."""
        self.strategy: Any = strategy_for("certificates.k8s.io", "CertificateSigningRequest")
        self.certificate = encoded(pair()[0])

    def update(self, which: str, before: dict[str, Any], **status: Any) -> tuple[list[str], dict[str, Any]]:
        """What is wrong with an update of a part, and what it comes to."""
        old = {"metadata": {}, "spec": {}, "status": before}
        obj = {"metadata": {}, "spec": {}, "status": status}
        if which == "status":
            self.strategy.prepare_for_status_update(obj, old)
            causes = self.strategy.validate_status_update(obj, old)
        else:
            self.strategy.prepare_for_approval(obj, old)
            causes = self.strategy.validate_approval(obj, old)
        return [str(cause) for cause in causes], obj["status"]

    def test_name(self) -> None:
        """Such a request may be called what can be a part of a path; one that says nothing has nothing to show."""
        self.assertEqual(self.strategy.validate_name("A_b", False), [])
        self.assertEqual(self.strategy.validate_name("a/b", False), ["may not contain '/'"])
        causes = self.strategy.validate({"metadata": {}, "spec": {}})
        self.assertEqual(causes[0].message, "Invalid value: null: PEM block type must be CERTIFICATE REQUEST")

    def test_verdicts(self) -> None:
        """Approvals come by C{approval} alone, and do not go; certificates do not come that way."""
        approved = [{"type": "Approved", "status": "True"}]
        problems, _ = self.update("status", {}, conditions=approved)
        added = 'status.conditions: Forbidden: updates may not add a condition of type "Approved"'
        self.assertEqual(problems, [added])
        problems, status = self.update("approval", {}, conditions=approved, certificate=self.certificate)
        self.assertEqual(problems, [])
        self.assertNotIn("certificate", status)
        problems, _ = self.update("approval", {"conditions": approved}, conditions=[])
        self.assertIn("may not remove", problems[0])

    def test_verdict_kept(self) -> None:
        """Whoever writes a status can not reword the verdict."""
        verdict = {"type": "Approved", "status": "True", "reason": "Mine", "lastTransitionTime": "x"}
        problems, status = self.update("status", {"conditions": [verdict]}, conditions=[{**verdict, "reason": "Other"}])
        self.assertEqual((problems, status["conditions"][0]["reason"]), ([], "Mine"))

    def test_certificate(self) -> None:
        """A certificate is one, and comes once."""
        self.assertEqual(self.update("status", {}, certificate=self.certificate)[0], [])
        problems, _ = self.update("status", {"certificate": self.certificate}, certificate=encoded(pair()[0]))
        self.assertIn("may not modify existing certificate content", problems[0])
        bad = b"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"
        self.assertEqual(certificates_error(encoded(bad)), "x509: malformed certificate")
        self.assertIn("at least one", certificates_error(encoded(b"nope")))
        self.assertIn("only CERTIFICATE", certificates_error(encoded(pair()[1])))
