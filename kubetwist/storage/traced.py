"""
A storage backend with spans for its reads and writes, if requests are traced.

It is the innermost wrapper: its spans do not contain encryption. A server without tracing does not import it.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import alsoProvides, providedBy

from ..api.storage import History, Page, StoredValue, Write
from ..interfaces import IStorageBackend
from ..tracing.propagation import RemoteSpanContext
from ..tracing.spans import Span, Tracer, Value, current, run_in_span
from .wrappers import ForwardingStorage, unwrap_backend


def system_of(backend: IStorageBackend) -> str:
    """Return what a backend is, for spans: C{"sqlite"}, C{"etcd"}, C{"memory"}, C{"storage process"}, or its class."""
    innermost = unwrap_backend(backend)
    return str(getattr(innermost, "system", type(innermost).__name__))


def commit_in_trace(
    storage: IStorageBackend, writes: Sequence[Write], tracer: Tracer, parent: RemoteSpanContext
) -> Any:
    """
    Commit a transaction of another process, in a span below one of that process.

    @param storage: The backend.
    @param writes: The transaction.
    @param tracer: Records the span.
    @param parent: The span of the other process.
    @return: See L{IStorageBackend.commit}.
    """
    system = system_of(storage)
    span = tracer.start_trace(parent, True, b"", perf_counter())
    if isinstance(span, Span):
        span.name = f"{system} commit"
        span.set_attribute("db.system.name", system)
        span.set_attribute("writes", len(writes))
    return Deferred.fromCoroutine(run_in_span(span, storage.commit, writes))


class TracedStorage(ForwardingStorage):
    """
    A storage backend whose calls run in spans, below the current span.

    It provides the interfaces of the wrapped backend, and has its other attributes.

    @ivar inner: The wrapped backend.
    """

    def __init__(self, inner: IStorageBackend) -> None:
        super().__init__(inner)
        self._system = system_of(inner)
        alsoProvides(self, *providedBy(inner))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def commit(self, writes: Sequence[Write]) -> Deferred[int]:
        """See L{IStorageBackend.commit}."""
        parent = current.get()
        if not isinstance(parent, Span):
            return self.inner.commit(writes)
        attributes: dict[str, Value] = {"key": writes[0].key, "writes": len(writes)} if writes else {}
        return Deferred.fromCoroutine(self._in_span(parent, "commit", attributes, self.inner.commit, writes))

    async def read(self, key: str) -> StoredValue:
        """See L{IStorageBackend.read}."""
        parent = current.get()
        if not isinstance(parent, Span):
            return await self.inner.read(key)
        value: StoredValue = await self._in_span(parent, "read", {"key": key}, self.inner.read, key)
        return value

    async def read_page(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        """
        See L{IStorageBackend.read_page}.

        @param prefix: The prefix of the keys.
        @param start: The first key to read; C{""} begins with the prefix.
        @param limit: Maximum number of values; 0 for all.
        @param revision: The revision to read at; 0 for the newest.
        """
        parent = current.get()
        if not isinstance(parent, Span):
            return await self.inner.read_page(prefix, start=start, limit=limit, revision=revision)
        attributes: dict[str, Value] = {"key": prefix, "limit": limit, "resource-version": revision}
        page: Page = await self._in_span(
            parent, "list", attributes, self.inner.read_page, prefix, start=start, limit=limit, revision=revision
        )
        return page

    async def read_changes(self, prefix: str, after: int, until: int, max_changes: int, max_bytes: int) -> History:
        """
        See L{kubetwist.interfaces.IStorageHistory.read_changes}.

        @param prefix: The prefix of the keys.
        @param after: The revision after which changes are read.
        @param until: The last revision to read.
        @param max_changes: Approximate maximum number of changes.
        @param max_bytes: Approximate maximum size of their values, in bytes.
        """
        inner: Any = self.inner
        arguments = (prefix, after, until, max_changes, max_bytes)
        parent = current.get()
        if not isinstance(parent, Span):
            history: History = await inner.read_changes(*arguments)
            return history
        attributes: dict[str, Value] = {"key": prefix, "resource-version": after}
        history = await self._in_span(parent, "history", attributes, inner.read_changes, *arguments)
        return history

    def _in_span(self, parent: Span, operation: str, attributes: dict[str, Value], *call: Any, **named: Any) -> Any:
        """Call a method of the backend in a child of a span; return an awaitable of the result."""
        attributes["audit-id"] = parent.trace.audit_id
        attributes["db.system.name"] = self._system
        return run_in_span(parent.child(f"{self._system} {operation}", attributes), *call, **named)
