"""Stores over a storage in memory, without HTTP, for tests of the generic store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import orjson

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import CreateOptions, DeleteOptions, UpdateOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from kubetwist.registry.generic.store import Store
from kubetwist.registry.stores import Stores
from kubetwist.storage.memory import MemoryStorage
from tests.resources.server import Server


class RacingBackend:
    """
    A backend that runs concurrent writes before commits.

    @ivar before: The functions to call before the next commits, one for each.
    """

    def __init__(self, backend: MemoryStorage) -> None:
        self._backend = backend
        self.before: list[Callable[[], object]] = []
        self.commits = 0

    def commit(self, writes: Any) -> Deferred[int]:
        """Run the next concurrent write, then commit."""
        self.commits += 1
        if self.before:
            self.before.pop(0)()
        return self._backend.commit(writes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


@implementer(IMutatingAdmission, IValidatingAdmission)
class Plugin:
    """An admission plugin that records requests, and may act on them."""

    name = "Plugin"

    def __init__(self, act: Callable[[Any], object] = lambda attributes: None) -> None:
        self.act = act
        self.seen: list[Any] = []

    def handles(self, operation: str) -> bool:
        """Handle all operations."""
        return True

    async def admit(self, attributes: Any) -> None:
        """Record the request, and act."""
        self.seen.append((attributes.operation, attributes.subresource))
        self.act(attributes)

    validate = admit


class StoreTestCase(SynchronousTestCase):
    """Base class of tests of stores."""

    options: ClassVar[dict[str, Any]] = {}
    resources: tuple[str, ...] = ("configmaps", "pods", "namespaces", "deployments", "jobs", "leases")

    def setUp(self) -> None:
        """Create a server without objects."""
        self.server = Server(*self.resources, **self.options)
        self.stores: Stores = self.server.stores
        self.warnings: list[str] = []
        self.scope = RequestScope("default", warn=self.warnings.append)

    def store(self, resource: str, group: str = "") -> Store:
        """Return the store of a resource."""
        return self.stores.get(group, resource)

    def racing_backend(self, store: Store) -> RacingBackend:
        """Insert a backend with concurrent writes between a store and its backend."""
        store.backend = racing_backend = RacingBackend(self.server.backend)  # type: ignore[assignment]
        return racing_backend

    def admit(self, plugin: Any) -> None:
        """Set the admission plugin of all writes."""
        self.server.admit(plugin)

    def made(self, store: Store, obj: dict[str, Any], scope: RequestScope | None = None, **options: Any) -> Any:
        """Create an object, and return it."""
        store.strategy.default(obj)
        return content(self.successResultOf(store.create(scope or self.scope, obj, CreateOptions(**options))))

    def put(
        self, store: Store, obj: dict[str, Any], *, rules: Any = None, patching: bool = False, **options: Any
    ) -> Any:
        """Replace an object, and return the result."""
        name = obj["metadata"]["name"]
        result = store.update(
            self.scope,
            name,
            lambda stored: orjson.loads(orjson.dumps(obj)),
            UpdateOptions(**options),
            rules,
            patching=patching,
        )
        return content(self.successResultOf(result)[0])

    def changed(
        self, store: Store, name: str, change: Callable[[Any], object], *, rules: Any = None, **options: Any
    ) -> Any:
        """Patch an object, and return the result."""

        def apply(stored: Any) -> Any:
            change(stored)
            return stored

        result = store.update(self.scope, name, apply, UpdateOptions(**options), rules, patching=True)
        return content(self.successResultOf(result)[0])

    def delete(self, store: Store, name: str, **options: Any) -> tuple[Any, bool]:
        """Delete an object; return its last state, and whether it is removed."""
        record, removed = self.successResultOf(store.delete(self.scope, name, DeleteOptions(**options)))
        return content(record), removed

    def stored(self, store: Store, name: str, namespace: str = "default") -> Any:
        """Return an object as it is stored; L{None} if it does not exist."""
        return store.get_copy(namespace, name)

    def refused(self, coroutine: Any) -> APIStatusError:
        """Return the error of a call."""
        failure = self.failureResultOf(Deferred.fromCoroutine(coroutine), APIStatusError)
        error = failure.value
        assert isinstance(error, APIStatusError)
        return error

    def events(self, store: Store) -> list[tuple[str, str]]:
        """Return a list that receives the type and the object's name of each watch event."""
        seen: list[tuple[str, str]] = []

        class Sink:
            def send(self, event_type: str, record: Any, event: Any) -> None:
                seen.append((event_type, record.name))

            def bookmark(self, revision: int, initial_events_end: bool) -> None:
                """Ignore a bookmark."""

            def end(self, error: Any) -> None:
                """Ignore the end of the watch."""

        store.cache.watch("", sink=Sink())  # type: ignore[arg-type]
        return seen


def content(result: Any) -> Any:
    """Return a result of a store as an object."""
    return result if isinstance(result, dict) else orjson.loads(result.item)
