"""Tests for L{StreamMetrics}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.registry import Registry
from kubetwist.metrics.streams import StreamMetrics
from tests.metrics.reading import read


class StreamMetricsTests(SynchronousTestCase):
    """Tests for L{StreamMetrics}."""

    def setUp(self) -> None:
        """Register the metrics."""
        self.registry = Registry()
        self.metrics = StreamMetrics(self.registry)

    def found(self, name: str, label: str) -> dict[str, float]:
        """Return the values of a metric by label value."""
        return {dict(labels)[label]: value for labels, value in read(self.registry)[name].items()}

    def test_codes(self) -> None:
        """A code that is not an HTTP status counts as 500."""
        codes: tuple[Any, ...] = (101, 404, 99, 600, "madeup", None)
        for code in codes:
            self.metrics.translated(code)
            self.metrics.tunneled(code)
        for name in ("translator", "tunnel"):
            found = self.found(f"apiserver_stream_{name}_requests_total", "code")
            self.assertEqual(found, {"101": 1, "404": 1, "500": 4})

    def test_routes(self) -> None:
        """Requests are counted by whether the kubelet supports WebSockets."""
        self.metrics.routed("exec", True)
        self.metrics.routed("exec", False)
        self.metrics.routed("exec", False)
        found = self.found("apiserver_websocket_streaming_requests_total", "proxy_type")
        self.assertEqual(found, {"proxied_to_kubelet": 1, "translated_at_apiserver": 2})

    def test_logs(self) -> None:
        """
        Log requests are counted by whether the kubelet's certificate is verified, failed verifications separately.
        """
        self.metrics.log_requested(True)
        self.metrics.log_requested(False)
        self.metrics.log_tls_failed()
        found = self.found("kube_apiserver_pod_logs_insecure_backend_total", "usage")
        self.assertEqual(found, {"skip_tls_allowed": 1, "enforce_tls": 1})
        failures = read(self.registry)["kube_apiserver_pod_logs_backend_tls_failure_total"]
        self.assertEqual(failures, {(): 1})
