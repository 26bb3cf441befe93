"""
The base of all servers of the chain: paths, hooks, health checks, and a delegate.

The first server of the chain also runs the hooks and checks of its delegates, delegates first.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from inspect import isawaitable
from typing import Any

from attrs import define, field

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger
from twisted.web.resource import IResource

from ..resources.mux import DelegatingMux
from ..resources.traced import TracedMux
from .endpoints.health import HealthCheck, Unhealthy
from .hooknames import ORDER, check_name

#: A hook of the server's lifecycle; it may be asynchronous.
Hook = Callable[[], object]
_Run = Coroutine["Deferred[Any]", Any, None]

HEALTHZ, LIVEZ, READYZ = "healthz", "livez", "readyz"
EVERYWHERE = (HEALTHZ, LIVEZ, READYZ)


@define(eq=False)
class StartHook:
    """
    A hook of the start and its progress.

    @ivar covers: Names of the reference's hooks whose work it also does.
    @ivar problem: Why its checks fail; L{None} once it is done.
    """

    name: str
    run: Hook
    covers: Sequence[str] = ()
    problem: str | None = "not finished"

    async def complete(self) -> None:
        """Run the hook, and record the result."""
        try:
            await _await_hook(self.run)
        except BaseException as error:
            self.problem = f"{type(error).__name__}: {error}"
            raise
        self.problem = None

    def check(self) -> None:
        """
        Check the hook for the health paths.

        @raise Unhealthy: The hook is not done.
        """
        if self.problem is not None:
            raise Unhealthy(self.problem)


@define(eq=False)
class _Registrations:
    """The state of one server, without its delegates."""

    pre_listen: list[StartHook] = field(factory=list)
    post_start: list[StartHook] = field(factory=list)
    ready: list[tuple[str, Hook]] = field(factory=list)
    pre_shutdown: list[tuple[str, Hook]] = field(factory=list)
    destroy_funcs: list[tuple[str, Hook]] = field(factory=list)
    checks: list[tuple[HealthCheck, tuple[str, ...]]] = field(factory=list)


class GenericServer:
    """
    One server of the chain.

    @ivar mux: The registered paths.
    @ivar delegate: The next server; L{None} for the last.
    """

    _log = Logger()

    def __init__(
        self,
        name: str,
        delegate: GenericServer | IResource,
        hook_order: Sequence[str] = ORDER,
        *,
        traced: bool = False,
    ) -> None:
        """
        @param name: The name in logs and traces.
        @param delegate: The next server, or the handler at the end of the chain.
        @param hook_order: The hooks that health paths always show, in order; those without a hook are not applicable.
        @param traced: Whether requests are traced.
        """
        self.name = name
        self._hook_order = hook_order
        self.delegate = delegate if isinstance(delegate, GenericServer) else None
        behind: IResource = delegate.mux if isinstance(delegate, GenericServer) else delegate
        self.mux: DelegatingMux = (TracedMux if traced else DelegatingMux)(name, behind)
        self._registrations = _Registrations()

    # Methods for building the server.

    def add_pre_listen_hook(self, name: str, start: Hook, covers: Sequence[str] = ()) -> None:
        """
        Register C{start}: called when the storage is open, awaited before the server listens; for watch caches.

        It has health checks like a post-start hook.

        @param covers: Names of the reference's hooks whose work C{start} also does.
        """
        self._registrations.pre_listen.append(self._new_hook(name, start, covers))

    def add_post_start_hook(self, name: str, run: Hook, covers: Sequence[str] = ()) -> None:
        """
        Register C{run}, which is called concurrently with all post-start hooks when the server listens.

        The server is ready when all are done. Each has a line C{poststarthook/<name>} in the health paths, and one for
        each name in C{covers}; if one fails, so does the start.

        @param covers: Names of the reference's hooks whose work C{run} also does.
        """
        self._registrations.post_start.append(self._new_hook(name, run, covers))

    def _new_hook(self, name: str, run: Hook, covers: Sequence[str]) -> StartHook:
        names = {each for hook in self.start_hooks() for each in (hook.name, *hook.covers)}
        for each in (name, *covers):
            if each in names:
                raise ValueError(f"there is a hook {each} already")
        return StartHook(name, run, covers)

    def add_ready_hook(self, name: str, run: Hook) -> None:
        """Register C{run}, which is called when the server is ready; it should not wait for slow work."""
        self._registrations.ready.append((name, run))

    def add_pre_shutdown_hook(self, name: str, run: Hook) -> None:
        """Register C{run}, which is called when the server begins to stop and still answers requests."""
        self._registrations.pre_shutdown.append((name, run))

    def register_destroy_func(self, name: str, stop: Hook) -> None:
        """Register C{stop}, which is called after the last request, before the storage is closed."""
        self._registrations.destroy_funcs.append((name, stop))

    def add_health_check(self, check: HealthCheck, paths: tuple[str, ...] = EVERYWHERE) -> None:
        """Add a check to some of the health paths."""
        self._registrations.checks.append((check, paths))

    # Methods for running the server; they include all delegates.

    def chain(self) -> Iterator[GenericServer]:
        """Return the delegates of this server and itself, the last delegate first."""
        if self.delegate is not None:
            yield from self.delegate.chain()
        yield self

    def health_checks(self, path: str) -> list[HealthCheck]:
        """Return the checks of one health path, without the hooks' checks."""
        return [check for server in self.chain() for check, paths in server._registrations.checks if path in paths]

    def start_hooks(self) -> list[StartHook]:
        """Return all pre-listen and post-start hooks."""
        registrations = [server._registrations for server in self.chain()]
        return [hook for one in registrations for hook in (*one.pre_listen, *one.post_start)]

    def hook_checks(self) -> list[HealthCheck]:
        """
        Return the checks of all hooks of the start: the reference's in its order, then those that only exist here.

        The reference's hooks without a counterpart here are not applicable.
        @param traced: Whether requests are traced.
        """
        checks = {name: hook.check for hook in self.start_hooks() for name in (hook.name, *hook.covers)}
        ordered = [HealthCheck(check_name(name), checks.pop(name, None)) for name in self._hook_order]
        return [*ordered, *(HealthCheck(check_name(name), check) for name, check in checks.items())]

    async def run_pre_listen_hooks(self) -> None:
        """Run the hooks one after the other, as later ones may depend on earlier ones."""
        for server in self.chain():
            for hook in server._registrations.pre_listen:
                await hook.complete()

    async def run_post_start_hooks(self) -> None:
        """Run the hooks concurrently."""
        await _gather([hook.complete() for server in self.chain() for hook in server._registrations.post_start])

    async def run_ready_hooks(self) -> None:
        """Run the hooks one after the other; a failure does not stop the server."""
        for server in self.chain():
            for name, run in server._registrations.ready:
                await self._run_logging_errors("starting", name, run)

    async def run_pre_shutdown_hooks(self) -> None:
        """Run the hooks concurrently; a failure does not prevent the stop."""
        hooks = [hook for server in self.chain() for hook in server._registrations.pre_shutdown]
        await _gather([self._run_logging_errors("pre-shutdown hook", *hook) for hook in hooks])

    async def run_destroy_funcs(self) -> None:
        """Run the functions one after the other, the last registered first."""
        for server in reversed(list(self.chain())):
            for name, stop in reversed(server._registrations.destroy_funcs):
                await self._run_logging_errors("stopping", name, stop)

    async def _run_logging_errors(self, action: str, name: str, run: Hook) -> None:
        try:
            await _await_hook(run)
        except Exception:
            self._log.failure("{action} {name} failed", action=action, name=name)


async def _await_hook(run: Hook) -> None:
    result = run()
    if isawaitable(result):
        await result


async def _gather(runs: list[_Run]) -> None:
    failed = gatherResults([Deferred.fromCoroutine(run) for run in runs], consumeErrors=True)
    try:
        await failed
    except Exception as error:
        # gatherResults wraps the first failure.
        raise getattr(getattr(error, "subFailure", None), "value", error) from None
