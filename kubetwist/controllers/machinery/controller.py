"""What controllers have in common: they follow objects, and bring them, key by key, to where they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.record import Record
from ...interfaces import IController
from ...storage.errors import StorageError
from .client import MANAGER
from .informer import (
    Handler,
    Informer,
    Subscription,
)
from .queue import (
    Key,
    WorkQueue,
)

if TYPE_CHECKING:
    from .context import Context


@implementer(IController)
class Controller(Generic[Key]):
    """
    Follows objects, and works off a queue of keys.

    A controller overrides L{follow} and L{sync}.

    @cvar name: As kube-controller-manager spells it.
    @cvar account: Its service account, where that is not its name.
    @cvar manager: Who owns the fields that it writes.
    @cvar workers: How many keys are worked on at the same time.
    @ivar queue: What is to be done.
    @ivar client: Writes in its name.
    """

    name: ClassVar[str]
    account: ClassVar[str] = ""
    manager: ClassVar[str] = MANAGER
    workers: ClassVar[int] = 1
    _log = Logger()

    def __init__(self, context: Context) -> None:
        self.context = context
        self.clock = context.clock
        self.client = context.client(self.account or self.name, self.manager)
        self.queue: WorkQueue[Key] = WorkQueue(context.clock, self._work, workers=self.workers)
        self._subscriptions: list[Subscription] = []
        self._waiting: list[Deferred[None]] = []
        self.stopped = False

    # --- to be overridden

    def follow(self) -> None:
        """Say, by L{watch}, which objects matter; called once."""

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
        self._subscriptions.append(informer.subscribe(handler or self.enqueue))
        self._waiting.append(informer.synced)
        return informer

    def enqueue(self, kind: str, record: Record, old: Record | None) -> None:
        """Have the key of an object worked on."""
        self.queue.add(record.key)  # type: ignore[arg-type]

    async def pause(self) -> None:
        """See L{WorkQueue.pause}."""
        await self.queue.pause()

    # --- life

    def start(self) -> None:
        """Begin to follow; the work begins when all objects are there."""
        self.follow()
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
        self.context.when_caught_up(self._start_queue)

    def _start_queue(self) -> None:
        if not self.stopped:
            self.queue.start()

    async def stop(self) -> None:
        """Begin nothing more, and wait for what is under way."""
        self.stopped = True
        for subscription in self._subscriptions:
            subscription.stop()
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
        if not quiet and not self.queue.failures(key) and not self.stopped:
            if isinstance(error, (APIStatusError, StorageError)):
                self._log.warn("{name}: {key}: {error}", name=self.name, key=key, error=error)
            else:
                self._log.failure("{name}: {key} could not be seen to", name=self.name, key=key)
        self.queue.add_rate_limited(key)
