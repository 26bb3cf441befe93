"""Tests for L{kubetwist.cel.errors}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.environment import Environment
from kubetwist.cel.errors import Cancelled, CelError, CostLimitExceeded, Interrupted, ProgramError
from kubetwist.cel.types import INT


class ErrorTests(SynchronousTestCase):
    """Tests for the exceptions."""

    def test_not_absorbed(self) -> None:
        """A cancelled evaluation is not a CEL error that operators absorb."""
        for error in (CostLimitExceeded(), Interrupted()):
            self.assertIsInstance(error, Cancelled)
            self.assertNotIsInstance(error, CelError)
        self.assertEqual(CostLimitExceeded().message, "operation cancelled: actual cost limit exceeded")

    def test_constants(self) -> None:
        """An invalid constant is found at compile time; the error has no position, but an output type."""
        error = self.assertRaises(ProgramError, Environment().compile, "int('x')")
        self.assertEqual((error.issues, error.output_type), ((), INT))
