"""The state of one evaluation: its variables, its cost so far and its limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from time import thread_time
from typing import Any, Final

from kubetwist.cel.errors import CelError, CostLimitExceeded, Interrupted
from kubetwist.cel.values import MapValue, Value

#: The number of loop iterations between two checks of the time limit.
_ROUNDS: Final = 64
#: Calls that cost more than this are followed by an immediate check of the time limit.
_LONG: Final = 100


class Frame:
    """
    The state of one evaluation.

    @ivar vars: Variables of the environment.
    @ivar locals: Variables of comprehensions.
    @ivar cost: The cost spent so far.
    """

    __slots__ = ("_deadline", "_rounds", "_seconds", "cost", "limit", "locals", "vars")

    def __init__(self, variables: Mapping[str, Value], slots: int, limit: int, seconds: float) -> None:
        self.vars = variables
        self.locals: list[Any] = [None] * slots
        self.cost = 0
        self.limit = limit
        self._seconds = seconds
        self._deadline = 0.0
        self._rounds = 0

    def spend(self, cost: int) -> None:
        """Charge what may be much, and stop if it was too much."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitExceeded
        if cost > _LONG:
            self.look()

    def round(self) -> None:
        """Count an iteration of a loop, and stop the evaluation if it exceeds a limit."""
        if self.cost > self.limit:
            raise CostLimitExceeded
        self._rounds += 1
        if self._rounds == _ROUNDS:
            self._rounds = 0
            self.look()

    def look(self) -> None:
        """Look at the clock, which runs only while this thread does, and stop if it is late."""
        now = thread_time()
        if not self._deadline:
            # Most evaluations never get so far as to read the clock.
            self._deadline = now + self._seconds
        elif now > self._deadline:
            raise Interrupted


Step = Callable[[Frame], Value]


class LazyFields(MapValue):
    """
    An object whose fields are computed when they are first read: C{variables} of admission policies.

    A field that has no value is not computed again, either; what else was raised leaves it as it was.
    """

    __slots__ = ("_fields", "_known")

    def __init__(self, fields: Mapping[str, Callable[[], Value]]) -> None:
        self._fields = fields
        self._known: dict[str, Value] = {}

    def __getitem__(self, key: str) -> Value:
        known = self._known.get(key, self)
        if known is self:
            known = self._known[key] = _result(self._fields[key])
        if isinstance(known, _Raised):
            raise known.error
        return known

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


class _Raised:
    __slots__ = ("error",)

    def __init__(self, error: CelError) -> None:
        self.error = error


def _result(compute: Callable[[], Value]) -> Value:
    try:
        return compute()
    except CelError as error:
        return _Raised(error)


class Activation(dict[str, Any]):
    """Variables of which some are computed when they are first used."""

    __slots__ = ("_lazy",)

    def __init__(self, values: Mapping[str, Value], lazy: Mapping[str, Callable[[], Value]]) -> None:
        super().__init__(values)
        self._lazy = lazy

    def __missing__(self, name: str) -> Value:
        value = self[name] = self._lazy[name]()
        return value
