"""Tests for L{kubetwist.cli.restore}."""

from __future__ import annotations

from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.restore import Options


def error_of(*arguments: str) -> str:
    """Return the error message for arguments."""
    try:
        Options().parseOptions(list(arguments))
    except UsageError as error:
        return str(error)
    raise AssertionError("not refused")


class OptionsTests(SynchronousTestCase):
    """The flags of C{twist kubeapi-restore}."""

    def test_needed(self) -> None:
        """The flag C{--from} is required."""
        self.assertEqual(error_of(), "--from is required")
