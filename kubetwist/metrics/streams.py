"""
What is counted of exec, attach and port-forward, and of logs.

@see: kubernetes/apiserver, C{pkg/util/proxy/metrics/metrics.go}; kubernetes/kubernetes,
    C{pkg/registry/core/pod/rest/metrics.go}.
"""

from __future__ import annotations

from .registry import Registry


class StreamMetrics:
    """Counts the requests for streams that one server has passed on."""

    def __init__(self, registry: Registry) -> None:
        self._translated = registry.counter(
            "apiserver_stream_translator_requests_total",
            "Commands over WebSocket that became commands over SPDY, by what came of them.",
            ("code",),
        )
        self._tunnelled = registry.counter(
            "apiserver_stream_tunnel_requests_total",
            "Forwarded ports whose SPDY came inside of a WebSocket, by what came of them.",
            ("code",),
        )
        self._routed = registry.counter(
            "apiserver_websocket_streaming_requests_total",
            "Requests for streams, by whether their kubelet would have taken a WebSocket as it is.",
            ("subresource", "proxy_type"),
        )
        self._logs = registry.counter(
            "kube_apiserver_pod_logs_insecure_backend_total",
            "Requests for logs, by whether their kubelet had to show a good certificate.",
            ("usage",),
        )
        self._strangers = registry.counter(
            "kube_apiserver_pod_logs_backend_tls_failure_total",
            "Requests for logs whose kubelet did not show a good certificate.",
        )

    def routed(self, subresource: str, kubelet: bool) -> None:
        """A request has come whose kubelet takes WebSockets, or does not."""
        self._routed.with_label_values(
            subresource, "proxied_to_kubelet" if kubelet else "translated_at_apiserver"
        ).value += 1

    def log_wanted(self, insecure: bool) -> None:
        """A kubelet is asked for a log."""
        self._logs.with_label_values("skip_tls_allowed" if insecure else "enforce_tls").value += 1

    def log_of_stranger(self) -> None:
        """What answers is not the kubelet."""
        self._strangers.with_label_values().value += 1

    def translated(self, code: object) -> None:
        """A command has ended, or has not begun."""
        self._translated.with_label_values(_label(code)).value += 1

    def tunnelled(self, code: object) -> None:
        """A tunnel is there, or is not."""
        self._tunnelled.with_label_values(_label(code)).value += 1


def _label(code: object) -> str:
    """The code of an answer, which kubelets can say anything to be."""
    return str(code) if isinstance(code, int) and 100 <= code < 600 else "500"
