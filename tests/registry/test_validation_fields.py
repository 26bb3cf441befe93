"""Tests for L{kubetwist.registry.validation.fields}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.validation.fields import Causes, local_file_path


class PathTests(SynchronousTestCase):
    """Paths in volumes."""

    def test_below(self) -> None:
        """A path stays below where it begins; a backslash is a character like any other."""
        up, dots = "must not contain '..'", "must not start with '..'"
        for path, wanted in (
            ("a/b", []),
            ("a\\..\\b", []),
            ("..a", [dots]),
            ("..", [up, dots]),
            ("../a", [up]),
            ("a/../b", [up]),
            ("/a", ["must be a relative path"]),
        ):
            causes: Causes = []
            local_file_path(path, "x", causes)
            self.assertEqual([cause.message.rpartition(": ")[2] for cause in causes], wanted, path)
