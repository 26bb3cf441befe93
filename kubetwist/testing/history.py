"""
What clients of a store, or of several servers over one, did and were answered, and what watches showed.

It is kept while the clients run and judged afterwards, by L{kubetwist.testing.historycheck.violations}. Nothing here
does I/O. For the check to see all that it can see, every write has a content of its own, and deletions name the
revision that they expect.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final

import orjson
from attrs import Factory, asdict, define, field

from ..api.jsontypes import JSONValue

#: Later than everything.
NEVER: Final = float("inf")


class Action(Enum):
    """What a client asks for."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    READ = "read"
    LIST = "list"


class Outcome(Enum):
    """How it came out, as far as the client knows."""

    #: Done; C{revision} says at which revision, or what a read has found.
    DONE = "done"
    #: Not done: what is stored is at another revision than C{expected} (409 Conflict).
    CONFLICT = "conflict"
    #: Not done: something is there (409 AlreadyExists).
    EXISTS = "exists"
    #: Not done: nothing is there (404); of a read, that nothing was found.
    MISSING = "missing"
    #: Not done, for reasons that tell nothing of what is stored (403, 429).
    REFUSED = "refused"
    #: It may have been done or not, or be done yet: no answer, or one such as 500 or 504.
    UNKNOWN = "unknown"


@define(eq=False)
class Operation:
    """
    One request of one client.

    @ivar key: Of the object; the prefix of the keys for a LIST.
    @ivar value: What a write writes; nothing else may write the same. What a READ has found.
    @ivar expected: The revision that a write demands; L{None} for any.
    @ivar consistent: Whether a read must show all that was done before it began; it need not with C{resourceVersion=0}.
    @ivar at_least: A revision that a read must not be older than.
    @ivar invoked: When the request was about to be sent.
    @ivar answered: When the answer was there; L{NEVER} without one.
    @ivar revision: Of a write that was done, 0 where the answer does not tell; of the object that a READ has found;
        as of which a LIST is.
    @ivar items: What a LIST has found: key, revision and value of each.
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
        """A write was done."""
        self._answer(Outcome.DONE, revision)

    def found(self, revision: int, value: str) -> None:
        """A READ has found an object."""
        self.value = value
        self._answer(Outcome.DONE, revision)

    def listed(self, revision: int, items: Mapping[str, tuple[int, str]]) -> None:
        """A LIST as of C{revision} has found C{items}: revision and value by key."""
        self.items = dict(items)
        self._answer(Outcome.DONE, revision)

    def failed(self, outcome: Outcome) -> None:
        """It was not done, or may not have been."""
        self._answer(outcome, 0)

    def _answer(self, outcome: Outcome, revision: int) -> None:
        self.answered = self._now() if outcome is not Outcome.UNKNOWN else NEVER
        self.outcome = outcome
        self.revision = revision

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
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
class Seen:
    """
    One event of a watch.

    @ivar kind: C{"ADDED"}, C{"MODIFIED"}, C{"DELETED"} or C{"BOOKMARK"}, which has only a revision.
    @ivar value: After the change; of a deletion, the last one, or C{""} where that is not told.
    """

    kind: str
    key: str
    revision: int
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key} at {self.revision}"


@define(eq=False)
class Watched:
    """
    One watch, from its request to its end. A client that watches again after its end has another one.

    @ivar prefix: Of the keys that it shows; C{""} for all.
    @ivar start: It shows what came after this revision.
    @ivar complete: Whether it was open until everything that was ever written had been shown.
    @ivar ended: C{""} while open or when the connection broke, C{"expired"} after 410.
    """

    prefix: str
    start: int
    client: str = ""
    events: list[Seen] = Factory(list)
    complete: bool = False
    ended: str = ""

    def event(self, kind: str, key: str, revision: int, value: str = "") -> None:
        """An event has come."""
        self.events.append(Seen(kind, key, revision, value))

    def bookmark(self, revision: int) -> None:
        """A bookmark has come."""
        self.event("BOOKMARK", "", revision)

    def expired(self) -> None:
        """The watch ended with 410, at once or later."""
        self.ended = "expired"

    @property
    def last(self) -> int:
        """The revision to watch again from."""
        return self.events[-1].revision if self.events else self.start

    def __str__(self) -> str:
        return f"{self.client or 'a client'}: watch of {self.prefix or 'everything'} from {self.start}"


@define(eq=False)
class History:
    """
    All of it. Threads may add to it at the same time.

    @ivar initial: What was there before the first operation: revision and value by key.
    @ivar now: The clock of all clients; where these are processes on one machine, L{time.monotonic} is one.
    """

    initial: dict[str, tuple[int, str]] = Factory(dict)
    now: Callable[[], float] = time.monotonic
    operations: list[Operation] = Factory(list)
    watches: list[Watched] = Factory(list)

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
        """A request is about to be sent; its answer is told to what is returned. Without one its outcome is unknown."""
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

    def watch(self, prefix: str, start: int, client: str = "") -> Watched:
        """A watch begins; its events are told to what is returned."""
        watched = Watched(prefix, start, client)
        self.watches.append(watched)
        return watched

    def dumped(self) -> bytes:
        """All of it as lines of JSON, to be looked at, or joined with those of other processes."""
        lines: list[Any] = [{"initial": self.initial}] if self.initial else []
        lines += [asdict(one, filter=lambda attribute, value: attribute.name != "_now") for one in self.operations]
        lines += [asdict(one) for one in self.watches]
        return b"".join(orjson.dumps(line, default=_plain, option=orjson.OPT_APPEND_NEWLINE) for line in lines)

    @classmethod
    def loaded(cls, lines: Iterable[bytes]) -> History:
        """What L{dumped} gave, of one or several."""
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
                entry["events"] = [Seen(**event) for event in entry["events"]]
                history.watches.append(Watched(**entry))
        return history


def _plain(value: object) -> JSONValue:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(value)
