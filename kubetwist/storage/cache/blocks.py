"""Blocks of consecutive records, with their joined encoded forms, from which lists are composed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from twisted.internet.interfaces import IDelayedCall

from ...api.record import Record
from .._expiry import Timer

#: Maximum bytes of the joined forms of all resources of a server.
MAX_FORM_BYTES: Final = 32 << 20
#: Seconds without a use after which a form is dropped; twice as many at most.
UNUSED_TIMEOUT: Final = 15.0


class _Form:
    """
    One form of a block.

    @ivar used: The number of the interval of L{UNUSED_TIMEOUT} in which it was last used.
    """

    __slots__ = ("block", "key", "size", "used", "value")

    def __init__(self, block: Block, key: object, value: Any, size: int, used: int) -> None:
        self.block = block
        self.key = key
        self.value = value
        self.size = size
        self.used = used


class FormBudget:
    """
    The bytes of the forms of several caches.

    @ivar used: The bytes of all forms.
    @ivar max_bytes: Their maximum.
    """

    __slots__ = ("max_bytes", "used")

    def __init__(self, max_bytes: int = MAX_FORM_BYTES) -> None:
        self.used = 0
        self.max_bytes = max_bytes


class FormCache:
    """
    The joined forms of the blocks of one resource, limited in bytes.

    A form is kept until a record of its block changes, or no list has used it for some time. If there is no room, a
    new form replaces those that are not in use, and is not kept otherwise: a list that is longer than the limit
    does not replace itself.
    """

    def __init__(self, clock: Timer, budget: FormBudget) -> None:
        self._clock = clock
        self._budget = budget
        self._forms: set[_Form] = set()
        self._interval = 0
        self._swept = -1
        self._timer: IDelayedCall | None = None
        self._stopped = False

    def __len__(self) -> int:
        return len(self._forms)

    def has_room(self, size: int) -> bool:
        """Return whether a form of C{size} bytes can be kept; forms that are not in use are dropped for it."""
        if self._stopped:
            return False
        budget = self._budget
        if budget.used + size > budget.max_bytes and self._swept != self._interval:
            self._swept = self._interval
            self._drop_unused(self._interval)
        return budget.used + size <= budget.max_bytes

    def add(self, block: Block, key: object, value: Any, size: int) -> _Form:
        """
        Keep a form.

        @param block: The block of the form.
        @param key: The key of the form in the block.
        @param value: The form.
        @param size: Its bytes.
        """
        form = _Form(block, key, value, size, self._interval)
        self._forms.add(form)
        self._budget.used += size
        if self._timer is None:
            self._timer = self._clock.callLater(UNUSED_TIMEOUT, self._expire)
        return form

    def touch(self, form: _Form) -> None:
        """Note that a form is used."""
        form.used = self._interval

    def remove(self, form: _Form) -> None:
        """Drop a form."""
        self._forms.discard(form)
        self._budget.used -= form.size

    def clear(self) -> None:
        """Drop all forms."""
        self._drop_unused(self._interval + 1)

    def _expire(self) -> None:
        self._timer = None
        self._drop_unused(self._interval)
        self._interval += 1
        if self._forms:
            self._timer = self._clock.callLater(UNUSED_TIMEOUT, self._expire)

    def _drop_unused(self, since: int) -> None:
        """Drop the forms that were not used since the beginning of the interval C{since}."""
        for form in [form for form in self._forms if form.used < since]:
            form.block.forget(form.key)

    def stop(self) -> None:
        """Drop all forms, and keep no more."""
        self._stopped = True
        self.clear()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()


class Block:
    """
    Consecutive records of a table, in key order; see L{RecordBlock<kubetwist.api.record.RecordBlock>}.

    @ivar records: The records; nothing changes the list.
    """

    __slots__ = ("_cache", "_forms", "records")

    def __init__(self, records: Sequence[Record], cache: FormCache) -> None:
        self.records = records
        self._cache = cache
        #: By key; L{None} for a form that was used once and is not kept.
        self._forms: dict[object, _Form | None] = {}

    def get(self, key: object) -> Any | None:
        """Return a form that is kept."""
        form = self._forms.get(key)
        if form is None:
            return None
        self._cache.touch(form)
        return form.value

    def admits(self, key: object, size: int) -> bool:
        """Return whether a form is worth keeping, as it is used again, and there is room for it."""
        if key not in self._forms:
            self._forms[key] = None
            return False
        return self._cache.has_room(size)

    def keep(self, key: object, value: Any, size: int) -> None:
        """Keep a form of C{size} bytes."""
        self._forms[key] = self._cache.add(self, key, value, size)

    def forget(self, key: object) -> None:
        """Drop a form."""
        form = self._forms.pop(key, None)
        if form is not None:
            self._cache.remove(form)

    def drop(self) -> None:
        """Drop all forms: a record has changed."""
        for key in list(self._forms):
            self.forget(key)
