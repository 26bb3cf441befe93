"""The base class of controllers: event handlers that fill a work queue of keys, and a reconcile function."""

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
    Watches objects and reconciles the keys in its work queue.

    A controller overrides L{register_handlers} and L{sync}.

    @cvar name: Its name, as in kube-controller-manager.
    @cvar service_account: Its service account in kube-system; by default its name.
    @cvar field_manager: The field manager of its writes.
    @cvar workers: Maximum number of keys that are reconciled concurrently.
    @ivar queue: Keys to reconcile.
    @ivar client: Writes objects as its service account.
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

    # --- override these

    def register_handlers(self) -> None:
        """Register event handlers with L{watch}. Called once, by L{start}."""
        follow = getattr(self, "follow", None)
        if follow is not None:
            warn("Controller.follow was renamed to register_handlers", DeprecationWarning, stacklevel=2)
            follow()

    async def sync(self, key: Key) -> None:
        """
        Reconcile the object of a key.

        It must be idempotent, also after a call that was interrupted. If it raises, it is called again with
        exponential backoff.
        """
        raise NotImplementedError

    # --- call these from the overridden methods

    def watch(self, group: str, resource: str, handler: Handler | None = None) -> Informer:
        """
        Register a handler for the events of a resource. It is called for the existing objects first.

        @param handler: Adds keys to the queue. By default, the key of each changed object is added.
        @raise KeyError: There is no such resource.
        """
        informer = self.context.informer(group, resource)
        self._registrations.append(informer.add_event_handler(handler or self.enqueue))
        self._waiting.append(informer.synced)
        return informer

    def enqueue(self, event_type: str, record: Record, old: Record | None) -> None:
        """Add the key of an object to the queue."""
        self.queue.add(record.key)  # type: ignore[arg-type] # controllers with other keys override this

    async def yield_to_reactor(self) -> None:
        """See L{WorkQueue.yield_to_reactor}."""
        await self.queue.yield_to_reactor()

    async def pause(self) -> None:
        """Call L{yield_to_reactor}. Deprecated."""
        warn("Controller.pause was renamed to yield_to_reactor", DeprecationWarning, stacklevel=2)
        await self.queue.yield_to_reactor()

    # --- lifecycle

    def start(self) -> None:
        """Register the event handlers. The queue starts when all informers have synced."""
        self.register_handlers()
        unsynced = [informer for informer in self._waiting if not informer.called]
        self._waiting.clear()
        if not unsynced:
            self._handlers_ready()
            return
        missing = len(unsynced)

        def one(result: None) -> None:
            nonlocal missing
            missing -= 1
            if not missing:
                self._handlers_ready()

        for synced in unsynced:
            synced.addCallback(one)

    def _handlers_ready(self) -> None:
        self.context.when_handlers_synced(self._start_queue)

    def _start_queue(self) -> None:
        if not self.stopped:
            self.queue.start()

    async def stop(self) -> None:
        """Stop, and wait for the keys that are being processed."""
        self.stopped = True
        for registration in self._registrations:
            registration.stop()
        await self.queue.stop()

    # --- processing

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
        self.report_failure(key, error)
        self.queue.add_rate_limited(key)

    def report_failure(self, key: Key, error: Exception) -> None:
        """Log the first failure of a key; it is reconciled again later."""
        # Conflicts and deleted objects are expected: retry without a log line.
        quiet = isinstance(error, APIStatusError) and error.code in (404, 409)
        if not quiet and not self.queue.num_requeues(key) and not self.stopped:
            if isinstance(error, (APIStatusError, StorageError)):
                self._log.warn(
                    "reconcile failed: controller={name} key={key} error={error}", name=self.name, key=key, error=error
                )
            else:
                self._log.failure("reconcile failed: controller={name} key={key}", name=self.name, key=key)
