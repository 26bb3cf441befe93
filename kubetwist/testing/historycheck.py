"""
Check that a L{History} is possible on a linearizable store: a pure function.

A store has one clock. Every successful write gets the next revision, so revisions are the order in which writes took
effect. The check verifies that this order explains all answers and events:

 - a request after an answer sees at least the state of that answer (and writes get later revisions);
 - a write that requires a revision follows exactly that revision; a creation follows no object;
 - a failure or a "not found" answer is correct at a moment between the request and its answer;
 - a list shows every object as of its revision, so no acknowledged write is lost;
 - a watch shows every change after its start once, in order, up to its last revision.

Writes without an answer may have taken effect or not. The results of other operations show which; if none does, both
are allowed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from operator import attrgetter
from typing import Final

from attrs import Factory, define

from .history import NEVER, Action, History, Operation, Outcome, Seen, Watched

#: Later than every revision.
_ENDLESS: Final = 1 << 62

_NOT_DONE: Final = (Outcome.CONFLICT, Outcome.EXISTS, Outcome.MISSING, Outcome.REFUSED)

_earliest = attrgetter("earliest")


def violations(history: History, *, shared: bool = False) -> list[str]:
    """
    Return the answers and events that are impossible on a linearizable store; empty for a valid history.

    Each is a sentence that names the object and the revisions.

    @param shared: Whether several writes may share a revision, as in a transaction.
    """
    check = _Check(history)
    check.run(shared)
    return check.found


@define(eq=False)
class _Version:
    """
    A state of an object.

    @ivar earliest: The first revision that can have it.
    @ivar latest: The last revision at which it can have begun: C{earliest}, unless it is an acknowledged deletion that
        no operation observed.
    @ivar value: L{None} if the object does not exist.
    @ivar cause: The write that created this state, if known.
    """

    earliest: int
    latest: int
    value: str | None
    cause: Operation | None = None

    @property
    def there(self) -> bool:
        return self.value is not None

    def __str__(self) -> str:
        return f"revision {self.earliest}" if self.there else f"nothing (since {self.earliest})"


@define(eq=False)
class _Object:
    """
    The known states of one key.

    @ivar versions: In order; the first is the initial state.
    @ivar hidden: Writes without an answer that no operation observed.
    """

    key: str
    values: dict[int, str] = Factory(dict)
    deletions: set[int] = Factory(set)
    writes: list[Operation] = Factory(list)
    versions: list[_Version] = Factory(list)
    hidden: list[Operation] = Factory(list)
    initial: tuple[int, str] | None = None

    def between(self, first: int, last: int) -> Iterator[tuple[_Version, _Version | None]]:
        """Return the versions that can be the newest at a revision of the range, each with its successor."""
        versions = self.versions
        index = max(bisect_right(versions, first, key=_earliest) - 1, 0)
        while index and versions[index].latest > first:
            index -= 1
        while index < len(versions) and versions[index].earliest <= last:
            following = versions[index + 1] if index + 1 < len(versions) else None
            yield versions[index], following
            index += 1

    def before(self, revision: int) -> _Version | None:
        """Return the newest version before a revision; L{None} if there is none."""
        place = bisect_right(self.versions, revision - 1, key=_earliest)
        return self.versions[place - 1] if place else None

    def hides(self, until: float, version: _Version, following: _Version | None) -> bool:
        """Return whether an unobserved write can have changed a version before its successor."""
        cause = None if following is None else following.cause
        if cause is not None and version.there and cause.expected == version.earliest:
            return False
        return any(
            write.invoked < until
            and (write.action is Action.CREATE) is not version.there
            and write.expected in (None, 0, version.earliest)
            for write in self.hidden
        )

    def can_be(self, operation: Operation, first: int, last: int, wanted: Callable[[_Version], bool]) -> bool:
        """
        Return whether the object can have had the wanted state at a moment of the range, as far as C{operation} shows.
        """
        return any(
            wanted(version) or self.hides(operation.answered, version, following)
            for version, following in self.between(first, last)
        )


class _Check:
    def __init__(self, history: History) -> None:
        self._history = history
        self._objects: dict[str, _Object] = {}
        #: The greatest revision that was known before an operation began.
        self._floors: dict[Operation, int] = {}
        #: The least revision of a write that began after an operation was answered.
        self._ceilings: dict[Operation, int] = {}
        #: The revisions of writes; those of writes without an answer are inferred from other operations.
        self._revisions: dict[Operation, int] = {}
        self.found: list[str] = []

    def run(self, shared: bool) -> None:
        self._observe()
        for one in self._objects.values():
            self._own(one)
        self._bound()
        if not shared:
            self._check_clock()
        for one in self._objects.values():
            self._order(one)
            self._check_writes(one)
        for operation in self._history.operations:
            self._check_answer(operation)
        for watch in self._history.watches:
            self._check_watch(watch)

    def _complain(self, text: str) -> None:
        self.found.append(text)

    # --- states of objects

    def _at(self, key: str) -> _Object:
        one = self._objects.get(key)
        if one is None:
            one = self._objects[key] = _Object(key)
        return one

    def _observe(self) -> None:
        for key, (revision, value) in self._history.initial.items():
            self._at(key).initial = (revision, value)
            self._see(key, revision, value, "at the beginning")
        for operation in self._history.operations:
            if operation.writes:
                self._at(operation.key).writes.append(operation)
            if operation.outcome is not Outcome.DONE:
                continue
            if operation.action is Action.LIST:
                for key, (revision, value) in operation.items.items():
                    self._see(key, revision, value, str(operation))
            elif operation.action is Action.DELETE:
                if operation.revision:
                    self._at(operation.key).deletions.add(operation.revision)
            elif operation.revision:
                self._see(operation.key, operation.revision, operation.value, str(operation))
        for watch in self._history.watches:
            for event in watch.events:
                if event.kind == "DELETED":
                    self._at(event.key).deletions.add(event.revision)
                elif event.kind != "BOOKMARK":
                    self._see(event.key, event.revision, event.value, str(watch))

    def _see(self, key: str, revision: int, value: str, where: str) -> None:
        known = self._at(key).values.setdefault(revision, value)
        if known != value:
            self._complain(f"{key} has two contents at revision {revision}: {known!r}, and {value!r} ({where})")

    def _own(self, one: _Object) -> None:
        """Find the write that created each state."""
        writers = {write.value: write for write in one.writes if write.action is not Action.DELETE}
        for write in one.writes:
            if write.outcome is Outcome.DONE and write.revision:
                self._revisions[write] = write.revision
        for revision, value in one.values.items():
            if one.initial == (revision, value):
                continue
            writer = writers.get(value)
            if writer is None:
                self._complain(f"{one.key} at revision {revision} is {value!r}, which nobody wrote")
            elif writer.outcome in _NOT_DONE:
                self._complain(f"{one.key} at revision {revision} is what was refused: {writer}")
            elif self._revisions.setdefault(writer, revision) != revision:
                self._complain(f"done twice, at revisions {self._revisions[writer]} and {revision}: {writer}")
        for revision in sorted(one.deletions):
            if revision in one.values:
                self._complain(f"{one.key} is there and deleted at revision {revision}")
            self._own_deletion(one, revision)
        one.hidden = [
            write for write in one.writes if write.outcome is Outcome.UNKNOWN and write not in self._revisions
        ]

    def _own_deletion(self, one: _Object, revision: int) -> None:
        before = max((other for other in one.values if other < revision), default=0)
        deletions = [write for write in one.writes if write.action is Action.DELETE]
        if any(self._revisions.get(write) == revision for write in deletions):
            return
        for outcome in (Outcome.DONE, Outcome.UNKNOWN):
            for write in deletions:
                free = write.outcome is outcome and write not in self._revisions
                if free and write.expected in (None, before):
                    self._revisions[write] = revision
                    return
        self._complain(f"{one.key} was deleted at revision {revision} by nobody")

    # --- order in time

    def _bound(self) -> None:
        """Compute floors and ceilings."""
        operations = self._history.operations
        answered = sorted((one for one in operations if one.answered < NEVER), key=lambda one: one.answered)
        floor, index = max((revision for revision, _ in self._history.initial.values()), default=0), 0
        for operation in sorted(operations, key=lambda one: one.invoked):
            while index < len(answered) and answered[index].answered < operation.invoked:
                floor = max(floor, self._known_by(answered[index]))
                index += 1
            self._floors[operation] = floor
        writes = sorted(self._revisions, key=lambda one: one.invoked)
        begun = [write.invoked for write in writes]
        least = [_ENDLESS] * (len(writes) + 1)
        for place in range(len(writes) - 1, -1, -1):
            least[place] = min(least[place + 1], self._revisions[writes[place]])
        for operation in operations:
            self._ceilings[operation] = least[bisect_right(begun, operation.answered)]

    def _known_by(self, operation: Operation) -> int:
        """Return the revision that the answer shows the store has reached."""
        if operation.outcome is not Outcome.DONE:
            return 0
        return self._revisions.get(operation, operation.revision)

    def _order(self, one: _Object) -> None:
        versions = [_Version(revision, revision, value) for revision, value in one.values.items()]
        versions += [_Version(revision, revision, None) for revision in one.deletions - one.values.keys()]
        causes = {self._revisions[write]: write for write in one.writes if write in self._revisions}
        for version in versions:
            version.cause = causes.get(version.earliest)
        if one.initial is None:
            versions.append(_Version(0, 0, None))
        versions.sort(key=lambda version: version.earliest)
        for write in one.writes:
            if write.action is Action.DELETE and write.outcome is Outcome.DONE and write not in self._revisions:
                self._place_unseen(one, versions, write)
        one.versions = versions

    def _place_unseen(self, one: _Object, versions: list[_Version], write: Operation) -> None:
        """Place an acknowledged deletion whose revision is unknown."""
        expected = write.expected
        if expected is None:
            one.hidden.append(write)
            return
        place = next((index for index, version in enumerate(versions) if version.earliest == expected), None)
        if place is None or not versions[place].there:
            self._complain(f"what it expects was never there: {write}")
            return
        following = versions[place + 1] if place + 1 < len(versions) else None
        if following is not None and (following.cause is None or following.cause.action is not Action.CREATE):
            self._complain(f"done, although {following} follows {expected}: {write}")
            return
        earliest = max(expected, self._floors[write]) + 1
        latest = min(self._ceilings[write], following.earliest if following else _ENDLESS) - 1
        if latest < earliest:
            self._complain(f"done, but there is no revision between {earliest - 1} and {latest + 1}: {write}")
            latest = earliest
        versions.insert(place + 1, _Version(earliest, latest, None, write))

    # --- writes

    def _check_clock(self) -> None:
        """Check that each write has a unique revision."""
        takers: dict[int, Operation] = {}
        for write, revision in self._revisions.items():
            other = takers.setdefault(revision, write)
            if other is not write:
                self._complain(f"revision {revision} was given twice: {other}; {write}")

    def _check_writes(self, one: _Object) -> None:
        for index, version in enumerate(one.versions):
            write = version.cause
            if write is None or index == 0:
                continue
            before = one.versions[index - 1]
            floor = self._floors[write]
            if version.latest <= floor:
                self._complain(f"took revision {version.latest}, but {floor} was known before it began: {write}")
            if write.action is Action.CREATE:
                wanted = not before.there
            elif write.expected is None:
                wanted = before.there
            else:
                wanted = before.there and before.earliest == write.expected
            if not wanted and not self._excused(one, write, before):
                self._complain(f"done at {version.earliest}, although {before} was the newest: {write}")

    @staticmethod
    def _excused(one: _Object, write: Operation, before: _Version) -> bool:
        """Return whether an unobserved write can have come in between."""
        return write.expected is None and one.hides(write.answered, before, None)

    # --- answers

    def _check_answer(self, operation: Operation) -> None:
        if operation.outcome in (Outcome.UNKNOWN, Outcome.REFUSED):
            return
        if operation.outcome is Outcome.DONE:
            if operation.action is Action.LIST:
                self._check_list(operation)
            elif operation.action is Action.READ:
                self._check_read(operation)
            return
        one = self._at(operation.key)
        if not one.versions:
            one.versions.append(_Version(0, 0, None))
        expected = operation.expected

        def justifies(version: _Version) -> bool:
            if operation.outcome is Outcome.EXISTS:
                return version.there
            if operation.outcome is Outcome.MISSING:
                return not version.there
            return expected is None or not version.there or version.earliest != expected

        first, last = self._range(operation)
        if not one.can_be(operation, first, last, justifies):
            states = ", ".join(str(version) for version, _ in one.between(first, last))
            self._complain(f"not true at any time from {first} to {last} ({states}): {operation}")

    def _range(self, operation: Operation) -> tuple[int, int]:
        """Return the first and last revision that an answer can refer to."""
        first = operation.at_least
        if operation.consistent:
            first = max(first, self._floors[operation])
        return first, self._ceilings[operation] - 1

    def _check_read(self, operation: Operation) -> None:
        first, last = self._range(operation)
        one = self._at(operation.key)
        revision = operation.revision
        if revision > last:
            self._complain(f"shows what was written after it was answered: {operation}")
        elif not any(version.there and version.earliest == revision for version, _ in one.between(first, last)):
            self._complain(f"stale, {first} was known before it began: {operation}")

    def _check_list(self, operation: Operation) -> None:
        first, last = self._range(operation)
        revision = operation.revision
        if revision < first:
            self._complain(f"stale, {first} was known before it began: {operation}")
        if revision > last:
            self._complain(f"as of a revision that was given after it was answered: {operation}")
        for key, one in self._objects.items():
            if not key.startswith(operation.key) or not one.versions:
                continue
            shown = operation.items.get(key)

            def as_shown(version: _Version, shown: tuple[int, str] | None = shown) -> bool:
                return not version.there if shown is None else version.there and version.earliest == shown[0]

            possible = [version for version, _ in one.between(revision, revision)]
            if any(as_shown(version) for version in possible):
                continue
            if shown is None and one.can_be(operation, revision, revision, as_shown):
                continue
            lost = "is missing" if shown is None else f"is at {shown[0]}"
            states = " or ".join(map(str, possible))
            self._complain(f"{key} {lost} as of {revision}, where there was {states}: {operation}")

    # --- watches

    def _check_watch(self, watch: Watched) -> None:
        newest = passed = watch.start
        shown: set[tuple[int, str]] = set()
        for event in watch.events:
            if event.kind == "BOOKMARK":
                if event.revision < newest:
                    self._complain(f"{watch}: a bookmark of {event.revision} comes after {newest}")
                newest = passed = max(newest, event.revision)
                continue
            if (event.revision, event.key) in shown:
                self._complain(f"{watch}: {event} is shown twice")
            elif event.revision < newest or event.revision <= passed:
                self._complain(f"{watch}: {event} comes after {newest}")
            newest = max(newest, event.revision)
            shown.add((event.revision, event.key))
            self._check_event(watch, event)
        self._check_gaps(watch, _ENDLESS if watch.complete else newest, shown)

    def _check_event(self, watch: Watched, event: Seen) -> None:
        if not event.key.startswith(watch.prefix):
            self._complain(f"{watch}: {event} is not what it asked for")
        one = self._at(event.key)
        before = one.before(event.revision)
        if before is None or one.hides(NEVER, before, None):
            return
        if (event.kind == "ADDED") is before.there:
            self._complain(f"{watch}: {event}, where there was {before}")
        elif event.kind == "DELETED" and event.value not in ("", before.value):
            self._complain(f"{watch}: {event} shows {event.value!r}, where there was {before.value!r}")

    def _check_gaps(self, watch: Watched, end: int, shown: set[tuple[int, str]]) -> None:
        for key, one in self._objects.items():
            if not key.startswith(watch.prefix):
                continue
            versions = one.versions
            first = bisect_right(versions, watch.start, key=_earliest)
            for version in islice(versions, first, bisect_right(versions, end, key=_earliest)):
                if version.latest <= end and (version.earliest, key) not in shown:
                    self._complain(f"{watch}: it shows nothing of {key} at {version.earliest}: {version.cause}")
