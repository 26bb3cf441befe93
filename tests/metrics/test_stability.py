"""Tests for L{kubetwist.metrics.stability}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.stability import deprecated_in, described, is_deprecated, is_hidden


class LevelTests(SynchronousTestCase):
    """Tests for L{kubetwist.metrics.stability}."""

    def test_levels(self) -> None:
        """Metrics have a stability level, unless they belong to a library."""
        self.assertEqual(described("apiserver_request_total", "R.", (1, 36)), "[STABLE] R.")
        self.assertEqual(described("workqueue_depth", "R.", (1, 36)), "[BETA] R.")
        self.assertEqual(described("x", "R.", (1, 36)), "[ALPHA] R.")
        self.assertEqual(described("process_open_fds", "R.", (1, 36)), "R.")
        deprecated = "[STABLE] (Deprecated since 1.34.0) R."
        self.assertEqual(described("apiserver_storage_objects", "R.", (1, 36)), deprecated)
        self.assertEqual(described("apiserver_storage_objects", "R.", (1, 33)), "[STABLE] R.")

    def test_deprecated(self) -> None:
        """A metric is deprecated from a release on. Other metrics are never deprecated."""
        self.assertEqual(deprecated_in("apiserver_storage_objects"), "1.34.0")
        self.assertEqual(deprecated_in("workqueue_depth"), "")
        for release, deprecated in (((1, 33), False), ((1, 34), True), ((1, 40), True)):
            self.assertIs(is_deprecated("apiserver_storage_objects", release), deprecated)
        self.assertFalse(is_deprecated("workqueue_depth", (9, 0)))

    def test_hidden_by_level(self) -> None:
        """A deprecated metric is hidden after three releases if it is stable, and immediately if it is alpha."""
        for name, first in (
            ("apiserver_storage_objects", 37),
            ("apiserver_storage_db_total_size_in_bytes", 28),
            ("etcd_bookmark_counts", 36),
        ):
            self.assertEqual([is_hidden(name, (1, first - 1)), is_hidden(name, (1, first))], [False, True], name)
        self.assertFalse(is_hidden("workqueue_depth", (9, 0)))
