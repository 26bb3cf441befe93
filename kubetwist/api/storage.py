"""The values that go through L{kubetwist.interfaces.IStorageBackend}."""

from __future__ import annotations

from typing import Final

from attrs import define, field, frozen

#: A revision that is not known, but is one.
SOME: Final = -1


@define(slots=True, frozen=False, eq=False)
class Write:
    """
    One key's part of a transaction.

    @ivar key: Where, with the leading slash: C{"/registry/pods/default/web-0"}.
    @ivar value: The bytes to put there; L{None} deletes.
    @ivar expected: The revision the key must have now; 0 demands that nothing is there; L{None} demands nothing.
    @ivar ttl: Seconds after which the key deletes itself; L{None} for never.
    @ivar attachment: Anything; handed to watchers in the same process with the event, so that they need
        not decode what the writer has decoded already. Watchers must do without (other processes have none).
    @ivar unique: Whether no other writer can write this exact value, because it contains something new and random.
    """

    key: str
    value: bytes | None
    expected: int | None
    ttl: float | None = None
    attachment: object = None
    unique: bool = False


@define(slots=True, eq=False)
class StorageEvent:
    """
    One committed change of one key.

    @ivar value: The current value; L{None} after a deletion.
    @ivar revision: Of the transaction.
    @ivar previous: The revision of the key before; 0 when it was not there, L{SOME} when it was, but the store does not
        know since when.
    """

    key: str
    value: bytes | None
    revision: int
    previous: int
    attachment: object = None


@frozen
class StoredValue:
    """
    The value of a key; C{revision} is that of its newest write.

    @ivar problem: Why the value cannot be read; C{value} means nothing then. Only pages have such values.
    """

    key: str
    value: bytes
    revision: int
    problem: str = ""


@frozen
class Page:
    """Values in key order, all read at C{revision}; C{more} is true if further values follow."""

    items: list[StoredValue] = field()
    revision: int
    more: bool


@frozen
class PastChange:
    """
    One change that is read from the past.

    @ivar value: The value after it; L{None} for a deletion.
    @ivar revision: The revision of the transaction.
    @ivar former: The value before it; L{None} if there was none.
    @ivar problem: Why a value cannot be read; the values are meaningless then.
    """

    key: str
    value: bytes | None
    revision: int
    former: bytes | None
    problem: str = ""


@frozen
class History:
    """Some changes in the order of their revisions; they are complete up to C{revision}."""

    changes: list[PastChange]
    revision: int
