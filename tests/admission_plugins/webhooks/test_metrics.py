"""Tests for L{WebhookMetrics}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.webhooks.metrics import WebhookMetrics
from tests.metrics.reading import parse_snapshots


class WebhookTallyTests(SynchronousTestCase):
    """Tests for L{WebhookMetrics}."""

    def test_webhooks(self) -> None:
        """Calls are counted by status code and rejections by type of error; status codes are limited."""
        metrics = WebhookMetrics("admit")
        metrics.observe("a", "CREATE", 0.1, 200, "")
        metrics.observe("a", "CREATE", 0.1, 99999, "no_error")
        metrics.observe("a", "CREATE", 0.1, 0, "calling_webhook_error")
        metrics.failed_open("a")
        result = parse_snapshots(*metrics.collect())
        codes = {dict(labels)["code"] for labels in result["apiserver_admission_webhook_request_total"]}
        self.assertEqual(codes, {"200", "600", "0"})
        message = {
            (dict(labels)["error_type"], dict(labels)["rejection_code"])
            for labels in result["apiserver_admission_webhook_rejection_count_total"]
        }
        self.assertEqual(message, {("no_error", "600"), ("calling_webhook_error", "0")})
        self.assertEqual(sum(result["apiserver_admission_webhook_fail_open_count_total"].values()), 1)

    def test_bounded_names(self) -> None:
        """CVE-2020-8552: the number of label combinations is limited."""
        metrics = WebhookMetrics("admit")
        for number in range(6000):
            metrics.observe(f"w{number}", "CREATE", 0.1, 200, "")
            metrics.failed_open(f"w{number}")
        result = parse_snapshots(*metrics.collect())
        self.assertEqual(len(result["apiserver_admission_webhook_request_total"]), 2000)
        self.assertEqual(len(result["apiserver_admission_webhook_fail_open_count_total"]), 2000)
