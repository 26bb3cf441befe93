"""Tests for L{kubetwist.cel.errors}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.environment import Environment
from kubetwist.cel.errors import Cancelled, CelError, CostLimitExceeded, Interrupted, ProgramError
from kubetwist.cel.types import INT


class ErrorTests(SynchronousTestCase):
    """Tests for what can go wrong with expressions."""

    def test_not_absorbed(self) -> None:
        """An evaluation that is given up is no error of CEL, which operators could absorb."""
        for error in (CostLimitExceeded(), Interrupted()):
            self.assertIsInstance(error, Cancelled)
            self.assertNotIsInstance(error, CelError)
        self.assertEqual(CostLimitExceeded().message, "operation cancelled: actual cost limit exceeded")

    def test_constants(self) -> None:
        """A constant without a value is found at compile time, has no place in the text, but a type."""
        error = self.assertRaises(ProgramError, Environment().compile, "int('x')")
        self.assertEqual((error.issues, error.output_type), ((), INT))
