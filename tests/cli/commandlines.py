"""Command lines for the tests of flags."""

from __future__ import annotations

from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.kubeapi import Options


def parsed(*arguments: str) -> Options:
    """Parse a command line of C{twist kubeapi}."""
    options = Options()
    options.parseOptions(list(arguments))
    return options


class CommandLineTestCase(SynchronousTestCase):
    """Test case for command lines."""

    def assert_rejected(self, message: str, *arguments: str) -> None:
        """Assert that a command line is rejected with a message."""
        error = self.assertRaises(UsageError, parsed, *arguments)
        self.assertEqual(str(error), message)
