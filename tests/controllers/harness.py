"""Controllers over stores in memory, with a clock instead of a reactor."""

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

#: When tests begin.
START = 1_800_000_000.0


def _never(number: int) -> bool:
    return False


class FaultyStorage:
    """
    A backend whose writes fail sometimes.

    @ivar fails: Asked before each commit, with its number, whether it fails.
    @ivar conflicts: Whether one that fails does so because somebody else has just written the same.
    @ivar commits: How many there were.
    @ivar failed: How many of them failed.
    """

    def __init__(self, backend: MemoryStorage) -> None:
        self._backend = backend
        self.fails: Callable[[int], bool] = _never
        self.conflicts = False
        self.commits = self.failed = 0

    async def commit(self, writes: Any) -> int:
        """Commit, or not."""
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
    A test of controllers.

    @cvar resources: The names of what there is; L{None} for everything that is built in.
    @cvar admission: Whether the default admission plugins are on.
    @cvar options: For L{RegistryOptions}.
    @ivar clock: The time, for controllers.
    @ivar backend: Where objects are.
    """

    resources: tuple[str, ...] | None = None
    admission = False
    config: Any = None
    options: ClassVar[dict[str, Any]] = {}

    def setUp(self) -> None:
        """Empty stores, and no controller."""
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

    def begin_anew(self) -> None:
        """Have empty stores, and no controller, again."""
        self.end()
        self.running.clear()
        self._open()

    def open_stores(self) -> None:
        """Make the stores, and the context."""
        wanted = self.resources
        grants = RuleResolver(Stores())
        self.registry = ResourceRegistry(
            self.backend,  # type: ignore[arg-type]
            self.clock,
            [info for info in all_kinds() if wanted is None or info.resource in wanted],
            definitions=self.definitions(),
            options=RegistryOptions(**self.options),
            grants=grants,
            authorizer=self.authorizer_over(grants),
            admission=(lambda context: build_chain((), (), context)) if self.admission else configured(),
        )
        self.stores = self.registry.stores
        self.context = ControllerContext(self.registry, self.clock, self.config)

    def authorizer_over(self, grants: RuleResolver) -> Any:
        """What decides for the stores and for controllers; nothing is allowed without it."""
        return None

    def admit(self, plugin: Any) -> None:
        """Pass the writes from now on through an admission plugin."""
        assert isinstance(self.registry.admission, Plugins), "the default plugins are on"
        self.registry.admission.use(plugin)

    def definitions(self) -> Definitions:
        """The types of the release."""
        return definitions()

    # --- controllers

    def start(self, *controllers: Any) -> Any:
        """Start controllers, given as classes; give the last."""
        made = None
        for controller in controllers:
            made = controller(self.context)
            made.start()
            self.running.append(made)
        self.settle()
        return made

    def settle(self, seconds: float = 0.0) -> None:
        """Let everything be done that can be done now, or within some seconds."""
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
        """Have everything go without a goodbye, as by a kill, and begin anew with what is stored."""
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
        """Stop all controllers: nothing is left to be done."""
        for controller in self.running:
            self.successResultOf(Deferred.fromCoroutine(controller.stop()))
        self.successResultOf(Deferred.fromCoroutine(self.context.stop()))
        self.registry.stop()

    def killed_at_each_write(self, prepare: Callable[[], object], state: Callable[[], Any], *controllers: Any) -> None:
        """
        Check that controllers finish their work, wherever in it the process is killed.

        @param prepare: Makes the objects that they find when they start.
        @param state: What is to come of it.
        """
        prepare()
        self.start(*controllers)
        self.settle(60)
        expected, writes, cut = state(), 0, True
        while cut:
            self.begin_anew()
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

    # --- objects, as users see them

    @property
    def user(self) -> Client:
        """What somebody else writes with."""
        return Client(self.context, UserInfo("admin", groups=("system:masters", "system:authenticated")), "test")

    def make(self, resource: str, name: str, namespace: str = "", group: str = "", **parts: Any) -> Any:
        """Create an object, with its status; give it as it is stored."""
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
        """Change an object as a user does."""

        def changed(obj: Any) -> None:
            change(obj)

        self.successResultOf(
            Deferred.fromCoroutine(self.user.update(group, resource, namespace, name, changed, subresource=subresource))
        )
        return self.find(resource, name, namespace, group)

    def remove(self, resource: str, name: str, namespace: str = "", group: str = "", **options: Any) -> bool:
        """Delete an object; tell whether it is gone."""
        return self.successResultOf(
            Deferred.fromCoroutine(self.user.delete(group, resource, namespace, name, **options))
        )

    def find(self, resource: str, name: str, namespace: str = "", group: str = "") -> Any:
        """An object as it is stored; L{None} where there is none."""
        return self.stores.get_copy(group, resource, namespace, name)

    def names(self, resource: str, namespace: str = "", group: str = "") -> list[str]:
        """The names of all objects."""
        return [
            record.name
            for record in self.stores.get(group, resource).cache.list(f"{namespace}/" if namespace else "").records
        ]
