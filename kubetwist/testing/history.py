"""
Record the operations of the clients of one store, their results, and the events of watches.

L{kubetwist.testing.historycheck.violations} checks the history afterwards. This module does no I/O. The check is
complete if every write has a unique value, and deletions name the revision that they expect.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import orjson
from attrs import Factory, asdict, define, field

from ..api.jsontypes import JSONValue
from ..api.renamed import renamed_names

#: Later than every other time.
NEVER: Final = float("inf")


class Action(Enum):
    """The kind of an operation."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    READ = "read"
    LIST = "list"


class Outcome(Enum):
    """The result of an operation, as far as the client knows."""

    #: Succeeded; C{revision} is the revision of the write, or of the object that was read.
    DONE = "done"
    #: Failed: the stored object has another revision than C{expected} (409 Conflict).
    CONFLICT = "conflict"
    #: Failed: the object exists (409 AlreadyExists).
    EXISTS = "exists"
    #: Failed: the object does not exist (404); for a read, nothing was found.
    MISSING = "missing"
    #: Failed for reasons that do not depend on the stored object (403, 429).
    REFUSED = "refused"
    #: Unknown: the write may take effect, also later: no answer, or one such as 500 or 504.
    UNKNOWN = "unknown"


@define(eq=False)
class Operation:
    """
    One request of one client.

    @ivar key: The key of the object; for a LIST, the prefix of the keys.
    @ivar value: The unique value of a write, or the result of a READ.
    @ivar expected: The revision that a write requires; L{None} for any.
    @ivar consistent: Whether a read must show all writes that ended before it began; false for C{resourceVersion=0}.
    @ivar at_least: The minimum revision of a read.
    @ivar invoked: Time immediately before the request was sent.
    @ivar answered: Time of the response; L{NEVER} without one.
    @ivar revision: The revision of a successful write, 0 if the response does not contain it; of the object of a READ;
        or of a LIST.
    @ivar items: The result of a LIST: key, revision and value of each object.
    """

    action: Action
    key: str
    invoked: float
    value: str = ""
    expected: int | None = None
    client: str = ""
    consistent: bool = True
    at_least: int = 0
    outcome: Outcome = Outcome.UNKNOWN
    answered: float = NEVER
    revision: int = 0
    items: dict[str, tuple[int, str]] = Factory(dict)
    _now: Callable[[], float] = field(default=time.monotonic, repr=False)

    def done(self, revision: int = 0) -> None:
        """Record a successful write."""
        self._answer(Outcome.DONE, revision)

    def found(self, revision: int, value: str) -> None:
        """Record the object of a READ."""
        self.value = value
        self._answer(Outcome.DONE, revision)

    def listed(self, revision: int, items: Mapping[str, tuple[int, str]]) -> None:
        """Record a LIST at C{revision} with C{items}: revision and value by key."""
        self.items = dict(items)
        self._answer(Outcome.DONE, revision)

    def failed(self, outcome: Outcome) -> None:
        """Record a failed write, or one with an unknown result."""
        self._answer(outcome, 0)

    def _answer(self, outcome: Outcome, revision: int) -> None:
        self.answered = self._now() if outcome is not Outcome.UNKNOWN else NEVER
        self.outcome = outcome
        self.revision = revision

    @property
    def writes(self) -> bool:
        """Return whether the operation is a write."""
        return self.action in (Action.CREATE, Action.UPDATE, Action.DELETE)

    def __str__(self) -> str:
        parts = [f"{self.client or 'a client'}: {self.action.value} {self.key}"]
        if self.expected is not None:
            parts.append(f"expecting {self.expected}")
        if self.value:
            parts.append(f"value {self.value}")
        parts.append(f"-> {self.outcome.value}")
        if self.revision:
            parts.append(f"at {self.revision}")
        return " ".join(parts)


@define(eq=False)
class WatchEvent:
    """
    One event of a watch.

    @ivar kind: C{"ADDED"}, C{"MODIFIED"}, C{"DELETED"} or C{"BOOKMARK"}, which has only a revision.
    @ivar value: The value after the change; for a deletion, the last value, or C{""} if it is unknown.
    """

    kind: str
    key: str
    revision: int
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key} at {self.revision}"


@define(eq=False)
class WatchHistory:
    """
    One watch request. A client that watches again has another one.

    @ivar prefix: The prefix of the watched keys; C{""} for all.
    @ivar start: The watch shows the changes after this revision.
    @ivar complete: Whether the watch was open until all writes were shown.
    @ivar ended: C{""} while open or when the connection broke, C{"expired"} after 410.
    """

    prefix: str
    start: int
    client: str = ""
    events: list[WatchEvent] = Factory(list)
    complete: bool = False
    ended: str = ""

    def event(self, kind: str, key: str, revision: int, value: str = "") -> None:
        """
        Record an event.

        @param kind: C{"ADDED"}, C{"MODIFIED"}, C{"DELETED"} or C{"BOOKMARK"}.
        @param key: The key of the object.
        @param revision: The revision of the change.
        @param value: The value after the change; for a deletion, the last value, or C{""} if it is unknown.
        """
        self.events.append(WatchEvent(kind, key, revision, value))

    def bookmark(self, revision: int) -> None:
        """Record a bookmark."""
        self.event("BOOKMARK", "", revision)

    def expired(self) -> None:
        """Record an end with 410, at the start or later."""
        self.ended = "expired"

    @property
    def last(self) -> int:
        """Return the revision for the next watch."""
        return self.events[-1].revision if self.events else self.start

    def __str__(self) -> str:
        return f"{self.client or 'a client'}: watch of {self.prefix or 'everything'} from {self.start}"


@define(eq=False)
class History:
    """
    All operations and watches. Thread-safe.

    @ivar initial: The objects before the first operation: revision and value by key.
    @ivar now: The clock of all clients, such as L{time.monotonic} for processes on one machine.
    """

    initial: dict[str, tuple[int, str]] = Factory(dict)
    now: Callable[[], float] = time.monotonic
    operations: list[Operation] = Factory(list)
    watches: list[WatchHistory] = Factory(list)

    def begin(
        self,
        action: Action,
        key: str,
        value: str = "",
        expected: int | None = None,
        client: str = "",
        *,
        consistent: bool = True,
        at_least: int = 0,
    ) -> Operation:
        """
        Record the start of a request; return the operation, whose result is unknown until it is recorded.

        @param action: The kind of the request.
        @param key: The key of the object; for a LIST, the prefix of the keys.
        @param value: The unique value of a write.
        @param expected: The revision that a write requires; L{None} for any.
        @param client: The name of the client.
        @param consistent: Whether a read must show all writes that ended before it began.
        @param at_least: The minimum revision of a read.
        """
        operation = Operation(
            action,
            key,
            self.now(),
            value,
            expected,
            client,
            consistent,
            at_least,
            now=self.now,
        )
        self.operations.append(operation)
        return operation

    def watch(self, prefix: str, start: int, client: str = "") -> WatchHistory:
        """Record the start of a watch; return the object that records its events."""
        watch_history = WatchHistory(prefix, start, client)
        self.watches.append(watch_history)
        return watch_history

    def dumped(self) -> bytes:
        """Return the history as lines of JSON, which can be joined with the histories of other processes."""
        lines: list[Any] = [{"initial": self.initial}] if self.initial else []
        lines += [asdict(one, filter=lambda attribute, value: attribute.name != "_now") for one in self.operations]
        lines += [asdict(one) for one in self.watches]
        return b"".join(orjson.dumps(line, default=_plain, option=orjson.OPT_APPEND_NEWLINE) for line in lines)

    @classmethod
    def loaded(cls, lines: Iterable[bytes]) -> History:
        """Parse the results of one or several calls of L{dumped}."""
        history = cls()
        for line in lines:
            entry = orjson.loads(line)
            if "initial" in entry:
                history.initial |= {key: (revision, value) for key, (revision, value) in entry["initial"].items()}
            elif "action" in entry:
                entry |= {"action": Action(entry["action"]), "outcome": Outcome(entry["outcome"])}
                entry["answered"] = NEVER if entry["answered"] is None else entry["answered"]
                entry["items"] = {key: (revision, value) for key, (revision, value) in entry["items"].items()}
                history.operations.append(Operation(**entry))
            else:
                entry["events"] = [WatchEvent(**event) for event in entry["events"]]
                history.watches.append(WatchHistory(**entry))
        return history


def _plain(value: object) -> JSONValue:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(value)


if not TYPE_CHECKING:
    __getattr__ = renamed_names(__name__, {"Seen": "WatchEvent", "Watched": "WatchHistory"})
