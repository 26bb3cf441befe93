"""Tests for L{PodSecurityTally}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.podsecurity.levels import LevelVersion
from kubetwist.admission_plugins.podsecurity.metrics import PodSecurityTally
from tests.metrics.reading import told


class PodSecurityTallyTests(SynchronousTestCase):
    """Tests for L{PodSecurityTally}."""

    def test_future_versions(self) -> None:
        """CVE-2020-8552: a version that a label of a namespace makes up is told as one that is yet to come."""
        tally = PodSecurityTally(36)
        for minor in (None, 20, 1000, 10**9):
            tally.evaluated("enforce", LevelVersion("baseline", minor), True, ("create", "pod", ""))
        versions = {
            dict(labels)["policy_version"] for labels in told(*tally.readings())["pod_security_evaluations_total"]
        }
        self.assertEqual(versions, {"latest", "v1.20", "future"})
