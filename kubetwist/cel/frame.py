"""The state of one evaluation: its variables, its cost so far and its limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from time import thread_time
from typing import Any, Final

from kubetwist.cel.errors import CelError, CostLimitExceeded, Interrupted
from kubetwist.cel.values import MapValue, Value

#: The number of loop iterations between two checks of the time limit.
_INTERRUPT_CHECK_FREQUENCY: Final = 64
#: Calls that cost more than this are followed by an immediate check of the time limit.
_EXPENSIVE_CALL_COST: Final = 100


class Frame:
    """
    The state of one evaluation.

    @ivar vars: Variables of the environment.
    @ivar locals: Variables of comprehensions.
    @ivar cost: The cost spent so far.
    """

    __slots__ = ("_deadline", "_iterations", "_timeout", "cost", "limit", "locals", "vars")

    def __init__(self, variables: Mapping[str, Value], slots: int, limit: int, timeout: float) -> None:
        self.vars = variables
        self.locals: list[Any] = [None] * slots
        self.cost = 0
        self.limit = limit
        self._timeout = timeout
        self._deadline = 0.0
        self._iterations = 0

    def add_cost(self, cost: int) -> None:
        """Charge what may be much, and stop if it was too much."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitExceeded
        if cost > _EXPENSIVE_CALL_COST:
            self.check_deadline()

    def next_iteration(self) -> None:
        """Count an iteration of a loop, and stop the evaluation if it exceeds a limit."""
        if self.cost > self.limit:
            raise CostLimitExceeded
        self._iterations += 1
        if self._iterations == _INTERRUPT_CHECK_FREQUENCY:
            self._iterations = 0
            self.check_deadline()

    def check_deadline(self) -> None:
        """Look at the clock, which runs only while this thread does, and stop if it is late."""
        now = thread_time()
        if not self._deadline:
            # Most evaluations never get so far as to read the clock.
            self._deadline = now + self._timeout
        elif now > self._deadline:
            raise Interrupted


Interpretable = Callable[[Frame], Value]


class LazyFields(MapValue):
    """
    An object whose fields are computed when they are first read: C{variables} of admission policies.

    A field that has no value is not computed again, either; what else was raised leaves it as it was.
    """

    __slots__ = ("_computed", "_fields")

    def __init__(self, fields: Mapping[str, Callable[[], Value]]) -> None:
        self._fields = fields
        self._computed: dict[str, Value] = {}

    def __getitem__(self, key: str) -> Value:
        known = self._computed.get(key, self)
        if known is self:
            known = self._computed[key] = _compute_field(self._fields[key])
        if isinstance(known, _FieldError):
            raise known.error
        return known

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


class _FieldError:
    __slots__ = ("error",)

    def __init__(self, error: CelError) -> None:
        self.error = error


def _compute_field(compute: Callable[[], Value]) -> Value:
    try:
        return compute()
    except CelError as error:
        return _FieldError(error)


class Activation(dict[str, Any]):
    """Variables of which some are computed when they are first used."""

    __slots__ = ("_lazy",)

    def __init__(self, values: Mapping[str, Value], lazy: Mapping[str, Callable[[], Value]]) -> None:
        super().__init__(values)
        self._lazy = lazy

    def __missing__(self, name: str) -> Value:
        value = self[name] = self._lazy[name]()
        return value
