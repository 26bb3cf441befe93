"""Tests for L{kubetwist.testing.history} and L{kubetwist.testing.historycheck}."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from attrs import Factory, define
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing.history import Action, History, Operation, Outcome, WatchHistory
from kubetwist.testing.historycheck import violations

KEYS = ("a/x", "a/y", "b/x")
WRITES = (Action.CREATE, Action.UPDATE, Action.DELETE)

#: A change of the store: revision, key, value (L{None} for a deletion), previous value.
Change = tuple[int, str, str | None, str | None]


@define(eq=False)
class SimulatedStore:
    """
    A correct store; a fault makes it misbehave once.

    @ivar faults: The remaining number of each kind of fault.
    @ivar done: The kinds of faults that have occurred.
    """

    revision: int = 1
    state: dict[str, tuple[int, str]] = Factory(dict)
    changes: list[Change] = Factory(list)
    faults: dict[str, int] = Factory(dict)
    done: list[str] = Factory(list)

    def fault(self, name: str) -> bool:
        """Return whether to misbehave now."""
        if not self.faults.get(name):
            return False
        self.faults[name] -= 1
        self.done.append(name)
        return True

    def apply(self, operation: Operation) -> Callable[[], None]:
        """Execute an operation; return the function that records its response."""
        key = operation.key
        found = self.state.get(key)
        if operation.action is Action.LIST:
            items = {name: item for name, item in self.state.items() if name.startswith(key)}
            if items and self.fault("list loses an item"):
                items.popitem()
            revision = self.revision
            return lambda: operation.listed(revision, items)
        if operation.action is Action.READ:
            if found is None:
                return lambda: operation.failed(Outcome.MISSING)
            older = [one for one in self.changes if one[1] == key and one[2] is not None]
            if len(older) > 1 and self.fault("read is stale"):
                revision, _, value, _ = older[-2]
                return lambda: operation.found(revision, value or "")
            return lambda: operation.found(*found)
        refusal = self._refusal(operation, found)
        if refusal is Outcome.CONFLICT and self.fault("stale compare-and-swap"):
            refusal = None
        if refusal is not None:
            if operation.action is Action.UPDATE and found is not None and self.fault("refused write is done"):
                self._write(key, operation.value)
            refused = refusal
            return lambda: operation.failed(refused)
        if operation.action is Action.UPDATE and operation.expected and self.fault("refusal for nothing"):
            return lambda: operation.failed(Outcome.CONFLICT)
        if self.fault("acknowledged write is lost"):
            revision = self.revision = self.revision + 1
        else:
            revision = self._write(key, None if operation.action is Action.DELETE else operation.value)
        return lambda: operation.done(0 if operation.action is Action.DELETE else revision)

    def _refusal(self, operation: Operation, found: tuple[int, str] | None) -> Outcome | None:
        if operation.action is Action.CREATE:
            return None if found is None else Outcome.EXISTS
        if found is None:
            return Outcome.MISSING
        return None if operation.expected in (None, found[0]) else Outcome.CONFLICT

    def _write(self, key: str, value: str | None) -> int:
        before = self.state.get(key)
        if self.revision > 3 and value is not None and self.fault("revision is given again"):
            self.revision -= 1
        self.revision += 1
        if value is None:
            self.state.pop(key)
        else:
            self.state[key] = (self.revision, value)
        self.changes.append((self.revision, key, value, before and before[1]))
        return self.revision

    def show(self, watch: WatchHistory, end: int) -> None:
        """Send the pending events of a watch, up to a revision."""
        events = [one for one in self.changes if watch.last < one[0] <= end and one[1].startswith(watch.prefix)]
        if len(events) > 1 and self.fault("events change places"):
            events[0], events[1] = events[1], events[0]
        if len(events) > 1 and self.fault("event is lost"):
            del events[0]
        if events and self.fault("event comes twice"):
            events.append(events[-1])
        for revision, key, value, before in events:
            if value is None:
                watch.event("DELETED", key, revision, before or "")
            else:
                watch.event("ADDED" if before is None else "MODIFIED", key, revision, value)


def simulated(seed: int, *, faults: tuple[str, ...] = (), lossy: bool = True, steps: int = 120) -> tuple[History, Any]:
    """
    Simulate clients of a store; return their history.

    @param lossy: Whether some responses are lost, and some watches break.
    """
    # Concurrent operations could justify a wrong response of these faults, so operations run one after the other.
    most = 1 if {"refusal for nothing", "read is stale"}.intersection(faults) else 10
    dice = random.Random(seed)
    store = SimulatedStore(faults=dict.fromkeys(faults, 1))
    ticks = iter(range(1, 1 << 30))
    history = History(now=lambda: float(next(ticks)))
    pending: list[Operation] = []
    unanswered: list[Callable[[], None]] = []
    known: dict[str, list[int]] = {key: [] for key in KEYS}
    everything = history.watch("", 1)
    watches = [everything]
    for number in range(steps):
        choice = dice.random()
        if choice < 0.35 and len(pending) + len(unanswered) < most:
            action = dice.choice((*WRITES, Action.UPDATE, Action.UPDATE, Action.READ, Action.LIST))
            key = dice.choice(("", "a/")) if action is Action.LIST else dice.choice(KEYS)
            expected = None
            if action in WRITES and action is not Action.CREATE and known[key] and dice.random() < 0.8:
                expected = dice.choice(known[key][-2:])
            if action is Action.DELETE and expected is None:
                continue
            value = f"v{number}" if action in (Action.CREATE, Action.UPDATE) else ""
            pending.append(history.begin(action, key, value, expected, client=f"c{number % 3}"))
        elif choice < 0.65 and pending:
            operation = pending.pop(dice.randrange(len(pending)))
            answer = store.apply(operation)
            if not lossy or dice.random() < 0.9:
                unanswered.append(answer)
        elif choice < 0.9 and unanswered:
            unanswered.pop(dice.randrange(len(unanswered)))()
            for operation in history.operations[-10:]:
                if operation.revision and operation.action is not Action.LIST:
                    known[operation.key].append(operation.revision)
        elif choice < 0.95:
            for watch in watches:
                store.show(watch, dice.randrange(watch.last, store.revision + 1))
        elif lossy:
            watches = [everything, history.watch(dice.choice(("", "a/")), dice.randrange(1, store.revision + 1))]
    for operation in pending if not lossy else ():
        unanswered.append(store.apply(operation))
    for answer in unanswered:
        answer()
    store.apply(history.begin(Action.LIST, ""))()
    for watch in watches:
        store.show(watch, store.revision)
        watch.complete = True
    return history, store


FAULTS = (
    "read is stale",
    "acknowledged write is lost",
    "stale compare-and-swap",
    "refused write is done",
    "refusal for nothing",
    "revision is given again",
    "list loses an item",
    "event is lost",
    "event comes twice",
    "events change places",
)


class SimulationTests(SynchronousTestCase):
    """Histories of a simulated store."""

    @given(seed=st.integers(0, 1 << 40))
    @settings(max_examples=150, deadline=None)
    def test_correct_store(self, seed: int) -> None:
        """No history of a correct store has violations."""
        history, _ = simulated(seed)
        self.assertEqual(violations(history), [])

    @given(seed=st.integers(0, 1 << 40), fault=st.sampled_from(FAULTS))
    @settings(max_examples=300, deadline=None)
    def test_single_fault(self, seed: int, fault: str) -> None:
        """A single fault of any kind is detected."""
        history, store = simulated(seed, faults=(fault,), lossy=False)
        self.assertEqual(bool(violations(history)), bool(store.done), (fault, seed))

    def test_all_faults_occur(self) -> None:
        """Each kind of fault occurs in the simulations."""
        for fault in FAULTS:
            done = [simulated(seed, faults=(fault,), lossy=False)[1].done for seed in range(10)]
            self.assertIn([fault], done)

    @given(seed=st.integers(0, 1 << 40))
    @settings(max_examples=20, deadline=None)
    def test_dumped(self, seed: int) -> None:
        """A history that is dumped and loaded has the same violations."""
        for faults in ((), ("stale compare-and-swap",)):
            history, _ = simulated(seed, faults=faults)
            again = History.loaded(history.dumped().splitlines())
            self.assertEqual(violations(again), violations(history))
            self.assertEqual(again.dumped(), history.dumped())
