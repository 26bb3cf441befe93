"""Metrics of etcd's calls, as the middleware of kube-apiserver counts them, and of its leases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...metrics.registry import (
    Histogram,
    MetricSnapshot,
)
from ._errors import (
    DEADLINE_EXCEEDED,
    UNAVAILABLE,
    ResponseTimeout,
    RPCError,
)

_KEYS: Final = (10.0, 50.0, 100.0, 500.0, 1000.0, 2500.0, 5000.0)
#: The names of gRPC's codes in Go.
_CODES: Final = (
    *("OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists"),
    *("PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented"),
    *("Internal", "Unavailable", "DataLoss", "Unauthenticated"),
)
_LABELS: Final = ("grpc_type", "grpc_service", "grpc_method")


class CallCounts:
    """The counters of one method; messages are counted when sent and when received."""

    __slots__ = ("codes", "kind", "received", "sent", "started")

    def __init__(self, kind: str = "unary") -> None:
        self.kind = kind
        self.started = self.sent = self.received = 0
        self.codes: dict[str, int] = {}

    def begin(self) -> None:
        """Count the start of a call, with one message."""
        self.started += 1
        self.sent += 1

    def end(self, error: Exception | None = None) -> None:
        """Count the end of a call."""
        self._end("OK" if error is None else code_of(error))

    def cancel(self) -> None:
        """Count a cancelled call."""
        self._end("Canceled")

    def _end(self, code: str) -> None:
        self.codes[code] = self.codes.get(code, 0) + 1


#: For calls that are not counted.
UNCOUNTED: Final = CallCounts()


def code_of(error: Exception) -> str:
    """Return the code of gRPC for an error."""
    if isinstance(error, RPCError):
        code = error.code
    else:
        code = DEADLINE_EXCEEDED if isinstance(error, ResponseTimeout) else UNAVAILABLE
    return _CODES[code] if 0 <= code < len(_CODES) else "Unknown"


class EtcdMetrics:
    """
    The metrics of one server's etcd.

    @ivar lease_keys: Histogram of the keys of a lease, observed each time a lease is requested for another key.
    @ivar sizes: Bytes of the members' databases, by address; as of the last poll.
    """

    def __init__(self) -> None:
        self.lease_keys = Histogram(_KEYS)
        self.sizes: dict[str, int] = {}
        self._calls: dict[bytes, CallCounts] = {}

    def of(self, path: bytes, kind: str = "unary") -> CallCounts:
        """
        Return the counters of a method.

        @param path: The path, C{b"/etcdserverpb.KV/Range"}.
        """
        counts = self._calls.get(path)
        if counts is None:
            counts = self._calls[path] = CallCounts(kind)
        return counts

    def started(self) -> dict[str, int]:
        """Return the number of calls by method."""
        return {path.decode(): counts.started for path, counts in self._calls.items()}

    def collect(self) -> Iterator[MetricSnapshot]:
        """Yield the metrics."""
        calls = {_labels(path, counts): counts for path, counts in self._calls.items()}
        for name, text, what in (
            ("started_total", "Number of RPCs started on the client.", "started"),
            ("msg_sent_total", "Number of gRPC messages sent by the client.", "sent"),
            ("msg_received_total", "Number of gRPC messages received by the client.", "received"),
        ):
            yield _counter(name, text, _LABELS, {key: getattr(one, what) for key, one in calls.items()})
        ended = {(*key, code): count for key, one in calls.items() for code, count in one.codes.items()}
        yield _counter(
            "handled_total", "Number of RPCs completed by the client, by status code.", (*_LABELS, "grpc_code"), ended
        )
        text = "Number of objects attached to a single etcd lease."
        yield MetricSnapshot("etcd_lease_object_counts", "histogram", text, (), [((), self.lease_keys)])
        text = "Size of the storage database in bytes."
        # The members have the same data; their sizes differ by free space that is not reclaimed yet.
        size = [(("etcd-0",), float(max(self.sizes.values())))] if self.sizes else []
        yield MetricSnapshot("apiserver_storage_size_bytes", "gauge", text, ("storage_cluster_id",), size)
        sizes = [((member,), float(one)) for member, one in self.sizes.items()]
        text = "Size of the storage database in bytes, by etcd member."
        yield MetricSnapshot("apiserver_storage_db_total_size_in_bytes", "gauge", text, ("endpoint",), sizes)


def _labels(path: bytes, counts: CallCounts) -> tuple[str, ...]:
    service, _, method = path.decode().strip("/").partition("/")
    return counts.kind, service, method


def _counter(name: str, text: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], int]) -> MetricSnapshot:
    samples = [(key, float(value)) for key, value in values.items()]
    return MetricSnapshot(f"grpc_client_{name}", "counter", text, labels, samples)
