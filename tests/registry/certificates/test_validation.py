"""Tests for L{kubetwist.registry.certificates.validation}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.certificates.validation import validate_approval_update, validate_request_status_update
from kubetwist.registry.generic.validation.fields import ErrorList
from kubetwist.registry.generic.validation.signernames import signer_name
from kubetwist.registry.strategies import strategy_for
from tests.registry.apps.test_validation import LABEL_RULE
from tests.registry.strategytools import SUBDOMAIN_RULE, copy, problems


class CertificateTests(SynchronousTestCase):
    """Tests for CertificateSigningRequests."""

    def test_missing_request(self) -> None:
        """A missing request is shown as empty."""
        errors = problems("certificates.k8s.io", "CertificateSigningRequest", spec={})
        self.assertEqual(errors[0], "spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST")

    def signer_name_errors(self, name: str) -> list[str]:
        """Return the errors of a signer name."""
        errors: ErrorList = []
        signer_name(name, "s", errors)
        return [str(cause) for cause in errors]

    def test_signer(self) -> None:
        """The labels of a signer's domain and path are validated."""
        self.assertEqual(self.signer_name_errors("example.com/a.b"), [])
        self.assertEqual(
            self.signer_name_errors("Ex_.com/B.c"),
            [
                f's: Invalid value: "Ex_.com": validating label "Ex_": {LABEL_RULE}',
                f's: Invalid value: "B.c": validating label "B": {SUBDOMAIN_RULE}',
            ],
        )
        self.assertEqual(
            self.signer_name_errors("host/x"),
            ['s: Invalid value: "host": should be a domain with at least two segments separated by dots'],
        )
        self.assertEqual(
            self.signer_name_errors(f"{'a.' * 127}b/x"),
            ["s: Too long: may not be more than 253 bytes"],
        )
        self.assertEqual(self.signer_name_errors(f"a.b/{'c.' * 300}d"), ["s: Too long: may not be more than 571 bytes"])

    def test_errors_of_stored_conditions(self) -> None:
        """Errors of stored conditions are ignored."""
        first: list[dict[str, Any]] = [
            {"type": kind, "status": "True"} for kind in ("Approved", "Denied", "", "X", "X")
        ]
        old = {"spec": {}, "status": {"conditions": first}}
        self.assertEqual(validate_approval_update(old, old), [])
        fresh = {"spec": {}, "status": {}}
        self.assertEqual(
            [str(cause) for cause in validate_approval_update(old, fresh)],
            [
                'status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive',
                "status.conditions[2].type: Required value",
                'status.conditions[4].type: Duplicate value: "X"',
            ],
        )

    def test_invalid_stored_certificate(self) -> None:
        """If the stored certificate is invalid, the new one may be invalid, too."""
        old, new = ({"spec": {}, "status": {"certificate": text}} for text in ("bm8=", "bm9wZQ=="))
        self.assertEqual(
            [str(cause) for cause in validate_request_status_update(new, old)],
            ["status.certificate: Forbidden: updates may not modify existing certificate content"],
        )

    def test_condition_without_time(self) -> None:
        """A condition without a time gets the current time."""
        obj = {"metadata": {}, "spec": {}, "status": {"conditions": [{"type": "Approved", "status": "True"}]}}
        after = copy(obj)
        strategy: Any = strategy_for("certificates.k8s.io", "CertificateSigningRequest")
        strategy.prepare_for_approval(after, obj)
        self.assertTrue(after["status"]["conditions"][0]["lastTransitionTime"])
