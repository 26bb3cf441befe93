"""Stores over memory, without HTTP, for the tests of the generic store."""

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


class Meddler:
    """
    A backend through which somebody else writes first.

    @ivar before: Called, once each, before the commits that follow.
    """

    def __init__(self, backend: MemoryStorage) -> None:
        self._backend = backend
        self.before: list[Callable[[], object]] = []
        self.commits = 0

    def commit(self, writes: Any) -> Deferred[int]:
        """Let the other one go first."""
        self.commits += 1
        if self.before:
            self.before.pop(0)()
        return self._backend.commit(writes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


@implementer(IMutatingAdmission, IValidatingAdmission)
class Plugin:
    """An admission plugin that keeps what it sees, and may do something."""

    name = "Plugin"

    def __init__(self, act: Callable[[Any], object] = lambda attributes: None) -> None:
        self.act = act
        self.seen: list[Any] = []

    def handles(self, operation: str) -> bool:
        """All."""
        return True

    async def admit(self, attributes: Any) -> None:
        """Look, and act."""
        self.seen.append((attributes.operation, attributes.subresource))
        self.act(attributes)

    validate = admit


class StoreTestCase(SynchronousTestCase):
    """A test of stores."""

    options: ClassVar[dict[str, Any]] = {}
    resources: tuple[str, ...] = ("configmaps", "pods", "namespaces", "deployments", "jobs", "leases")

    def setUp(self) -> None:
        """Empty ones."""
        self.server = Server(*self.resources, **self.options)
        self.stores: Stores = self.server.stores
        self.warnings: list[str] = []
        self.scope = RequestScope("default", warn=self.warnings.append)

    def store(self, resource: str, group: str = "") -> Store:
        """One of them."""
        return self.stores.get(group, resource)

    def meddler(self, store: Store) -> Meddler:
        """Put somebody else between a store and its backend."""
        store.backend = meddler = Meddler(self.server.backend)  # type: ignore[assignment]
        return meddler

    def admit(self, plugin: Any) -> None:
        """Put an admission plugin in front of all writes."""
        self.server.admit(plugin)

    def made(self, store: Store, obj: dict[str, Any], scope: RequestScope | None = None, **options: Any) -> Any:
        """What comes of creating an object."""
        store.strategy.default(obj)
        return content(self.successResultOf(store.create(scope or self.scope, obj, CreateOptions(**options))))

    def put(
        self, store: Store, obj: dict[str, Any], *, rules: Any = None, patching: bool = False, **options: Any
    ) -> Any:
        """What comes of replacing an object."""
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
        """What comes of patching an object."""

        def apply(stored: Any) -> Any:
            change(stored)
            return stored

        result = store.update(self.scope, name, apply, UpdateOptions(**options), rules, patching=True)
        return content(self.successResultOf(result)[0])

    def delete(self, store: Store, name: str, **options: Any) -> tuple[Any, bool]:
        """What comes of deleting an object: its last state, and whether it is gone."""
        record, gone = self.successResultOf(store.delete(self.scope, name, DeleteOptions(**options)))
        return content(record), gone

    def stored(self, store: Store, name: str, namespace: str = "default") -> Any:
        """An object as it is stored; L{None} when it is not."""
        return store.get_copy(namespace, name)

    def refused(self, coroutine: Any) -> APIStatusError:
        """The error that a call fails with."""
        failure = self.failureResultOf(Deferred.fromCoroutine(coroutine), APIStatusError)
        error = failure.value
        assert isinstance(error, APIStatusError)
        return error

    def events(self, store: Store) -> list[tuple[str, str]]:
        """A list to which each change adds its kind and the object's name."""
        seen: list[tuple[str, str]] = []

        class Sink:
            def send(self, event_type: str, record: Any, event: Any) -> None:
                seen.append((event_type, record.name))

            def bookmark(self, revision: int, initial_events_end: bool) -> None:
                """Nothing to see."""

            def end(self, error: Any) -> None:
                """Nothing to see."""

        store.cache.watch("", sink=Sink())  # type: ignore[arg-type]
        return seen


def content(result: Any) -> Any:
    """What a store answers with, as an object."""
    return result if isinstance(result, dict) else orjson.loads(result.item)
