"""Tests for F{.ci/vendor.py}: how the vendored files are compared."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ..checkout import load_script

script = load_script(".ci/vendor.py")


class DifferenceTests(SynchronousTestCase):
    """Comparisons of files."""

    def test_differences(self) -> None:
        """Files are missing, unlisted, or differ."""
        wanted = {"same": b"1", "changed": b"1", "removed": b"1"}
        present = {"same": b"1", "changed": b"2", "added": b"1"}
        expected = {"changed": "differs", "removed": "missing", "added": "unlisted"}
        self.assertEqual(script.differences(wanted, present), expected)

    def test_recorded(self) -> None:
        """The recorded digests are those of the table, of the entry files, and of the vendored files."""
        recorded = script.recorded_digests()
        self.assertIn(".ci/vendor.toml", recorded)
        self.assertIn("kubetwist/ui/static/vendor/js-yaml/js-yaml.mjs", recorded)
        self.assertEqual(recorded, script.digests())
