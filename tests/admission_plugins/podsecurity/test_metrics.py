"""Tests for L{PodSecurityMetrics}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.podsecurity.levels import LevelVersion
from kubetwist.admission_plugins.podsecurity.metrics import PodSecurityMetrics
from tests.metrics.reading import parse_snapshots


class PodSecurityTallyTests(SynchronousTestCase):
    """Tests for L{PodSecurityMetrics}."""

    def test_future_versions(self) -> None:
        """CVE-2020-8552: an unknown version in a label of a namespace is counted as C{future}."""
        metrics = PodSecurityMetrics(36)
        for minor in (None, 20, 1000, 10**9):
            metrics.evaluated("enforce", LevelVersion("baseline", minor), True, ("create", "pod", ""))
        versions = {
            dict(labels)["policy_version"]
            for labels in parse_snapshots(*metrics.collect())["pod_security_evaluations_total"]
        }
        self.assertEqual(versions, {"latest", "v1.20", "future"})
