"""The observers of an embedded store, by prefix, and the delivery of events to them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from twisted.logger import Logger
from zope.interface import implementer

from ..api.storage import StorageEvent
from ..interfaces import (
    IStorageObserver,
    IStorageWatch,
)
from .errors import InvalidArgument

#: Maximum number of directories whose observers are cached; there is one per resource and namespace.
PREFIX_CACHE_SIZE = 10_000


@implementer(IStorageWatch)
class Watch:
    """
    One observer of one prefix.

    @ivar active: Cleared by L{stop}.
    @ivar late: The events since the read of the past began; L{None} when no such read is under way.
    """

    __slots__ = ("_observers", "active", "late", "observer", "prefix")

    def __init__(self, prefix: str, observer: IStorageObserver, observers: Observers) -> None:
        self.prefix = prefix
        self.observer = observer
        self.active = True
        self._observers = observers
        self.late: list[StorageEvent] | None = None

    def stop(self) -> None:
        """See L{IStorageWatch.stop}."""
        if self.active:
            self.active = False
            self._observers.remove(self)

    def hold(self) -> None:
        """Hold new events until L{catch_up}."""
        self.late = []

    def catch_up(self, past: list[StorageEvent], revision: int) -> None:
        """Deliver C{past}, then the held events, then new events as they come."""
        held, self.late = self.late or [], None
        self.deliver([*past, *held])
        self.progressed(revision)

    def deliver(self, events: Sequence[StorageEvent]) -> None:
        """Deliver events to the observer; if it raises, its watch ends."""
        if self.late is not None:
            self.late.extend(events)
        elif self.active and events:
            try:
                self.observer.committed(events)
            except Exception as error:
                self._observers.failed(self, error)

    def progressed(self, revision: int) -> None:
        """Report to the observer that it has all events up to C{revision}."""
        if self.active and self.late is None:
            try:
                self.observer.progressed(revision)
            except Exception as error:
                self._observers.failed(self, error)


class Observers:
    """The watches of a store."""

    _log = Logger()

    def __init__(self) -> None:
        self._by_prefix: dict[str, tuple[Watch, ...]] = {}
        self._everyone: tuple[Watch, ...] = ()
        #: The watches by directory, as a cache: most writes are to directories written to before.
        self._by_directory: dict[str, tuple[Watch, ...]] = {}

    def add(self, prefix: str, observer: IStorageObserver) -> Watch:
        """
        Deliver the events below C{prefix} from now on.

        @raise InvalidArgument: C{prefix} does not end with a slash.
        """
        if not prefix.endswith("/"):
            raise InvalidArgument(f"a watched prefix ends with a slash: {prefix}")
        watch = Watch(prefix, observer, self)
        self._by_prefix[prefix] = (*self._by_prefix.get(prefix, ()), watch)
        self._everyone = (*self._everyone, watch)
        self._by_directory.clear()
        return watch

    def remove(self, watch: Watch) -> None:
        """Remove a watch."""
        rest = tuple(other for other in self._by_prefix[watch.prefix] if other is not watch)
        if rest:
            self._by_prefix[watch.prefix] = rest
        else:
            del self._by_prefix[watch.prefix]
        self._everyone = tuple(other for other in self._everyone if other is not watch)
        self._by_directory.clear()

    def failed(self, watch: Watch, error: Exception) -> None:
        """End the watch of an observer that raised."""
        self._log.failure("an observer of {prefix} failed", prefix=watch.prefix)
        watch.stop()
        try:
            watch.observer.ended(error)
        except Exception:
            self._log.failure("an observer of {prefix} failed at its end", prefix=watch.prefix)

    def end(self, reason: Exception, silently: Collection[Watch] = ()) -> None:
        """
        End all watches.

        @param silently: Those whose observers are notified in another way.
        """
        for watch in self._everyone:
            if watch.active:
                watch.stop()
                if watch not in silently:
                    try:
                        watch.observer.ended(reason)
                    except Exception:
                        self._log.failure("an observer of {prefix} failed at its end", prefix=watch.prefix)

    def deliver(self, events: Sequence[StorageEvent], revision: int) -> None:
        """
        Deliver committed events, in revision order, and their progress.

        @param revision: The newest revision.
        """
        batches: dict[Watch, list[StorageEvent]] = {}
        for event in events:
            key = event.key
            directory = key[: key.rfind("/") + 1]
            watches = self._by_directory.get(directory)
            if watches is None:
                watches = self._find(directory)
            for watch in watches:
                if watch in batches:
                    batches[watch].append(event)
                else:
                    batches[watch] = [event]
        for watch, batch in batches.items():
            watch.deliver(batch)
        # There is a watch for each resource, so this loop does without further calls.
        for watch in self._everyone:
            if watch.active and watch.late is None:
                try:
                    watch.observer.progressed(revision)
                except Exception as error:
                    self.failed(watch, error)

    def _find(self, directory: str) -> tuple[Watch, ...]:
        found: tuple[Watch, ...] = ()
        end = directory.find("/") + 1
        while end:
            found += self._by_prefix.get(directory[:end], ())
            end = directory.find("/", end) + 1
        if len(self._by_directory) >= PREFIX_CACHE_SIZE:
            self._by_directory.clear()
        self._by_directory[directory] = found
        return found
