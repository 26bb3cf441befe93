"""Test case for controllers with stores in memory and a fake clock."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission.plugins import build_chain
from kubetwist.api.resource import UserInfo
from kubetwist.api.times import use_clock
from kubetwist.controllers.machinery.client import Client
from kubetwist.controllers.machinery.context import ControllerContext
from kubetwist.registry.assembly import RegistryOptions, ResourceRegistry
from kubetwist.registry.rbac.ruleresolver import RuleResolver
from kubetwist.registry.stores import Stores
from kubetwist.schema.definitions import Definitions
from kubetwist.storage.errors import RevisionConflict, StorageUnavailable
from kubetwist.storage.memory import MemoryStorage
from tests.resources.server import Plugins, all_kinds, configured, definitions

#: Start time of the tests.
START = 1_800_000_000.0


def _never(number: int) -> bool:
    return False


class FaultyStorage:
    """
    A storage backend with injected failures of writes.

    @ivar fails: Called before each commit with its number. Returns whether it fails.
    @ivar conflicts: Whether a failure is a conflict.
    @ivar commits: Number of commits.
    @ivar failed: Number of failed commits.
    """

    def __init__(self, backend: MemoryStorage) -> None:
        self._backend = backend
        self.fails: Callable[[int], bool] = _never
        self.conflicts = False
        self.commits = self.failed = 0

    async def commit(self, writes: Any) -> int:
        """Commit, or fail."""
        self.commits += 1
        if self.fails(self.commits):
            self.failed += 1
            if self.conflicts:
                raise RevisionConflict(writes[0].key, self._backend.revision)
            raise StorageUnavailable("injected")
        revision: int = await self._backend.commit(writes)
        return revision

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


class ControllerTestCase(SynchronousTestCase):
    """
    Test case for controllers.

    @cvar resources: The names of the resources; L{None} for all built-in resources.
    @cvar admission: Whether the default admission plugins are enabled.
    @cvar options: Options of the registry.
    @ivar clock: The clock of the controllers.
    @ivar backend: The storage backend.
    """

    resources: tuple[str, ...] | None = None
    admission = False
    config: Any = None
    options: ClassVar[dict[str, Any]] = {}

    def setUp(self) -> None:
        """Create empty stores without controllers."""
        self.clock = Clock()
        self.clock.advance(START)
        use_clock(self.clock.seconds)
        self.addCleanup(use_clock)
        self.running: list[Any] = []
        self._open()
        self.addCleanup(self.end)

    def _open(self) -> None:
        self.memory = MemoryStorage(self.clock)
        self.backend = FaultyStorage(self.memory)
        self.successResultOf(Deferred.fromCoroutine(self.memory.open()))
        self.open_stores()
        self.successResultOf(Deferred.fromCoroutine(self.registry.start()))

    def reset_stores(self) -> None:
        """Replace the stores by empty ones without controllers."""
        self.end()
        self.running.clear()
        self._open()

    def open_stores(self) -> None:
        """Create the stores and the context."""
        wanted = self.resources
        grants = RuleResolver(Stores())
        self.registry = ResourceRegistry(
            self.backend,  # type: ignore[arg-type]
            self.clock,
            [info for info in all_kinds() if wanted is None or info.resource in wanted],
            definitions=self.definitions(),
            options=RegistryOptions(**self.options),
            grants=grants,
            authorizer=self.create_authorizer(grants),
            admission=(lambda context: build_chain((), (), context)) if self.admission else configured(),
        )
        self.stores = self.registry.stores
        self.context = ControllerContext(self.registry, self.clock, self.config)

    def create_authorizer(self, grants: RuleResolver) -> Any:
        """Return the authorizer of the stores and controllers; by default nothing is allowed."""
        return None

    def admit(self, plugin: Any) -> None:
        """Add an admission plugin for further writes."""
        assert isinstance(self.registry.admission, Plugins), "the default plugins are on"
        self.registry.admission.use(plugin)

    def definitions(self) -> Definitions:
        """Return the definitions of the release."""
        return definitions()

    # --- controllers

    def start(self, *controllers: Any) -> Any:
        """Start controllers of the classes, and return the last one."""
        created = None
        for controller in controllers:
            created = controller(self.context)
            created.start()
            self.running.append(created)
        self.settle()
        return created

    def settle(self, seconds: float = 0.0) -> None:
        """Advance the clock by some seconds, and run all delayed calls."""
        end = self.clock.seconds() + seconds
        for _ in range(100_000):
            calls = [call.getTime() for call in self.clock.getDelayedCalls()]
            following = min(calls, default=end + 1)
            if following > end:
                self.clock.advance(end - self.clock.seconds())
                return
            self.clock.advance(max(0.0, following - self.clock.seconds()))
        raise AssertionError("there is always something to do")

    def restart(self, *controllers: Any) -> Any:
        """Restart with the stored objects, without a graceful stop, and start controllers of the classes."""
        for controller in self.running:
            for subscription in controller._registrations:
                subscription.stop()
            controller.queue._stopped = True
        self.running.clear()
        for call in self.clock.getDelayedCalls():
            call.cancel()
        Deferred.fromCoroutine(self.context.stop())
        self.registry.stop()
        self.open_stores()
        self.successResultOf(Deferred.fromCoroutine(self.registry.start()))
        return self.start(*controllers)

    def end(self) -> None:
        """Stop all controllers, and check that no delayed calls remain."""
        for controller in self.running:
            self.successResultOf(Deferred.fromCoroutine(controller.stop()))
        self.successResultOf(Deferred.fromCoroutine(self.context.stop()))
        self.registry.stop()

    def check_kill_at_each_write(
        self, prepare: Callable[[], object], state: Callable[[], Any], *controllers: Any
    ) -> None:
        """
        Check that controllers complete their work after a kill at any write.

        @param prepare: Creates the objects that exist at the start.
        @param state: Returns the state to compare.
        """
        prepare()
        self.start(*controllers)
        self.settle(60)
        expected, writes, cut = state(), 0, True
        while cut:
            self.reset_stores()
            prepare()
            last = self.backend.commits + writes
            self.backend.fails = partial(operator.lt, last)
            self.start(*controllers)
            self.settle(1)
            cut = self.backend.commits > last
            self.backend.fails = _never
            self.restart(*controllers)
            self.settle(60)
            self.assertEqual(state(), expected, f"killed after {writes} writes")
            writes += 1

    # --- objects of users

    @property
    def user(self) -> Client:
        """The client of a user."""
        return Client(self.context, UserInfo("admin", groups=("system:masters", "system:authenticated")), "test")

    def make(self, resource: str, name: str, namespace: str = "", group: str = "", **parts: Any) -> Any:
        """Create an object with its status, and return the stored object."""
        status = parts.pop("status", None)
        meta = {"name": name, **parts.pop("metadata", {})}
        if namespace:
            meta["namespace"] = namespace
        self.successResultOf(Deferred.fromCoroutine(self.user.create(group, resource, {"metadata": meta, **parts})))
        if status is not None:
            self.change(resource, name, lambda obj: obj.update(status=status), namespace, group, subresource="status")
        return self.find(resource, name, namespace, group)

    def change(
        self,
        resource: str,
        name: str,
        change: Callable[[Any], object],
        namespace: str = "",
        group: str = "",
        subresource: str = "",
    ) -> Any:
        """Change an object as a user."""

        def changed(obj: Any) -> None:
            change(obj)

        self.successResultOf(
            Deferred.fromCoroutine(self.user.update(group, resource, namespace, name, changed, subresource=subresource))
        )
        return self.find(resource, name, namespace, group)

    def remove(self, resource: str, name: str, namespace: str = "", group: str = "", **options: Any) -> bool:
        """Delete an object, and return whether it was removed immediately."""
        return self.successResultOf(
            Deferred.fromCoroutine(self.user.delete(group, resource, namespace, name, **options))
        )

    def find(self, resource: str, name: str, namespace: str = "", group: str = "") -> Any:
        """Return a stored object, or L{None}."""
        return self.stores.get_copy(group, resource, namespace, name)

    def names(self, resource: str, namespace: str = "", group: str = "") -> list[str]:
        """Return the names of all objects."""
        return [
            record.name
            for record in self.stores.get(group, resource).cache.list(f"{namespace}/" if namespace else "").records
        ]
