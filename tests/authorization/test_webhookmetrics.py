"""Tests for L{kubetwist.authorization.webhookmetrics}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.authorization.webhookmetrics import WebhookMetrics
from tests.metrics.reading import parse_snapshots


class TallyTests(SynchronousTestCase):
    """Tests for L{WebhookMetrics}."""

    def test_results(self) -> None:
        """Calls are counted and timed by webhook and result; failures without opinion are also counted as fail open."""
        metrics = WebhookMetrics()
        metrics.observe("a", "success", 0.25)
        metrics.observe("a", "success", 0.25)
        metrics.observe("a", "timeout", 3.0, ignored=True)
        metrics.observe("b", "error", 0.1)
        result = parse_snapshots(*metrics.collect())
        counts = {
            (dict(labels)["name"], dict(labels)["result"]): count
            for labels, count in result["apiserver_authorization_webhook_evaluations_total"].items()
        }
        self.assertEqual(counts, {("a", "success"): 2, ("a", "timeout"): 1, ("b", "error"): 1})
        self.assertEqual(
            result["apiserver_authorization_webhook_evaluations_fail_open_total"],
            {(("name", "a"), ("result", "timeout")): 1},
        )
        seconds = result["apiserver_authorization_webhook_duration_seconds_sum"]
        self.assertEqual(seconds[(("name", "a"), ("result", "success"))], 0.5)
