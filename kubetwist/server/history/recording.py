"""
Record samples while a server runs, and what they are marked with.

One process of a server records the samples of all: the storage process, or the only process. The other ones are called
for their samples. A graceful stop writes the history into the data directory, and the next start continues it.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ...api.times import posix_now
from ...metrics.history.recorder import CAPACITY, INTERVAL, MAX_DOCUMENT, HistoryRecorder
from ...metrics.history.samples import Sample
from ..files import write_file
from .sources import ProcessSource

if TYPE_CHECKING:
    from pathlib import Path

    from ...registry.stores import Stores
    from ..config import ServerConfig
    from ..peers import Peers

#: Seconds until the first sample.
FIRST: Final = 1.0
#: The file of the history, in the data directory.
FILE: Final = "history.json.gz"
#: The function of each process that returns its sample.
SAMPLE: Final = "sample of the history"
#: Where leaders are elected.
_LEASES: Final = ("coordination.k8s.io", "leases", "kube-system")
#: The number of Leases whose holders are followed.
_MAX_LEASES: Final = 100


class Recording:
    """Takes a sample of all processes each L{INTERVAL} seconds."""

    _log = Logger()

    def __init__(
        self,
        config: ServerConfig,
        source: ProcessSource,
        recorder: HistoryRecorder,
        stores: Stores | None,
        restarts: Callable[[], int] = lambda: 0,
    ) -> None:
        """
        @param source: The samples of this process.
        @param recorder: Records the samples.
        @param stores: The stores; L{None} for a server without APIs.
        @param restarts: Returns how often a worker was started again.
        """
        self._config = config
        self._reactor = config.reactor
        self._peers: Peers | None = config.peers
        self._source = source
        self._recorder = recorder
        self._stores = stores
        self._restarts = restarts
        self._call: IDelayedCall | None = None
        self._stopped = False
        self._last = 0.0
        self._ready: bool | None = None
        self._worker_restarts = 0
        self._holders: dict[str, str] | None = None
        self._reloads: dict[tuple[str, str], tuple[int, float]] = {}

    @property
    def _path(self) -> Path:
        return self._config.data.path / FILE

    def start(self) -> None:
        """Continue the history of the last hour, and begin to take samples."""
        now = posix_now()
        self._restore(now)
        self._recorder.mark(now, "start")
        self._last = self._reactor.seconds()
        self._later(FIRST)

    def stop(self) -> None:
        """Take no more samples, and write the history. Idempotent."""
        if self._stopped:
            return
        self._stopped = True
        call, self._call = self._call, None
        if call is not None:
            call.cancel()
        if self._config.options["in-memory"]:
            # The next process has other data.
            return
        content = gzip.compress(self._recorder.snapshot()(), 6, mtime=0)
        try:
            # A crash of the machine may lose it.
            write_file(self._path, content, durable=False)
        except OSError as error:
            self._log.warn("cannot write the history of metrics: error={error}", error=error)

    def _restore(self, now: float) -> None:
        try:
            decompressor = zlib.decompressobj(wbits=31)
            document = decompressor.decompress(self._path.read_bytes(), MAX_DOCUMENT + 1)
            self._recorder.restore(document, now - CAPACITY * INTERVAL)
        except FileNotFoundError:
            pass
        except (OSError, zlib.error, ValueError) as error:
            self._log.warn("the history of metrics cannot be read, and begins again: error={error}", error=error)

    def _later(self, delay: float) -> None:
        if not self._stopped:
            self._call = self._reactor.callLater(delay, self._take)

    def _take(self) -> None:
        self._call = None
        taken = Deferred.fromCoroutine(self._record())
        taken.addErrback(lambda failure: self._log.failure("cannot take a sample of the metrics", failure))
        taken.addCallback(lambda _: self._later(self._recorder.interval))

    async def _record(self) -> None:
        of_peers: list[Any] = []
        if self._peers is not None:
            of_peers.extend(await self._peers.call(SAMPLE))
        sample = await self._source.take()
        if self._stopped:
            return
        for one in of_peers:
            sample.add(Sample.decode(one))
        seconds, now = self._reactor.seconds(), posix_now()
        self._recorder.record(now, max(seconds - self._last, 0.001), sample)
        self._last = seconds
        self._mark(now, sample)

    # --- marks

    def _mark(self, now: float, sample: Sample) -> None:
        """Add marks for what has changed since the last sample."""
        ready = bool(sample.lowest["ready"])
        if self._ready is not None and ready is not self._ready:
            self._recorder.mark(now, "ready" if ready else "unready")
        self._ready = ready
        restarts = self._restarts()
        for _ in range(min(restarts - self._worker_restarts, 3)):
            self._recorder.mark(now, "worker")
        self._worker_restarts = restarts
        for key, (count, at) in self._config.files.reloads.items():
            if self._reloads.get(key) != (count, at):
                source, status = key
                self._recorder.mark(at, "reload", source if status == "success" else f"{source}: {status}")
        self._reloads = dict(self._config.files.reloads)
        self._mark_leaders(now)

    def _mark_leaders(self, now: float) -> None:
        leases = [] if self._stores is None else self._stores.list_decoded(*_LEASES)[:_MAX_LEASES]
        holders = {str(lease["metadata"]["name"]): _holder(lease) for lease in leases}
        if self._holders is not None:
            for name, holder in holders.items():
                if holder and self._holders.get(name) != holder:
                    self._recorder.mark(now, "leader", f"{name}: {holder}")
        self._holders = holders


def _holder(lease: Mapping[str, Any]) -> str:
    spec = lease.get("spec")
    return str((spec or {}).get("holderIdentity") or "")
