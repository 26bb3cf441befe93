"""Objects of the API that plugins compile: policies, bindings and webhook configurations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from zope.interface import implementer

from ..api.resource import JSONObject
from ..interfaces import IWatchSink
from ..storage.errors import StorageUnavailable

if TYPE_CHECKING:
    from ..api.record import Record
    from ..registry.admissioncontext import ServerAdmissionContext
    from ..storage.cache.watches import CacheWatch

GROUP: Final = "admissionregistration.k8s.io"
_Compiled = TypeVar("_Compiled")


@implementer(IWatchSink)
class CompiledObjectCache(Generic[_Compiled]):
    """
    The compiled objects of one resource of C{admissionregistration.k8s.io}; each is compiled once per revision.

    @ivar is_current: Whether no object has changed since the last L{refresh}.
    @ivar objects: All compiled objects in the order of their names, as of the last L{refresh}.
    """

    def __init__(
        self, server: ServerAdmissionContext, resource: str, compile_object: Callable[[JSONObject], _Compiled]
    ) -> None:
        """
        @param resource: The plural: C{"validatingadmissionpolicies"}.
        @param compile_object: Compiles one object; must not fail.
        """
        self.is_current = False
        self.objects: list[_Compiled] = []
        self._server = server
        self._resource = resource
        self._compile = compile_object
        self._watch: CacheWatch | None = None
        self._by_name: dict[str, tuple[int, _Compiled]] = {}

    # IWatchSink, called by the watch cache.

    def send(self, event_type: str, record: object, event: object) -> None:
        """See L{IWatchSink.send}."""
        self.is_current = False

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Ignore bookmarks."""

    def end(self, error: Exception | None) -> None:
        """Discard the watch; the next L{refresh} starts a new one."""
        self._watch = None
        self.is_current = False

    # Called by the plugin.

    def refresh(self) -> None:
        """
        Compile the objects that have changed, if any.

        @raise StorageUnavailable: The cache is not synced yet.
        """
        if self.is_current:
            return
        store = self._server.stores.find(GROUP, self._resource)
        if store is None:
            # The resource is disabled by --runtime-config.
            self.is_current = True
            return
        cache = store.cache
        if self._watch is None:
            if cache.ready:
                self._watch = cache.watch("", sink=self)
            elif not cache.revision:
                raise StorageUnavailable("not yet ready to handle request")
            # Otherwise the cache is being refilled: its old content is used, and read again with the next request.
        before = self._by_name
        self._by_name = {
            record.name: self._compiled(record, before.get(record.name)) for record in cache.list().records
        }
        # A new list: calls that use the previous objects continue.
        self.objects = [compiled for _, compiled in self._by_name.values()]
        self.is_current = self._watch is not None

    def _compiled(self, record: Record, before: tuple[int, _Compiled] | None) -> tuple[int, _Compiled]:
        if before is not None and before[0] == record.revision:
            return before
        obj = self._server.get_copy(GROUP, self._resource, "", record.name)
        assert obj is not None, "the listed object is in the cache"
        return record.revision, self._compile(obj)
