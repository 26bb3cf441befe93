"""
Read what one process has counted since the last sample.

Counters and histograms are read as they are. Collecting all metrics and encoding them would take ten times as long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.task import deferLater

from ...metrics.history.increments import CounterIncrements, HistogramIncrements, Observations
from ...metrics.history.recorder import Bounds
from ...metrics.history.samples import Errors, RequestKey, Sample
from ...metrics.registry import Counter, Histogram, Registry
from ...storage.cache.metrics import REQUEST_SECONDS
from ...storage.wrappers import unwrap_backend
from ..collectors import storage_size
from ..reactordelay import BOUNDS as DELAYS

if TYPE_CHECKING:
    from ...http.site import KubeSite
    from ..apis import InstalledAPIs
    from ..config import ServerConfig
    from ..flowcontrolsampler import FlowControlSampler

_DURATIONS: Final = "apiserver_request_duration_seconds"
_TOTAL: Final = "apiserver_request_total"
#: The order of labels of both: verb, group, version, resource, subresource.
_CODE: Final = -1
#: The number of series that are read in one slice.
SLICE: Final = 30
#: Resident pages of a process are in this file of Linux.
_STATM: Final = "/proc/self/statm"


def history_bounds(registry: Registry) -> Bounds:
    """Return the bounds of the histograms that L{ProcessSource} reads."""
    family = registry.find(_DURATIONS)
    requests = Histogram(()) if family is None else family.with_label_values(*("",) * len(family.labels))
    assert isinstance(requests, Histogram), "durations are a histogram"
    if family is not None:
        family.delete_label_values(*("",) * len(family.labels))
    return Bounds(requests.bounds, DELAYS, REQUEST_SECONDS)


class ProcessSource:
    """Takes the samples of one process."""

    def __init__(
        self,
        config: ServerConfig,
        apis: InstalledAPIs | None,
        site: KubeSite,
        sampler: FlowControlSampler | None,
        delays: Histogram,
        is_ready: Callable[[], bool],
    ) -> None:
        """
        @param apis: The APIs of the server; L{None} for a server without any.
        @param site: The site with the open requests.
        @param sampler: The utilization of priority levels; L{None} if there are none.
        @param delays: The delays of the event loop.
        @param is_ready: Returns whether the server was started, and is not stopping.
        """
        self._config = config
        self._apis = apis
        self._site = site
        self._sampler = sampler
        self._delays = delays
        self._is_ready = is_ready
        self._histograms = HistogramIncrements()
        self._counters = CounterIncrements()
        self._backend = unwrap_backend(config.backend)
        self._page_size = os.sysconf("SC_PAGE_SIZE")

    async def take(self) -> Sample:
        """
        Return the sample since the last call.

        It is taken in slices of less than a millisecond, between which the reactor serves requests.
        """
        reactor = self._config.reactor
        for _ in batched(self._config.metrics.flush(), SLICE):
            await deferLater(reactor, 0, lambda: None)
        requests = Sample()
        for _ in batched(self._read_requests(requests), SLICE):
            await deferLater(reactor, 0, lambda: None)
        sample = Sample(
            requests=requests.requests,
            errors=requests.errors,
            delays=self._histograms.take("delays", self._delays) or Observations(),
            storage=self._histograms.take_all(self._storage_requests()),
            sums={
                "cpu": self._counters.take("cpu", time.process_time()),
                "long_running": float(len(self._site.long_running_requests)),
            },
            lowest={"ready": float(self._ready())},
        )
        self._add_levels(sample)
        self._add_storage(sample)
        with suppress(OSError), open(_STATM, "rb") as file:
            sample.sums["memory"] = float(int(file.read().split()[1]) * self._page_size)
        return sample

    async def take_encoded(self) -> list[Any]:
        """Return the sample as JSON values, for another process."""
        return (await self.take()).encode()

    def _read_requests(self, sample: Sample) -> Iterator[None]:
        """Read one histogram that has changed at each step."""
        registry = self._config.metrics
        durations, totals = registry.find(_DURATIONS), registry.find(_TOTAL)
        for labels, child in () if durations is None else durations.children():
            if isinstance(child, Histogram):
                increment = self._histograms.take(labels, child)
                if increment is not None:
                    sample.requests.setdefault(_key(labels), Observations()).add(increment)
                    yield
        for labels, counter in () if totals is None else totals.children():
            if labels[_CODE] >= "4" and isinstance(counter, Counter):
                number = self._counters.take(labels, counter.value)
                if number:
                    sample.errors.setdefault(_key(labels), Errors()).count(int(labels[_CODE]), number)

    def _add_levels(self, sample: Sample) -> None:
        flow = None if self._apis is None else self._apis.flow
        if flow is not None:
            for level in flow.levels.values():
                limits = level.queues.limits
                executing = self._mean(level.name, "executing", max(level.seats, 1))
                room = max(limits.num_queues * limits.queue_length_limit, 1)
                sample.levels[level.name] = executing, self._mean(level.name, "waiting", room)

    def _mean(self, level: str, phase: str, limit: int) -> float:
        """Return the mean number of requests of a priority level since the last sample."""
        histogram = None if self._sampler is None else self._sampler.find(level, phase)
        if histogram is None:
            return 0.0
        increment = self._histograms.take((level, phase), histogram)
        return 0.0 if increment is None else increment.total / increment.count * limit

    def _add_storage(self, sample: Sample) -> None:
        highest = sample.highest
        if self._config.workers.number:
            return
        # The storage process knows the storage; fronts know that process only.
        size = storage_size(self._config)
        if size is not None:
            highest["storage_size"] = size
        client = getattr(self._backend, "client", None)
        if client is not None:
            sizes = client.metrics.sizes
            if sizes:
                highest["storage_size"] = float(max(sizes.values()))
            highest["etcd_members"] = float(len(client.members))
            highest["etcd_healthy"] = float(sum(member.unhealthy_since is None for member in client.members))
        if self._apis is not None:
            highest["revision"] = float(max((store.cache.revision for store in self._apis.registry.stores), default=0))

    def _storage_requests(self) -> Iterator[tuple[Hashable, Histogram]]:
        seen = set()
        for store in () if self._apis is None else self._apis.registry.stores:
            # Resources that are stored at one place share a cache.
            cache = store.cache
            if cache.metrics.requests and cache not in seen:
                seen.add(cache)
                for operation, seconds in cache.metrics.requests.items():
                    yield (cache.prefix, operation), seconds

    def _ready(self) -> bool:
        """Return whether the server was started, and its caches and its storage work."""
        if not self._is_ready():
            return False
        stores = () if self._apis is None else self._apis.registry.stores
        if not all(store.cache.ready or store.cache.on_demand.pending for store in stores):
            return False
        client = getattr(self._backend, "client", None)
        if client is not None:
            return any(member.unhealthy_since is None for member in client.members)
        metrics = getattr(self._backend, "metrics", None)
        return bool(getattr(metrics, "writable", True))


def batched(steps: Iterable[object], size: int) -> Iterator[None]:
    """Yield after each C{size} steps of an iterator."""
    for number, _ in enumerate(steps, 1):
        if number % size == 0:
            yield


def _key(labels: tuple[str, ...]) -> RequestKey:
    """Return the verb, and the resource as C{"deployments.apps/scale"}, or the path of another request."""
    verb, group, _, resource, subresource = labels[:5]
    name = f"{resource}.{group}" if group else resource
    return verb, name + (f"/{subresource.removeprefix('/')}" if subresource else "")
