"""Tests for L{kubetwist.registry.generic.validation.signernames}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import FieldError
from kubetwist.registry.generic.validation.signernames import signer_name


def reasons(name: str) -> list[str]:
    """Why a name is no signer's."""
    causes: list[FieldError] = []
    signer_name(name, "s", causes)
    return [cause.reason for cause in causes]


class SignerTests(SynchronousTestCase):
    """Tests for L{signer_name}."""

    def test_good(self) -> None:
        """A signer has a domain of two parts at least, and a name below it that may have dots."""
        for name in ("example.com/a", "kubernetes.io/kube-apiserver-client", "example.com/a.b"):
            self.assertEqual(reasons(name), [], name)

    def test_bad(self) -> None:
        """Missing and malformed parts are told."""
        self.assertEqual(reasons(""), ["FieldValueRequired"])
        for name in ("example.com", "example.com/a/b", "com/a", "Example.com/a", "example.com/A", "example.com/"):
            self.assertEqual(reasons(name), ["FieldValueInvalid"], name)

    def test_long(self) -> None:
        """A domain has 253 bytes at most."""
        domain = ".".join(["a" * 63] * 4)
        self.assertEqual(reasons(f"{domain}/a"), ["FieldValueTooLong"])
