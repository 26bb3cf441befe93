"""State of one evaluation: variables, tracked cost and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from time import thread_time
from typing import Any, Final

from kubetwist.cel.errors import CelError, CostLimitExceeded, Interrupted
from kubetwist.cel.values import MapValue, Value

#: Number of loop iterations between two checks of the time limit.
_INTERRUPT_CHECK_FREQUENCY: Final = 64
#: After a call that costs more than this, the time limit is checked at once.
_EXPENSIVE_CALL_COST: Final = 100


class Frame:
    """
    State of one evaluation.

    @ivar vars: Variables of the environment.
    @ivar locals: Values of comprehension variables, by slot.
    @ivar cost: The tracked cost so far.
    @ivar limit: The maximum cost.
    """

    __slots__ = ("_deadline", "_iterations", "_timeout", "cost", "limit", "locals", "vars")

    def __init__(self, variables: Mapping[str, Value], slots: int, limit: int, timeout: float) -> None:
        """
        @param variables: Values of the variables of the environment.
        @param slots: Number of comprehension variables.
        @param limit: The maximum cost.
        @param timeout: The maximum processor time in seconds.
        """
        self.vars = variables
        self.locals: list[Any] = [None] * slots
        self.cost = 0
        self.limit = limit
        self._timeout = timeout
        self._deadline = 0.0
        self._iterations = 0

    def add_cost(self, cost: int) -> None:
        """
        Add to the tracked cost.

        @raise CostLimitExceeded: The cost exceeds the limit.
        @raise Interrupted: The time limit is exceeded.
        """
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitExceeded
        if cost > _EXPENSIVE_CALL_COST:
            self.check_deadline()

    def next_iteration(self) -> None:
        """
        Count a loop iteration.

        @raise CostLimitExceeded: The cost exceeds the limit.
        @raise Interrupted: The time limit is exceeded.
        """
        if self.cost > self.limit:
            raise CostLimitExceeded
        self._iterations += 1
        if self._iterations == _INTERRUPT_CHECK_FREQUENCY:
            self._iterations = 0
            self.check_deadline()

    def check_deadline(self) -> None:
        """
        Raise L{Interrupted} if the thread's CPU time has passed the deadline.

        The first call only sets the deadline.
        """
        now = thread_time()
        if not self._deadline:
            # Most evaluations end before the first check.
            self._deadline = now + self._timeout
        elif now > self._deadline:
            raise Interrupted


Interpretable = Callable[[Frame], Value]


class LazyFields(MapValue):
    """
    An object whose fields are computed at first access: C{variables} of admission policies.

    Values and L{CelError}s are cached. After any other exception the next access computes the field again.
    """

    __slots__ = ("_computed", "_fields")

    def __init__(self, fields: Mapping[str, Callable[[], Value]]) -> None:
        self._fields = fields
        self._computed: dict[str, Value] = {}

    def __getitem__(self, key: str) -> Value:
        cached = self._computed.get(key, self)
        if cached is self:
            cached = self._computed[key] = _compute_field(self._fields[key])
        if isinstance(cached, _FieldError):
            raise cached.error
        return cached

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
    """Values of variables, some of which are computed at first use."""

    __slots__ = ("_lazy",)

    def __init__(self, values: Mapping[str, Value], lazy: Mapping[str, Callable[[], Value]]) -> None:
        super().__init__(values)
        self._lazy = lazy

    def __missing__(self, name: str) -> Value:
        value = self[name] = self._lazy[name]()
        return value
