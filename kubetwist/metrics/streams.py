"""
Metrics of exec, attach, port-forward and pod logs.

@see: kubernetes/apiserver, C{pkg/util/proxy/metrics/metrics.go}; kubernetes/kubernetes,
    C{pkg/registry/core/pod/rest/metrics.go}.
"""

from __future__ import annotations

from .registry import Registry


class StreamMetrics:
    """Counts the proxied streaming requests of one server."""

    def __init__(self, registry: Registry) -> None:
        self._translated = registry.counter(
            "apiserver_stream_translator_requests_total",
            "Number of exec and attach requests translated from WebSocket to SPDY, by status code.",
            ("code",),
        )
        self._tunneled = registry.counter(
            "apiserver_stream_tunnel_requests_total",
            "Number of port-forward requests with SPDY tunneled through WebSocket, by status code.",
            ("code",),
        )
        self._routed = registry.counter(
            "apiserver_websocket_streaming_requests_total",
            "Number of WebSocket streaming requests, by whether they are proxied to the kubelet.",
            ("subresource", "proxy_type"),
        )
        self._logs = registry.counter(
            "kube_apiserver_pod_logs_insecure_backend_total",
            "Number of requests for pods/logs by usage type: enforce_tls, skip_tls_allowed.",
            ("usage",),
        )
        self._tls_failures = registry.counter(
            "kube_apiserver_pod_logs_backend_tls_failure_total",
            "Number of requests for pods/logs that failed kubelet TLS verification.",
        )

    def routed(self, subresource: str, kubelet: bool) -> None:
        """Count a streaming request, by whether the kubelet supports WebSockets."""
        self._routed.with_label_values(
            subresource, "proxied_to_kubelet" if kubelet else "translated_at_apiserver"
        ).value += 1

    def log_requested(self, insecure: bool) -> None:
        """Count a request for a pod log."""
        self._logs.with_label_values("skip_tls_allowed" if insecure else "enforce_tls").value += 1

    def log_tls_failed(self) -> None:
        """Count a request for a pod log whose kubelet has no valid certificate."""
        self._tls_failures.with_label_values().value += 1

    def translated(self, code: object) -> None:
        """Count a translated command by its final status code."""
        self._translated.with_label_values(_label(code)).value += 1

    def tunneled(self, code: object) -> None:
        """Count a tunnel by its status code."""
        self._tunneled.with_label_values(_label(code)).value += 1


def _label(code: object) -> str:
    """Return the label of a status code. Kubelets can send any code."""
    return str(code) if isinstance(code, int) and 100 <= code < 600 else "500"
