"""What is counted of encryption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...api.times import posix_now
from ...metrics.registry import Distribution, Reading, exponential

_RELOADED = ("status", "apiserver_id_hash")


class EncryptionTally:
    """
    Numbers that only grow.

    @ivar generated: Seconds that it took to have a new seed of keys.
    @ivar failed: How often there came none.
    @ivar misses: How often a service had to be asked for the key of something that is stored.
    """

    def __init__(self) -> None:
        self.generated = Distribution(exponential(5e-6, 2.0, 14))
        self.failed = 0
        self.misses = 0
        self._reloads: dict[str, int] = {}
        self._reloaded_at: dict[str, float] = {}

    def reloaded(self, success: bool) -> None:
        """The file has changed, and is gone by from now on or is not."""
        status = "success" if success else "failure"
        self._reloads[status] = self._reloads.get(status, 0) + 1
        self._reloaded_at[status] = posix_now()

    def readings(self, keys: Mapping[str, int]) -> Iterator[Reading]:
        """
        All of it.

        @param keys: By the name of a service, how many keys of it are known.
        """
        prefix = "apiserver_encryption_config_controller_automatic_reload"
        counts = [((status, ""), float(count)) for status, count in self._reloads.items()]
        yield Reading(f"{prefix}s_total", "counter", "Changes of the file, by whether it is used.", _RELOADED, counts)
        times = [((status, ""), at) for status, at in self._reloaded_at.items()]
        yield Reading(f"{prefix}_last_timestamp_seconds", "gauge", "When it last changed.", _RELOADED, times)
        if keys:
            prefix = "apiserver_storage_"
            text = "How long it took to have a new seed of keys."
            generated = [((), self.generated)]
            yield Reading(f"{prefix}data_key_generation_duration_seconds", "histogram", text, (), generated)
            text = "How often there came none."
            failures = [((), float(self.failed))]
            yield Reading(f"{prefix}data_key_generation_failures_total", "counter", text, (), failures)
            text = "How often a service was asked for the key of something stored."
            misses = [((), float(self.misses))]
            yield Reading(f"{prefix}envelope_transformation_cache_misses_total", "counter", text, (), misses)
            sizes = [((name,), float(count)) for name, count in keys.items()]
            name = "apiserver_envelope_encryption_dek_source_cache_size"
            yield Reading(name, "gauge", "Keys that are known.", ("provider_name",), sizes)
