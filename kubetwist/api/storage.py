"""Values of L{kubetwist.interfaces.IStorageBackend}."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

from .renamed import renamed_names

#: An unknown revision of an existing key.
UNKNOWN_REVISION: Final = -1


@define(slots=True, frozen=False, eq=False)
class Write:
    """
    One key's part of a transaction.

    @ivar key: The key with the leading slash: C{"/registry/pods/default/web-0"}.
    @ivar value: The new value; L{None} deletes the key.
    @ivar expected: The revision that the key must have; 0 requires that it does not exist; L{None} requires nothing.
    @ivar ttl: Seconds until the key expires; L{None} for never.
    @ivar attachment: A value that observers in the same process receive with the event, so that they need not decode
        the value. Observers must not depend on it, since other processes have none.
    @ivar unique: Whether no other writer can write this exact value, because it contains a new random number.
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
    @ivar revision: The revision of the transaction.
    @ivar previous: The previous revision of the key; 0 if it did not exist, L{UNKNOWN_REVISION} if it existed at an
        unknown revision.
    """

    key: str
    value: bytes | None
    revision: int
    previous: int
    attachment: object = None


@frozen
class StoredValue:
    """
    The value of a key.

    @ivar revision: The revision of its newest write.
    @ivar problem: The reason why the value cannot be read; C{value} is meaningless then. Only pages have such values.
    """

    key: str
    value: bytes
    revision: int
    problem: str = ""


@frozen
class Page:
    """
    Values in key order, all read at C{revision}.

    @ivar more: Whether further values follow.
    """

    items: list[StoredValue] = field()
    revision: int
    more: bool


@frozen
class PastChange:
    """
    A past change of a key.

    @ivar value: The value after the change; L{None} for a deletion.
    @ivar revision: The revision of the transaction.
    @ivar former: The previous value; L{None} if there was none.
    @ivar problem: The reason why a value cannot be read; the values are meaningless then.
    """

    key: str
    value: bytes | None
    revision: int
    former: bytes | None
    problem: str = ""


@frozen
class History:
    """Changes in the order of their revisions, complete up to C{revision}."""

    changes: list[PastChange]
    revision: int


if not TYPE_CHECKING:
    __getattr__ = renamed_names(__name__, {"SOME": "UNKNOWN_REVISION"})
