"""Tests for L{kubetwist.authentication.metrics}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.authentication.metrics import (
    TokenMetrics,
    token_metrics,
)
from tests.metrics.reading import parse_snapshots


class TallyTests(SynchronousTestCase):
    """Tests for L{token_metrics}."""

    def test_sum(self) -> None:
        """The metrics of several authenticators are added up."""
        one, other = TokenMetrics(), TokenMetrics()
        one.observe_lookup(True, 0.001)
        one.observe_lookup(False, 0.2, "ok")
        other.observe_lookup(False, 0.3, "error")
        other.in_flight = 2
        for use in ("stale_tokens", "stale_tokens", "valid_tokens"):
            other.count(use)
        result = parse_snapshots(*token_metrics([one, other]))
        totals = {
            dict(labels)["status"]: count
            for labels, count in result["authentication_token_cache_request_total"].items()
        }
        self.assertEqual(totals, {"hit": 1, "miss": 2})
        fetched = {
            dict(labels)["status"]: count for labels, count in result["authentication_token_cache_fetch_total"].items()
        }
        self.assertEqual(fetched, {"ok": 1, "error": 1})
        self.assertEqual(list(result["authentication_token_cache_active_fetch_count"].values()), [2])
        self.assertEqual(result["serviceaccount_stale_tokens_total"], {(): 2})
        self.assertEqual(result["serviceaccount_legacy_tokens_total"], {(): 0})
        seconds = result["authentication_token_cache_request_duration_seconds_sum"]
        self.assertAlmostEqual(seconds[(("status", "miss"),)], 0.5)

    def test_no_authenticators(self) -> None:
        """Without authenticators there are no series."""
        self.assertEqual(list(token_metrics([])), [])
