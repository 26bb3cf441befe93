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
        self.assertEqual(error_of(), "--to or --into is required")
        self.assertEqual(error_of("--from=x"), "unknown flag: --from")
        options = Options()
        options.parseOptions(["--to=x"])
        self.assertEqual((options["to"], options["data-dir"], options["keys"]), ("x", "kubetwist-data", True))

    def test_archive(self) -> None:
        """Schedules and numbers of backups to keep need an archive, which excludes a single backup."""
        self.assertEqual(error_of("--to=x", "--schedule=@hourly"), "--schedule needs --into")
        self.assertEqual(error_of("--to=x", "--keep-daily=7"), "--keep-daily needs --into")
        self.assertEqual(error_of("--to=x", "--into=y"), "--to and --into cannot be set together")
        self.assertEqual(
            error_of("--into=y", "--schedule=@daily", "--verify-only"),
            "--verify-only and --schedule cannot be set together",
        )
        self.assertEqual(error_of("--into=y", "--metrics-file=x"), "--metrics-file must end with .prom")
        options = Options()
        options.parseOptions(["--into=y", "--schedule=0 2 * * mon-fri", "--keep-weekly=4", "--rate-limit=20Mi"])
        self.assertEqual((options["keep-weekly"], options["keep-last"], options["rate-limit"]), (4, 0, 20 << 20))

    def test_schedule(self) -> None:
        """An invalid schedule is refused with the reason."""
        for text in ("61 * * * *", "* * *", "@sometimes", "@every x", "TZ=Nowhere/None 0 0 * * *"):
            self.assertIn("--schedule", error_of("--into=y", f"--schedule={text}"))
