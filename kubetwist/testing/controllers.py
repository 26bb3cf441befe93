"""Unit tests of controllers: objects in, objects out, with a clock that tests move; no server is started."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from twisted.internet.task import Clock
from twisted.plugin import getPlugins

from ..api import times
from ..api.admission import CREATE, DELETE, UPDATE
from ..api.errors import APIStatusError
from ..api.jsontypes import JSONObject
from ..api.providers import interface_error
from ..api.requestscope import RequestScope
from ..api.resource import UserInfo
from ..controllers.machinery.context import ControllerContext
from ..controllers.machinery.controller import Controller
from ..interfaces import IController, IControllerFactory
from ._writes import find_target, perform
from .memory import MemoryServer, Objects, parse_object, run_calls

#: The user of the writes of tests.
ADMIN = UserInfo("kubernetes-admin", groups=("system:masters", "system:authenticated"))


class ControllerHarness:
    """
    One controller with the stores of a server in memory, and a clock that tests move.

    A context manager, which stops the controller.

    @ivar server: The objects.
    @ivar controller: The controller.
    @ivar failures: The keys that could not be reconciled, with the exceptions; conflicts and objects that do not exist
        any more are not counted, as the controller retries then.
    """

    def __init__(
        self,
        controller: Callable[[ControllerContext], IController] | IControllerFactory | str,
        objects: Objects = (),
        *,
        release: str = "1.36",
    ) -> None:
        """
        Start the controller.

        @param controller: The class, a factory, or the name of an installed controller.
        @param objects: The objects that exist at the start: YAML, a file, or dictionaries.
        @param release: The Kubernetes release.
        @raise ValueError: The controller cannot be used, or is not installed.
        """
        self.server = MemoryServer(objects, release=release)
        self.failures: list[tuple[Any, Exception]] = []
        clock = self.server.clock
        assert isinstance(clock, Clock), "the server has a clock that does not run"
        self.clock: Clock = clock
        self.server.start()
        self.context = ControllerContext(self.server.registry, clock, custom=self.server)
        made = _make(controller, self.context)
        problem = "there is nothing to do for it" if made is None else interface_error(made, IController)
        if made is None or problem:
            raise ValueError(f"the controller cannot be used: {problem}")
        self.controller: IController = made
        if isinstance(made, Controller):
            made.report_failure = self._report_failure  # type: ignore[method-assign] # instead of the log
        with times.temporary_clock(clock.seconds):
            made.start()

    def _report_failure(self, key: Any, error: Exception) -> None:
        if not (isinstance(error, APIStatusError) and error.code in (404, 409)):
            self.failures.append((key, error))

    def settle(self, seconds: float = 60.0) -> None:
        """
        Let the controller run: make all delayed calls until C{seconds} from now.

        @raise Exception: The first exception of C{sync}, except for conflicts and objects that do not exist. The server
            would log it and call C{sync} again.
        @raise NoResult: The controller never becomes idle.
        """
        end = self.clock.seconds() + seconds
        with times.temporary_clock(self.clock.seconds):
            run_calls(self.clock, end)
            self.clock.advance(end - self.clock.seconds())
        if self.failures:
            raise self.failures.pop(0)[1]

    # --- objects

    def create(self, obj: JSONObject | str) -> JSONObject:
        """
        Create an object as an administrator, with defaults and validation.

        @param obj: The object, or its YAML.
        @return: The stored object.
        @raise APIStatusError: It is invalid or exists.
        """
        return self._write(obj, CREATE)

    def update(self, obj: JSONObject | str) -> JSONObject:
        """Replace an object as an administrator; see L{create}."""
        return self._write(obj, UPDATE)

    def delete(self, resource: str, name: str, namespace: str = "") -> None:
        """
        Delete an object as an administrator.

        @param resource: The resource as C{"pods"} or C{"deployments.apps"}.
        @raise APIStatusError: It does not exist.
        """
        self.server.run(self._write_async(None, DELETE, resource=resource, name=name, namespace=namespace))

    def get(self, resource: str, name: str, namespace: str = "") -> JSONObject | None:
        """Return a copy of an object; see L{MemoryServer.get}."""
        return self.server.get(resource, name, namespace)

    def list(self, resource: str, namespace: str = "") -> list[JSONObject]:
        """Return copies of the objects of a resource; see L{MemoryServer.list}."""
        return self.server.list(resource, namespace)

    def _write(self, obj: JSONObject | str, operation: str) -> JSONObject:
        stored = self.server.run(self._write_async(parse_object(obj), operation))
        assert stored is not None, "a creation or update has a result"
        return stored

    async def _write_async(self, obj: JSONObject | None, operation: str, **where: str) -> JSONObject | None:
        target = find_target(self.server, obj, None, operation, **where)
        scope = RequestScope(target.namespace, ADMIN, version=target.version)
        return await perform(self.server, target, scope, target.default_options(dry_run=False))

    # --- lifecycle

    def stop(self) -> None:
        """Stop the controller, and wait for the keys that are being processed."""
        self.server.run(self._stop())
        self.server.stop()

    async def _stop(self) -> None:
        await self.controller.stop()
        await self.context.stop()

    def __enter__(self) -> ControllerHarness:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def _make(
    controller: Callable[[ControllerContext], IController] | IControllerFactory | str, context: ControllerContext
) -> IController | None:
    if isinstance(controller, str):
        found = [factory for factory in getPlugins(IControllerFactory) if factory.name == controller]
        if not found:
            raise ValueError(f"no controller {controller} is installed")
        controller = found[0]
    if IControllerFactory.providedBy(controller):
        return controller.make(context)
    assert callable(controller), "a class or a function makes the controller"
    return controller(context)
