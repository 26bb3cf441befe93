"""What controllers have in common: they follow objects, and bring them, key by key, to where they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic
from warnings import warn

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.record import Record
from ...interfaces import IController
from ...storage.errors import StorageError
from .client import DEFAULT_FIELD_MANAGER
from .informer import (
    Handler,
    HandlerRegistration,
    Informer,
)
from .queue import (
    Key,
    WorkQueue,
)

if TYPE_CHECKING:
    from .context import ControllerContext


@implementer(IController)
class Controller(Generic[Key]):
    """
    Follows objects, and works off a queue of keys.

    A controller overrides L{register_handlers} and L{sync}.

    @cvar name: As kube-controller-manager spells it.
    @cvar service_account: Its service account, where that is not its name.
    @cvar field_manager: Who owns the fields that it writes.
    @cvar workers: How many keys are worked on at the same time.
    @ivar queue: What is to be done.
    @ivar client: Writes in its name.
    """

    name: ClassVar[str]
    service_account: ClassVar[str] = ""
    field_manager: ClassVar[str] = DEFAULT_FIELD_MANAGER
    workers: ClassVar[int] = 1
    _log = Logger()

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self.clock = context.clock
        self.client = context.client(self.service_account or self.name, self.field_manager)
        self.queue: WorkQueue[Key] = WorkQueue(context.clock, self._work, workers=self.workers)
        self._registrations: list[HandlerRegistration] = []
        self._waiting: list[Deferred[None]] = []
        self.stopped = False

    # --- to be overridden

    def register_handlers(self) -> None:
        """Register event handlers with L{watch}. Called once, by L{start}."""
        follow = getattr(self, "follow", None)
        if follow is not None:
            warn("Controller.follow was renamed to register_handlers", DeprecationWarning, stacklevel=2)
            follow()

    async def sync(self, key: Key) -> None:
        """
        Do what is to be done about a key, and nothing where nothing is.

        It must be safe to repeat, from wherever an earlier call was cut short. It is called again, later and later,
        if it raises something.
        """
        raise NotImplementedError

    # --- for those who override them

    def watch(self, group: str, resource: str, handler: Handler | None = None) -> Informer:
        """
        Have a handler told of the objects of a resource, those that are there first.

        @param handler: Puts keys in the queue; without one, the key of each object that changes.
        @raise KeyError: There is no such resource.
        """
        informer = self.context.informer(group, resource)
        self._registrations.append(informer.add_event_handler(handler or self.enqueue))
        self._waiting.append(informer.synced)
        return informer

    def enqueue(self, kind: str, record: Record, old: Record | None) -> None:
        """Have the key of an object worked on."""
        self.queue.add(record.key)  # type: ignore[arg-type]

    async def yield_to_reactor(self) -> None:
        """See L{WorkQueue.yield_to_reactor}."""
        await self.queue.yield_to_reactor()

    async def pause(self) -> None:
        """Call L{yield_to_reactor}. Deprecated."""
        warn("Controller.pause was renamed to yield_to_reactor", DeprecationWarning, stacklevel=2)
        await self.queue.yield_to_reactor()

    # --- life

    def start(self) -> None:
        """Begin to follow; the work begins when all objects are there."""
        self.register_handlers()
        left = [informer for informer in self._waiting if not informer.called]
        self._waiting.clear()
        if not left:
            self._begin()
            return
        missing = len(left)

        def one(result: None) -> None:
            nonlocal missing
            missing -= 1
            if not missing:
                self._begin()

        for synced in left:
            synced.addCallback(one)

    def _begin(self) -> None:
        self.context.when_handlers_synced(self._start_queue)

    def _start_queue(self) -> None:
        if not self.stopped:
            self.queue.start()

    async def stop(self) -> None:
        """Begin nothing more, and wait for what is under way."""
        self.stopped = True
        for registration in self._registrations:
            registration.stop()
        await self.queue.stop()

    # --- work

    async def _work(self, key: Key) -> None:
        try:
            await self.sync(key)
        except CancelledError:
            raise
        except Exception as error:
            self._failed(key, error)
        else:
            self.queue.forget(key)

    def _failed(self, key: Key, error: Exception) -> None:
        # Somebody else wrote first, or the object is gone: that is everyday life.
        quiet = isinstance(error, APIStatusError) and error.code in (404, 409)
        if not quiet and not self.queue.num_requeues(key) and not self.stopped:
            if isinstance(error, (APIStatusError, StorageError)):
                self._log.warn("{name}: {key}: {error}", name=self.name, key=key, error=error)
            else:
                self._log.failure("{name}: {key} could not be seen to", name=self.name, key=key)
        self.queue.add_rate_limited(key)
