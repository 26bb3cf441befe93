"""Tests for L{kubetwist.registry.certificates.strategy}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.certificates.validation import certificates_error
from kubetwist.registry.strategies import strategy_for
from tests.registry.keypairs import encoded, pair


class SignedRequestTests(SynchronousTestCase):
    """Tests for the fields of a CertificateSigningRequest that each endpoint may write."""

    def setUp(self) -> None:
        """Create a pending request."""
        self.strategy: Any = strategy_for("certificates.k8s.io", "CertificateSigningRequest")
        self.certificate = encoded(pair()[0])

    def update(self, which: str, before: dict[str, Any], **status: Any) -> tuple[list[str], dict[str, Any]]:
        """Return the errors of an update of a subresource, and its result."""
        old = {"metadata": {}, "spec": {}, "status": before}
        obj = {"metadata": {}, "spec": {}, "status": status}
        if which == "status":
            self.strategy.prepare_for_status_update(obj, old)
            errors = self.strategy.validate_status_update(obj, old)
        else:
            self.strategy.prepare_for_approval(obj, old)
            errors = self.strategy.validate_approval(obj, old)
        return [str(cause) for cause in errors], obj["status"]

    def test_name(self) -> None:
        """The name is a path segment; an empty request is shown as empty."""
        self.assertEqual(self.strategy.validate_name("A_b", False), [])
        self.assertEqual(self.strategy.validate_name("a/b", False), ["may not contain '/'"])
        errors = self.strategy.validate({"metadata": {}, "spec": {}})
        self.assertEqual(errors[0].message, "Invalid value: null: PEM block type must be CERTIFICATE REQUEST")

    def test_verdicts(self) -> None:
        """Approvals are written by C{approval} only, and are not removed; it cannot write certificates."""
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
        """An update of the status cannot change the text of the approval."""
        verdict = {"type": "Approved", "status": "True", "reason": "Mine", "lastTransitionTime": "x"}
        problems, status = self.update("status", {"conditions": [verdict]}, conditions=[{**verdict, "reason": "Other"}])
        self.assertEqual((problems, status["conditions"][0]["reason"]), ([], "Mine"))

    def test_certificate(self) -> None:
        """A certificate is valid, and is written once."""
        self.assertEqual(self.update("status", {}, certificate=self.certificate)[0], [])
        problems, _ = self.update("status", {"certificate": self.certificate}, certificate=encoded(pair()[0]))
        self.assertIn("may not modify existing certificate content", problems[0])
        bad = b"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"
        self.assertEqual(certificates_error(encoded(bad)), "x509: malformed certificate")
        self.assertIn("at least one", certificates_error(encoded(b"nope")))
        self.assertIn("only CERTIFICATE", certificates_error(encoded(pair()[1])))
