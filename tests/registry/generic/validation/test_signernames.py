"""Tests of L{kubetwist.registry.generic.validation.signernames}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import FieldError
from kubetwist.registry.generic.validation.signernames import signer_name


def reasons(name: str) -> list[str]:
    """Return the errors of a signer name."""
    causes: list[FieldError] = []
    signer_name(name, "s", causes)
    return [cause.reason for cause in causes]


class SignerTests(SynchronousTestCase):
    """Tests of L{signer_name}."""

    def test_good(self) -> None:
        """A signer has a domain with at least two segments, and a path that may have dots."""
        for name in ("example.com/a", "kubernetes.io/kube-apiserver-client", "example.com/a.b"):
            self.assertEqual(reasons(name), [], name)

    def test_bad(self) -> None:
        """Missing and malformed segments are reported."""
        self.assertEqual(reasons(""), ["FieldValueRequired"])
        for name in ("example.com", "example.com/a/b", "com/a", "Example.com/a", "example.com/A", "example.com/"):
            self.assertEqual(reasons(name), ["FieldValueInvalid"], name)

    def test_long(self) -> None:
        """A domain has at most 253 bytes."""
        domain = ".".join(["a" * 63] * 4)
        self.assertEqual(reasons(f"{domain}/a"), ["FieldValueTooLong"])
