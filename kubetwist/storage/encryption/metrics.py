"""Metrics of encryption."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from time import perf_counter
from typing import Final

from ...api.times import posix_now
from ...metrics.registry import (
    Histogram,
    MetricSnapshot,
    exponential,
)

_RELOADED = ("status", "apiserver_id_hash")
#: Maximum number of keys of services with a metric, as in the reference: the last used ones.
_MAX_KEYS: Final = 100
_TO, _FROM = "to_storage", "from_storage"


class TransformMetrics:
    """
    The outcomes and durations of transformations.

    Values are decrypted in more than one thread, so this has a lock, whose cost is a twentieth of a cipher's.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[tuple[str, ...], int] = {}
        self._seconds: dict[tuple[str, ...], Histogram] = {}

    def written(self, resource: str, prefix: str, began: float, status: str) -> None:
        """
        Count an encryption.

        @param resource: The resource of the value.
        @param prefix: The prefix of the stored values.
        @param began: The time of its start, by C{perf_counter}.
        @param status: C{"OK"}, or a code of gRPC.
        """
        self._note(resource, _TO, prefix, began, status)

    def read(self, resource: str, prefix: str, began: float, status: str) -> None:
        """
        Count a decryption.

        @param resource: The resource of the value.
        @param prefix: The prefix of the stored value; C{""} without one.
        @param began: The time of its start, by C{perf_counter}.
        @param status: C{"OK"}, or a code of gRPC.
        """
        self._note(resource, _FROM, prefix or "identity", began, status)

    def _note(self, resource: str, direction: str, prefix: str, began: float, status: str) -> None:
        took = perf_counter() - began
        with self._lock:
            key = (resource, direction, prefix, status)
            self._counts[key] = self._counts.get(key, 0) + 1
            if status == "OK":
                seconds = self._seconds.get((direction, prefix))
                if seconds is None:
                    seconds = self._seconds[direction, prefix] = Histogram(exponential(5e-6, 2.0, 25))
                seconds.observe(took)

    def collect(self) -> Iterator[MetricSnapshot]:
        """Yield the metrics."""
        with self._lock:
            counts, seconds = list(self._counts.items()), list(self._seconds.items())
        labels = ("transformation_type", "transformer_prefix")
        prefix = "apiserver_storage_transformation_"
        text = "Number of transformations, by status."
        samples = [(key, float(count)) for key, count in counts]
        yield MetricSnapshot(f"{prefix}operations_total", "counter", text, ("resource", *labels, "status"), samples)
        text = "Duration of successful transformations in seconds."
        yield MetricSnapshot(f"{prefix}duration_seconds", "histogram", text, labels, seconds)


class KeyIDMetrics:
    """
    The uses of a service's keys, in any thread, with the time of the last use.

    @ivar reported_at: The time of the last report, by key id.
    @ivar invalid: The number of invalid key ids, by reason.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._uses: dict[tuple[str, str], tuple[int, float]] = {}
        self.reported_at: dict[str, float] = {}
        self.invalid: dict[str, int] = {}

    def wrote(self, key_id: str) -> None:
        """Count an encryption with a key."""
        self._used(_TO, key_id)

    def read(self, key_id: str) -> None:
        """Count a decryption with a key."""
        self._used(_FROM, key_id)

    def _used(self, direction: str, key_id: str) -> None:
        with self._lock:
            before = self._uses.pop((direction, key_id), None)
            if before is None and len(self._uses) >= _MAX_KEYS:
                self._uses.pop(next(iter(self._uses)))
            self._uses[direction, key_id] = (1 if before is None else before[0] + 1, posix_now())

    def named(self, key_id: str) -> None:
        """Note the key id that the service reports."""
        self.reported_at.pop(key_id, None)
        if len(self.reported_at) >= _MAX_KEYS:
            self.reported_at.pop(next(iter(self.reported_at)))
        self.reported_at[key_id] = posix_now()

    def refused(self, key_id: str) -> None:
        """Count an invalid key id that the service reports."""
        reason = "too_long" if key_id else "empty"
        self.invalid[reason] = self.invalid.get(reason, 0) + 1

    def uses(self) -> list[tuple[str, str, int, float]]:
        """Return direction, key, count and time of each use."""
        with self._lock:
            return [(direction, key_id, count, at) for (direction, key_id), (count, at) in self._uses.items()]


class EncryptionMetrics:
    """
    The counters of all services and transformations.

    @ivar generated: Durations of the generation of seeds, in seconds.
    @ivar failed: The number of failed generations.
    @ivar misses: The number of keys of stored values that were not cached.
    @ivar transformations: The outcomes of transformations.
    """

    def __init__(self) -> None:
        self.generated = Histogram(exponential(5e-6, 2.0, 14))
        self.failed = 0
        self.misses = 0
        self.transformations = TransformMetrics()
        self._calls: dict[tuple[str, str, str], Histogram] = {}
        self._reloads: dict[str, int] = {}
        self._reloaded_at: dict[str, float] = {}

    def reloaded(self, success: bool) -> None:
        """Count a change of the file, and whether it was loaded."""
        status = "success" if success else "failure"
        self._reloads[status] = self._reloads.get(status, 0) + 1
        self._reloaded_at[status] = posix_now()

    def called(self, name: str, method: str, began: float, status: str) -> None:
        """
        Count a call of a service.

        @param method: The full name in gRPC: C{"/v2.KeyManagementService/Status"}.
        @param status: A code of gRPC.
        """
        key = (name, method, status)
        seconds = self._calls.get(key)
        if seconds is None:
            seconds = self._calls[key] = Histogram(exponential(0.0001, 2.0, 20))
        seconds.observe(perf_counter() - began)

    def collect(
        self, keys: Mapping[str, int], uses: Mapping[str, KeyIDMetrics], hashed: Callable[[str], str]
    ) -> Iterator[MetricSnapshot]:
        """
        Yield the metrics.

        @param keys: The number of cached keys, by service.
        @param uses: The uses of keys, by service.
        @param hashed: Hashes a key id for the metrics.
        """
        yield from self.transformations.collect()
        prefix = "apiserver_encryption_config_controller_automatic_reload"
        counts = [((status, ""), float(count)) for status, count in self._reloads.items()]
        yield MetricSnapshot(
            f"{prefix}s_total",
            "counter",
            "Number of automatic reloads of the encryption configuration, by status.",
            _RELOADED,
            counts,
        )
        times = [((status, ""), at) for status, at in self._reloaded_at.items()]
        yield MetricSnapshot(
            f"{prefix}_last_timestamp_seconds",
            "gauge",
            "Time of the last automatic reload of the encryption configuration, by status.",
            _RELOADED,
            times,
        )
        yield from self.collect_data_keys()
        if keys:
            sizes = [((name,), float(count)) for name, count in keys.items()]
            name = "apiserver_envelope_encryption_dek_source_cache_size"
            yield MetricSnapshot(
                name, "gauge", "Number of cached data encryption key sources.", ("provider_name",), sizes
            )
            yield from self._of_services(uses, hashed)

    def collect_data_keys(self) -> Iterator[MetricSnapshot]:
        """Yield the metrics of data encryption keys, which are zero without key management services."""
        prefix = "apiserver_storage_"
        text = "Duration in seconds of data encryption key generation."
        generated = [((), self.generated)]
        yield MetricSnapshot(f"{prefix}data_key_generation_duration_seconds", "histogram", text, (), generated)
        text = "Number of failed data encryption key generations."
        failures = [((), float(self.failed))]
        yield MetricSnapshot(f"{prefix}data_key_generation_failures_total", "counter", text, (), failures)
        text = "Number of cache misses while accessing data encryption keys."
        misses = [((), float(self.misses))]
        yield MetricSnapshot(f"{prefix}envelope_transformation_cache_misses_total", "counter", text, (), misses)

    def _of_services(self, uses: Mapping[str, KeyIDMetrics], hashed: Callable[[str], str]) -> Iterator[MetricSnapshot]:
        prefix = "apiserver_envelope_encryption_"
        labels = ("provider_name", "key_id_hash", "apiserver_id_hash")
        used = [
            ((direction, name, hashed(key_id), ""), count, at)
            for name, one in uses.items()
            for direction, key_id, count, at in one.uses()
        ]
        both = ("transformation_type", *labels)
        counts = [(key, float(count)) for key, count, _ in used]
        yield MetricSnapshot(
            f"{prefix}key_id_hash_total", "counter", "Number of times a key id was used.", both, counts
        )
        times = [(key, at) for key, _, at in used]
        text = "Time of the last use of a key id."
        yield MetricSnapshot(f"{prefix}key_id_hash_last_timestamp_seconds", "gauge", text, both, times)
        named = [
            ((name, hashed(key_id), ""), at) for name, one in uses.items() for key_id, at in one.reported_at.items()
        ]
        text = "Time of the last Status call that returned a key id."
        yield MetricSnapshot(f"{prefix}key_id_hash_status_last_timestamp_seconds", "gauge", text, labels, named)
        refused = [
            ((name, reason), float(count)) for name, one in uses.items() for reason, count in one.invalid.items()
        ]
        text = "Number of invalid key ids returned by Status calls."
        yield MetricSnapshot(
            f"{prefix}invalid_key_id_from_status_total", "counter", text, ("provider_name", "error"), refused
        )
        calls = list(self._calls.items())
        text = "Duration in seconds of KMS operations."
        labels = ("provider_name", "method_name", "grpc_status_code")
        yield MetricSnapshot(f"{prefix}kms_operations_latency_seconds", "histogram", text, labels, calls)
