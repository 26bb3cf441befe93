"""Starts and stops the controllers of a server (kube-controller-manager: app.Run)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ...interfaces import IController, IControllerFactory
from .context import ControllerContext


class ControllerManager:
    """
    Starts controllers one after the other, and stops them together.

    @ivar controllers: The running controllers, by name.
    @ivar started: Fires when all controllers have started.
    """

    _log = Logger()

    #: The name of the Lease for leader election; empty because there is no election.
    lease_name: Final = ""

    def __init__(self, context: ControllerContext, factories: Sequence[IControllerFactory]) -> None:
        self.context = context
        self.controllers: dict[str, IController] = {}
        self.started: Deferred[None] = Deferred()
        self._remaining = list(reversed(factories))
        self._call: IDelayedCall | None = None
        self._stopped = False

    @property
    def running(self) -> ControllerManager:
        """The manager of the running controllers, which is this object."""
        return self

    def start(self) -> None:
        """Start the controllers. The reactor serves requests between the imports of two controllers."""
        self._call = self.context.clock.callLater(0, self._next)

    def _next(self) -> None:
        self._call = None
        if not self._remaining:
            self.started.callback(None)
            return
        factory = self._remaining.pop()
        try:
            controller = factory.make(self.context)
            if controller is not None:
                self.controllers[factory.name] = controller
                controller.start()
        except Exception:
            # A controller that cannot start must not prevent the start of the next ones.
            self._log.failure("cannot start controller: {name}", name=factory.name)
        self._call = self.context.clock.callLater(0, self._next)

    async def stop(self) -> None:
        """Stop all controllers, and wait for the keys that are being processed."""
        if self._stopped:
            return
        self._stopped = True
        if self._call is not None and self._call.active():
            self._call.cancel()
        stopping = [(name, Deferred.fromCoroutine(controller.stop())) for name, controller in self.controllers.items()]
        for name, stopped in stopping:
            try:
                await stopped
            except Exception:
                self._log.failure("cannot stop controller: {name}", name=name)
        await self.context.stop()
