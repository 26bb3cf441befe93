"""The watch caches of a server: one for each prefix of storage keys."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.internet.interfaces import IReactorTime

from ...interfaces import IStorageBackend
from ...storage.cache.blocks import FormBudget
from ...storage.cache.reader import Codec
from ...storage.cache.watchcache import WINDOW_EVENTS, WatchCache
from .cacheerrors import translate_cache_error
from .resourceinfo import ResourceInfo


class WatchCaches:
    """Factory of watch caches; resources with the same prefix of storage keys (C{events} of two groups) share one."""

    def __init__(
        self,
        backend: IStorageBackend,
        reactor: IReactorTime,
        *,
        prefix: str = "/registry/",
        sizes: Mapping[str, int] | None = None,
        default_size: int = 100,
    ) -> None:
        """
        @param backend: The storage.
        @param reactor: The reactor, or a clock in tests.
        @param prefix: The prefix of all keys in the backend.
        @param sizes: The minimum number of past events that are kept, by resource (C{"deployments.apps"}); with 0, the
            backend answers reads instead of the cache.
        @param default_size: The minimum number of past events for all other resources.
        """
        self._backend = backend
        self._reactor = reactor
        self._prefix = prefix
        self._sizes = sizes or {}
        self._default_size = default_size
        self._caches: dict[str, WatchCache] = {}
        self._form_budget = FormBudget()

    def shared(self, info: ResourceInfo, codec: Codec) -> WatchCache:
        """
        Return the cache of a built-in resource.

        @param codec: Decodes stored values; used for the first resource with its prefix.
        """
        cache = self._caches.get(info.key_prefix)
        if cache is None:
            cache = self._caches[info.key_prefix] = self.create(info, codec)
        return cache

    def create(self, info: ResourceInfo, codec: Codec) -> WatchCache:
        """Return a new cache, which the caller starts and stops."""
        size = max(self._size(info), WINDOW_EVENTS)
        prefix = f"{self._prefix}{info.key_prefix}/"
        return WatchCache(
            self._backend,
            prefix,
            codec,
            self._reactor,
            window_events=size,
            translate=translate_cache_error,
            form_budget=self._form_budget,
        )

    def answers_reads(self, info: ResourceInfo) -> bool:
        """Return whether reads of a resource are answered by its cache, and not by the backend."""
        return self._size(info) > 0

    def _size(self, info: ResourceInfo) -> int:
        return self._sizes.get(str(info.group_resource), self._default_size)
