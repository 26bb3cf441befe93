"""Metrics of webhook calls, as client-go counts its requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..metrics.registry import (
    Histogram,
    MetricSnapshot,
)

_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES: Final = (
    *(64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0),
    *(1048576.0, 4194304.0, 16777216.0),
)
#: Maximum number of hosts with separate counters; webhook configurations may name many over time.
_MAX_HOSTS: Final = 200
_OTHER_HOST: Final = "other"
_METHOD: Final = "POST"


class _Host:
    """The counts of one host."""

    __slots__ = ("codes", "received", "seconds", "sent")

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.seconds = Histogram(_SECONDS)
        self.sent = Histogram(_BYTES)
        self.received = Histogram(_BYTES)


class CallMetrics:
    """
    Counters of calls.

    @ivar clients: The number of clients made.
    @ivar nameless: Number of calls that failed because the server's certificate has only a common name.
    """

    def __init__(self) -> None:
        self.clients = self.nameless = 0
        self._hosts: dict[str, _Host] = {}

    def _host(self, name: str) -> _Host:
        host = self._hosts.get(name)
        if host is None:
            if len(self._hosts) >= _MAX_HOSTS:
                name = _OTHER_HOST
            host = self._hosts.setdefault(name, _Host())
        return host

    def answered(self, name: str, code: int, seconds: float, sent: int, received: int) -> None:
        """
        Count a call with a response.

        @param name: The called host, as in the URL: C{"hook.default.svc:443"}.
        @param seconds: Seconds until the last byte.
        @param sent: Size of the request body in bytes.
        @param received: Size of the response body in bytes.
        """
        host = self._host(name)
        host.received.observe(received)
        self._count_call(host, str(code), seconds, sent)

    def failed(self, name: str, seconds: float, sent: int, *, nameless: bool = False) -> None:
        """
        Count a call without a response.

        @param nameless: Whether the server's certificate has only a common name.
        """
        self.nameless += nameless
        self._count_call(self._host(name), "<error>", seconds, sent)

    @staticmethod
    def _count_call(host: _Host, code: str, seconds: float, sent: int) -> None:
        host.codes[code] = host.codes.get(code, 0) + 1
        host.seconds.observe(seconds)
        host.sent.observe(sent)

    def collect(self, open_clients: int) -> Iterator[MetricSnapshot]:
        """
        Yield the metrics.

        @param open_clients: The current number of clients.
        """
        hosts = list(self._hosts.items())
        yield MetricSnapshot(
            "rest_client_requests_total",
            "counter",
            "Number of HTTP requests to webhooks, by status code.",
            ("code", "method", "host"),
            [((code, _METHOD, name), float(count)) for name, host in hosts for code, count in host.codes.items()],
        )
        for name, text, attribute in (
            ("request_duration_seconds", "Duration of requests to webhooks in seconds.", "seconds"),
            ("request_size_bytes", "Size of request bodies to webhooks in bytes.", "sent"),
            ("response_size_bytes", "Size of response bodies of webhooks in bytes.", "received"),
        ):
            values = [((_METHOD, host_name), getattr(host, attribute)) for host_name, host in hosts]
            yield MetricSnapshot(f"rest_client_{name}", "histogram", text, ("verb", "host"), values)
        name, text = (
            "apiserver_webhooks_x509_missing_san_total",
            "Number of calls that failed because a certificate has no SANs.",
        )
        yield MetricSnapshot(name, "counter", text, (), [((), float(self.nameless))])
        transports = [(("miss",), float(self.clients))]
        text = "Number of clients that were created for webhooks."
        yield MetricSnapshot("rest_client_transport_create_calls_total", "counter", text, ("result",), transports)
        text = "Number of clients for webhooks."
        yield MetricSnapshot("rest_client_transport_cache_entries", "gauge", text, (), [((), float(open_clients))])
