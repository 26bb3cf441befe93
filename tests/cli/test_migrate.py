"""Tests for L{kubetwist.cli.migrate}."""

from __future__ import annotations

from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.migrate import Options


def error_of(*arguments: str) -> str:
    """Return the error message for arguments."""
    try:
        Options().parseOptions(list(arguments))
    except UsageError as error:
        return str(error)
    raise AssertionError("not refused")


class OptionsTests(SynchronousTestCase):
    """The flags of C{twist kubeapi-migrate}."""

    def test_sides(self) -> None:
        """The flags of source and target are flags of the server, with the same meaning."""
        options = Options()
        options.parseOptions(
            ["--from-data-dir=a", "--to-etcd-servers=http://b:1,http://c:2", "--to-etcd-prefix=/x", "--replace"]
        )
        source, target = options.endpoints["from"], options.endpoints["to"]
        self.assertEqual(
            (source["storage-backend"], source["data-dir"], source["etcd-prefix"]), ("sqlite", "a", "/registry")
        )
        self.assertEqual((target["storage-backend"], target["etcd-prefix"]), ("etcd3", "/x"))
        self.assertEqual(target["etcd-servers"], ("http://b:1", "http://c:2"))
        self.assertTrue(options["replace"])

    def test_bad_sides(self) -> None:
        """Source and target must be set, and their flags are validated."""
        self.assertIn("no flag selects the source", error_of("--to-data-dir=x"))
        self.assertIn("no flag selects the target", error_of("--from-data-dir=x"))
        problem = error_of("--from-data-dir=x", "--to-etcd-prefix=/")
        self.assertEqual(problem, "--etcd-prefix must not be empty")
        self.assertIn("unknown flag: --data-dir; did you mean --", error_of("--data-dir=x"))
