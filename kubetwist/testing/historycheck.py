"""
Check that a L{History} is possible on a linearizable store: a pure function.

A store has one clock. Every successful write gets the next revision, so revisions are the order in which writes took
effect. The check verifies that this order explains all answers and events:

 - a request after a response sees at least the state of that response (and writes get later revisions);
 - a write that requires a revision follows exactly this revision; a creation requires that there is no object;
 - a failure or a "not found" response is correct at a moment between the request and the response;
 - a list shows every object as of its revision, so no acknowledged write is lost;
 - a watch shows every change after its start once, in order, up to its last revision.

Writes without a response may have taken effect or not. The results of other operations show which; if none does, both
are allowed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from operator import attrgetter
from typing import Final

from attrs import Factory, define

from .history import NEVER, Action, History, Operation, Outcome, WatchEvent, WatchHistory

#: Later than every revision.
_INFINITE: Final = 1 << 62

_FAILED: Final = (Outcome.CONFLICT, Outcome.EXISTS, Outcome.MISSING, Outcome.REFUSED)

_earliest = attrgetter("earliest")


def violations(history: History, *, shared: bool = False) -> list[str]:
    """
    Return the answers and events that are impossible on a linearizable store; empty for a valid history.

    Each is a sentence that names the object and the revisions.

    @param shared: Whether several writes may share a revision, as in a transaction.
    """
    check = _Check(history)
    check.run(shared)
    return check.violations


@define(eq=False)
class _Version:
    """
    A state of an object.

    @ivar earliest: The first revision that can have it.
    @ivar latest: The last revision at which it can have begun: equals C{earliest}, except for an acknowledged deletion
        that no operation observed.
    @ivar value: L{None} if the object does not exist.
    @ivar cause: The write that created this state, if known.
    """

    earliest: int
    latest: int
    value: str | None
    cause: Operation | None = None

    @property
    def exists(self) -> bool:
        return self.value is not None

    def __str__(self) -> str:
        return f"revision {self.earliest}" if self.exists else f"nothing (since {self.earliest})"


@define(eq=False)
class _Object:
    """
    The known states of one key.

    @ivar versions: In order; the first is the initial state.
    @ivar unobserved_writes: Writes without a response that no operation observed.
    """

    key: str
    values: dict[int, str] = Factory(dict)
    deletions: set[int] = Factory(set)
    writes: list[Operation] = Factory(list)
    versions: list[_Version] = Factory(list)
    unobserved_writes: list[Operation] = Factory(list)
    initial: tuple[int, str] | None = None

    def between(self, first: int, last: int) -> Iterator[tuple[_Version, _Version | None]]:
        """Return the versions that can be the newest at a revision of the range, each with its successor."""
        versions = self.versions
        index = max(bisect_right(versions, first, key=_earliest) - 1, 0)
        while index and versions[index].latest > first:
            index -= 1
        while index < len(versions) and versions[index].earliest <= last:
            successor = versions[index + 1] if index + 1 < len(versions) else None
            yield versions[index], successor
            index += 1

    def before(self, revision: int) -> _Version | None:
        """Return the newest version before a revision; L{None} if there is none."""
        index = bisect_right(self.versions, revision - 1, key=_earliest)
        return self.versions[index - 1] if index else None

    def may_have_been_overwritten(self, until: float, version: _Version, successor: _Version | None) -> bool:
        """Return whether an unobserved write can have changed a version before its successor."""
        cause = None if successor is None else successor.cause
        if cause is not None and version.exists and cause.expected == version.earliest:
            return False
        return any(
            write.invoked < until
            and (write.action is Action.CREATE) is not version.exists
            and write.expected in (None, 0, version.earliest)
            for write in self.unobserved_writes
        )

    def can_be(self, operation: Operation, first: int, last: int, has_state: Callable[[_Version], bool]) -> bool:
        """
        Return whether the object can have had the wanted state at a moment of the range, as far as C{operation} shows.
        """
        return any(
            has_state(version) or self.may_have_been_overwritten(operation.answered, version, successor)
            for version, successor in self.between(first, last)
        )


class _Check:
    def __init__(self, history: History) -> None:
        self._history = history
        self._objects: dict[str, _Object] = {}
        #: The greatest revision that was known before an operation began.
        self._floors: dict[Operation, int] = {}
        #: The lowest revision of a write that began after an operation was answered.
        self._ceilings: dict[Operation, int] = {}
        #: The revisions of writes; the revision of a write without a response is inferred from other operations.
        self._revisions: dict[Operation, int] = {}
        self.violations: list[str] = []

    def run(self, shared: bool) -> None:
        self._observe()
        for one in self._objects.values():
            self._match_writes(one)
        self._compute_revision_bounds()
        if not shared:
            self._check_unique_revisions()
        for one in self._objects.values():
            self._order(one)
            self._check_writes(one)
        for operation in self._history.operations:
            self._check_answer(operation)
        for watch in self._history.watches:
            self._check_watch(watch)

    def _report(self, text: str) -> None:
        self.violations.append(text)

    # --- states of objects

    def _object(self, key: str) -> _Object:
        one = self._objects.get(key)
        if one is None:
            one = self._objects[key] = _Object(key)
        return one

    def _observe(self) -> None:
        for key, (revision, value) in self._history.initial.items():
            self._object(key).initial = (revision, value)
            self._record_value(key, revision, value, "at the beginning")
        for operation in self._history.operations:
            if operation.writes:
                self._object(operation.key).writes.append(operation)
            if operation.outcome is not Outcome.DONE:
                continue
            if operation.action is Action.LIST:
                for key, (revision, value) in operation.items.items():
                    self._record_value(key, revision, value, str(operation))
            elif operation.action is Action.DELETE:
                if operation.revision:
                    self._object(operation.key).deletions.add(operation.revision)
            elif operation.revision:
                self._record_value(operation.key, operation.revision, operation.value, str(operation))
        for watch in self._history.watches:
            for event in watch.events:
                if event.kind == "DELETED":
                    self._object(event.key).deletions.add(event.revision)
                elif event.kind != "BOOKMARK":
                    self._record_value(event.key, event.revision, event.value, str(watch))

    def _record_value(self, key: str, revision: int, value: str, source: str) -> None:
        recorded = self._object(key).values.setdefault(revision, value)
        if recorded != value:
            self._report(f"{key} has two contents at revision {revision}: {recorded!r}, and {value!r} ({source})")

    def _match_writes(self, one: _Object) -> None:
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
                self._report(f"{one.key} at revision {revision} is {value!r}, which no request wrote")
            elif writer.outcome in _FAILED:
                self._report(f"{one.key} at revision {revision} has the value of a rejected write: {writer}")
            elif self._revisions.setdefault(writer, revision) != revision:
                self._report(f"done twice, at revisions {self._revisions[writer]} and {revision}: {writer}")
        for revision in sorted(one.deletions):
            if revision in one.values:
                self._report(f"{one.key} exists and is deleted at revision {revision}")
            self._match_deletion(one, revision)
        one.unobserved_writes = [
            write for write in one.writes if write.outcome is Outcome.UNKNOWN and write not in self._revisions
        ]

    def _match_deletion(self, one: _Object, revision: int) -> None:
        previous = max((other for other in one.values if other < revision), default=0)
        deletions = [write for write in one.writes if write.action is Action.DELETE]
        if any(self._revisions.get(write) == revision for write in deletions):
            return
        for outcome in (Outcome.DONE, Outcome.UNKNOWN):
            for write in deletions:
                unmatched = write.outcome is outcome and write not in self._revisions
                if unmatched and write.expected in (None, previous):
                    self._revisions[write] = revision
                    return
        self._report(f"{one.key} was deleted at revision {revision} by no request")

    # --- order in time

    def _compute_revision_bounds(self) -> None:
        """Compute floors and ceilings."""
        operations = self._history.operations
        answered = sorted((one for one in operations if one.answered < NEVER), key=lambda one: one.answered)
        floor, index = max((revision for revision, _ in self._history.initial.values()), default=0), 0
        for operation in sorted(operations, key=lambda one: one.invoked):
            while index < len(answered) and answered[index].answered < operation.invoked:
                floor = max(floor, self._shown_revision(answered[index]))
                index += 1
            self._floors[operation] = floor
        writes = sorted(self._revisions, key=lambda one: one.invoked)
        invocations = [write.invoked for write in writes]
        minimum_revisions = [_INFINITE] * (len(writes) + 1)
        for index_ in range(len(writes) - 1, -1, -1):
            minimum_revisions[index_] = min(minimum_revisions[index_ + 1], self._revisions[writes[index_]])
        for operation in operations:
            self._ceilings[operation] = minimum_revisions[bisect_right(invocations, operation.answered)]

    def _shown_revision(self, operation: Operation) -> int:
        """Return the revision that the response shows the store has reached."""
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
                self._insert_deletion(one, versions, write)
        one.versions = versions

    def _insert_deletion(self, one: _Object, versions: list[_Version], write: Operation) -> None:
        """Place an acknowledged deletion whose revision is unknown."""
        expected = write.expected
        if expected is None:
            one.unobserved_writes.append(write)
            return
        position = next((index for index, version in enumerate(versions) if version.earliest == expected), None)
        if position is None or not versions[position].exists:
            self._report(f"the expected revision never existed: {write}")
            return
        successor = versions[position + 1] if position + 1 < len(versions) else None
        if successor is not None and (successor.cause is None or successor.cause.action is not Action.CREATE):
            self._report(f"done, although {successor} follows {expected}: {write}")
            return
        earliest = max(expected, self._floors[write]) + 1
        latest = min(self._ceilings[write], successor.earliest if successor else _INFINITE) - 1
        if latest < earliest:
            self._report(f"done, but there is no revision between {earliest - 1} and {latest + 1}: {write}")
            latest = earliest
        versions.insert(position + 1, _Version(earliest, latest, None, write))

    # --- writes

    def _check_unique_revisions(self) -> None:
        """Check that each write has a unique revision."""
        writes_by_revision: dict[int, Operation] = {}
        for write, revision in self._revisions.items():
            other = writes_by_revision.setdefault(revision, write)
            if other is not write:
                self._report(f"revision {revision} was assigned twice: {other}; {write}")

    def _check_writes(self, one: _Object) -> None:
        for index, version in enumerate(one.versions):
            write = version.cause
            if write is None or index == 0:
                continue
            previous = one.versions[index - 1]
            floor = self._floors[write]
            if version.latest <= floor:
                self._report(f"took revision {version.latest}, but {floor} was known before it began: {write}")
            if write.action is Action.CREATE:
                is_possible = not previous.exists
            elif write.expected is None:
                is_possible = previous.exists
            else:
                is_possible = previous.exists and previous.earliest == write.expected
            if not is_possible and not self._overwritten_before(one, write, previous):
                self._report(f"done at {version.earliest}, although {previous} was the newest: {write}")

    @staticmethod
    def _overwritten_before(one: _Object, write: Operation, previous: _Version) -> bool:
        """Return whether an unobserved write can have come in between."""
        return write.expected is None and one.may_have_been_overwritten(write.answered, previous, None)

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
        one = self._object(operation.key)
        if not one.versions:
            one.versions.append(_Version(0, 0, None))
        expected = operation.expected

        def justifies(version: _Version) -> bool:
            if operation.outcome is Outcome.EXISTS:
                return version.exists
            if operation.outcome is Outcome.MISSING:
                return not version.exists
            return expected is None or not version.exists or version.earliest != expected

        first, last = self._range(operation)
        if not one.can_be(operation, first, last, justifies):
            states = ", ".join(str(version) for version, _ in one.between(first, last))
            self._report(f"not true at any time from {first} to {last} ({states}): {operation}")

    def _range(self, operation: Operation) -> tuple[int, int]:
        """Return the first and last revision that a response can refer to."""
        first = operation.at_least
        if operation.consistent:
            first = max(first, self._floors[operation])
        return first, self._ceilings[operation] - 1

    def _check_read(self, operation: Operation) -> None:
        first, last = self._range(operation)
        one = self._object(operation.key)
        revision = operation.revision
        if revision > last:
            self._report(f"shows a write that began after the response: {operation}")
        elif not any(version.exists and version.earliest == revision for version, _ in one.between(first, last)):
            self._report(f"stale, {first} was known before it began: {operation}")

    def _check_list(self, operation: Operation) -> None:
        first, last = self._range(operation)
        revision = operation.revision
        if revision < first:
            self._report(f"stale, {first} was known before it began: {operation}")
        if revision > last:
            self._report(f"at a revision that was assigned after the response: {operation}")
        for key, one in self._objects.items():
            if not key.startswith(operation.key) or not one.versions:
                continue
            listed = operation.items.get(key)

            def as_listed(version: _Version, listed: tuple[int, str] | None = listed) -> bool:
                return not version.exists if listed is None else version.exists and version.earliest == listed[0]

            possible = [version for version, _ in one.between(revision, revision)]
            if any(as_listed(version) for version in possible):
                continue
            if listed is None and one.can_be(operation, revision, revision, as_listed):
                continue
            difference = "is missing" if listed is None else f"is at {listed[0]}"
            states = " or ".join(map(str, possible))
            self._report(f"{key} {difference} as of {revision}, where there was {states}: {operation}")

    # --- watches

    def _check_watch(self, watch: WatchHistory) -> None:
        newest = passed = watch.start
        delivered: set[tuple[int, str]] = set()
        for event in watch.events:
            if event.kind == "BOOKMARK":
                if event.revision < newest:
                    self._report(f"{watch}: a bookmark of {event.revision} comes after {newest}")
                newest = passed = max(newest, event.revision)
                continue
            if (event.revision, event.key) in delivered:
                self._report(f"{watch}: {event} is shown twice")
            elif event.revision < newest or event.revision <= passed:
                self._report(f"{watch}: {event} comes after {newest}")
            newest = max(newest, event.revision)
            delivered.add((event.revision, event.key))
            self._check_event(watch, event)
        self._check_gaps(watch, _INFINITE if watch.complete else newest, delivered)

    def _check_event(self, watch: WatchHistory, event: WatchEvent) -> None:
        if not event.key.startswith(watch.prefix):
            self._report(f"{watch}: {event} is outside of its prefix")
        one = self._object(event.key)
        previous = one.before(event.revision)
        if previous is None or one.may_have_been_overwritten(NEVER, previous, None):
            return
        if (event.kind == "ADDED") is previous.exists:
            self._report(f"{watch}: {event}, where there was {previous}")
        elif event.kind == "DELETED" and event.value not in ("", previous.value):
            self._report(f"{watch}: {event} shows {event.value!r}, where there was {previous.value!r}")

    def _check_gaps(self, watch: WatchHistory, end: int, delivered: set[tuple[int, str]]) -> None:
        for key, one in self._objects.items():
            if not key.startswith(watch.prefix):
                continue
            versions = one.versions
            first = bisect_right(versions, watch.start, key=_earliest)
            for version in islice(versions, first, bisect_right(versions, end, key=_earliest)):
                if version.latest <= end and (version.earliest, key) not in delivered:
                    self._report(f"{watch}: it shows nothing of {key} at {version.earliest}: {version.cause}")
