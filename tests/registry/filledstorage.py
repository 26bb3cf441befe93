"""A storage with more objects than a watch cache reads at once, for tests of caches that are filled on demand."""

from __future__ import annotations

from typing import ClassVar

import orjson

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from kubetwist.api.storage import Page, Write
from kubetwist.storage.cache.watchcache import PAGE
from kubetwist.storage.memory import MemoryStorage


class FilledStorage(MemoryStorage):
    """
    A storage with config maps: more than a page.

    @cvar count: The number of config maps in the namespace C{a}.
    @cvar further: The data of further config maps, by their keys.
    @ivar pages: Fires when pages can be read.
    """

    count: ClassVar[int] = PAGE + 1
    further: ClassVar[dict[str, dict[str, str]]] = {}

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.pages: Deferred[None] = succeed(None)

    async def open(self) -> None:
        """See L{MemoryStorage.open}."""
        await super().open()
        for key, data in {**{f"a/c{number:04}": {} for number in range(self.count)}, **self.further}.items():
            namespace, _, name = key.partition("/")
            meta = {"namespace": namespace, "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
            value = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta, "data": data}
            await self.commit([Write(f"/registry/configmaps/{key}", orjson.dumps(value), 0)])

    async def read_page(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        """See L{MemoryStorage.read_page}."""
        await self.pages
        return await super().read_page(prefix, start=start, limit=limit, revision=revision)
