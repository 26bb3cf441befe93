"""Tests for L{kubetwist.cli.backup}."""

from __future__ import annotations

from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.backup import Options


def error_of(*arguments: str) -> str:
    """Return the error message for arguments."""
    try:
        Options().parseOptions(list(arguments))
    except UsageError as error:
        return str(error)
    raise AssertionError("not refused")


class OptionsTests(SynchronousTestCase):
    """The flags of C{twist kubeapi-backup}."""

    def test_needed(self) -> None:
        """The flag C{--to} is required, and flags of other commands are unknown."""
        self.assertEqual(error_of(), "--to is required")
        self.assertEqual(error_of("--from=x"), "unknown flag: --from")
        options = Options()
        options.parseOptions(["--to=x"])
        self.assertEqual((options["to"], options["data-dir"], options["keys"]), ("x", "kubetwist-data", True))
