"""The stores of two servers over one storage, without HTTP."""

from __future__ import annotations

from typing import Any, ClassVar

import orjson

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.api.options import CreateOptions, DeleteOptions, UpdateOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.interfaces import ISharedStorage
from kubetwist.registry.assembly import RegistryOptions, ResourceRegistry
from kubetwist.registry.core.service.serverallocators import ServiceAllocators
from kubetwist.registry.stores import Stores
from kubetwist.schema.definitions import Definitions
from kubetwist.storage.memory import MemoryStorage
from tests.resources.server import all_kinds


@implementer(ISharedStorage)
class SharedMemory(MemoryStorage):
    """A storage in memory that several servers of one process share."""

    shared = True

    async def current_revision(self) -> int:
        """See L{ISharedStorage.current_revision}."""
        return self.revision

    async def claim_compaction(self, revision: int) -> bool:
        """See L{ISharedStorage.claim_compaction}."""
        return True


class SharedStoresTestCase(SynchronousTestCase):
    """Base class of tests with the stores of two servers, whose caches see writes immediately."""

    resources: tuple[str, ...] = ("services", "ipaddresses")
    options: ClassVar[dict[str, Any]] = {}
    types: Definitions | None = None

    def setUp(self) -> None:
        """Create two servers without objects."""
        self.clock = Clock()
        self.clock.advance(1_800_000_000)
        self.backend = SharedMemory(self.clock)
        self.done(self.backend.open())
        self.scope = RequestScope("default")
        self._allocators: dict[Stores, ServiceAllocators] = {}
        self.one, self.other = self.server(), self.server()

    def server(self) -> Stores:
        """Start another server."""
        registry = ResourceRegistry(
            self.backend,
            self.clock,
            [info for info in all_kinds() if info.resource in self.resources],
            definitions=self.types,
            options=RegistryOptions(**self.options),
        )
        self.done(registry.start())
        self.addCleanup(registry.stop)
        self._allocators[registry.stores] = registry.allocators
        return registry.stores

    def allocators(self, stores: Stores) -> ServiceAllocators:
        """Return the allocators of the services of a server."""
        return self._allocators[stores]

    def done(self, result: Any) -> Any:
        """Return the result of a coroutine or Deferred."""
        return self.successResultOf(result if isinstance(result, Deferred) else Deferred.fromCoroutine(result))

    def make(self, stores: Stores, resource: str, obj: dict[str, Any]) -> dict[str, Any]:
        """Create an object at one of the servers, and return it."""
        store = stores.get("", resource)
        store.strategy.default(obj)
        made: dict[str, Any] = orjson.loads(self.done(store.create(self.scope, obj, CreateOptions())).item)
        return made

    def change(self, stores: Stores, resource: str, obj: dict[str, Any]) -> dict[str, Any]:
        """Replace an object, and return the result."""
        store = stores.get("", resource)
        store.strategy.default(obj)
        wanted = orjson.dumps(obj)
        result = store.update(self.scope, obj["metadata"]["name"], lambda _: orjson.loads(wanted), UpdateOptions())
        changed: dict[str, Any] = orjson.loads(self.done(result)[0].item)
        return changed

    def delete(self, stores: Stores, resource: str, name: str) -> None:
        """Delete an object."""
        self.done(stores.get("", resource).delete(self.scope, name, DeleteOptions()))
