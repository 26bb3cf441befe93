"""Environments that compile expressions, and the resulting programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from time import perf_counter
from typing import Any, Final

from kubetwist.cel import durations
from kubetwist.cel.allowance import EVALUATION_BASE_COST, Allowance, AllowanceExceeded, current_allowance
from kubetwist.cel.ast import Expr, Macro, children
from kubetwist.cel.checker import Checked, Checker, Declarations
from kubetwist.cel.compiler import Compiler
from kubetwist.cel.cost import SizeOf, estimate
from kubetwist.cel.errors import (
    Cancelled,
    CelError,
    CompileErrors,
    ConstantError,
    EvaluationError,
    Interrupted,
    Issue,
    ProgramError,
)
from kubetwist.cel.estimates import CostModel, Estimate
from kubetwist.cel.frame import Frame, Interpretable
from kubetwist.cel.functions import Library, Overload
from kubetwist.cel.parser import MacroKey, Parser, macro_table
from kubetwist.cel.source import Source
from kubetwist.cel.standard import STANDARD
from kubetwist.cel.types import Type
from kubetwist.cel.validators import VALIDATORS, Validator
from kubetwist.cel.values import Value

#: The cost limit of one evaluation in Kubernetes, C{PerCallLimit}.
PER_CALL_LIMIT: Final = 1_000_000
#: Maximum CPU seconds of one evaluation; an evaluation at the cost limit takes about a tenth of that.
EVALUATION_TIMEOUT: Final = 1.0

#: Depth of expressions that need a higher recursion limit.
_DEPTH_THRESHOLD: Final = 60
_RAISED_LIMIT: Final = 20_000


class _RecursionLimit:
    """Context manager that raises the recursion limit while deep expressions are processed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._limit = 0

    @contextmanager
    def __call__(self, depth: int) -> Iterator[None]:
        if depth < _DEPTH_THRESHOLD:
            yield
            return
        # The limit is global: the first user raises it, and the last one restores it.
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limit = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._limit, _RAISED_LIMIT))
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    sys.setrecursionlimit(self._limit)


_recursion_limit: Final = _RecursionLimit()


def _max_nesting(text: str) -> int:
    """Return an upper bound of the nesting depth of an expression, from its brackets and operators."""
    return sum(map(text.count, "([{?-!.")) + text.count("+") + text.count("*")


def _depth(root: Expr) -> int:
    """Return the depth of a tree in nodes."""
    deepest, pending = 0, [(root, 1)]
    while pending:
        expr, depth = pending.pop()
        deepest = max(deepest, depth)
        pending.extend((child, depth + 1) for child in children(expr))
    return deepest


class Program:
    """A compiled expression."""

    def __init__(self, checked: Checked, run: Interpretable, slots: int, model: CostModel | None, depth: int) -> None:
        """
        @param checked: The checked expression.
        @param run: The compiled expression.
        @param slots: Number of comprehension variables.
        @param model: Costs of functions.
        @param depth: Depth of the syntax tree in nodes.
        """
        self._checked = checked
        self._run = run
        self._slots = slots
        self._model = model
        self._depth = depth
        self.output_type: Type = checked.types[checked.root.id]

    @property
    def checked(self) -> Checked:
        """Return the checked expression."""
        return self._checked

    def estimated_cost(self, size_of: SizeOf | None = None) -> Estimate:
        """
        Estimate the minimum and the maximum cost of an evaluation.

        @param size_of: Returns the sizes of the values of variables, if a schema limits them.
        """
        with _recursion_limit(self._depth):
            return estimate(self._checked, self._model, size_of)

    def evaluate(
        self, activation: Mapping[str, Value], cost_limit: int = PER_CALL_LIMIT, timeout: float = EVALUATION_TIMEOUT
    ) -> tuple[Value, int]:
        """
        Evaluate the expression.

        @param activation: Values of the variables; an L{kubetwist.cel.frame.Activation} computes them lazily.
        @param cost_limit: The maximum cost.
        @param timeout: The maximum processor time, checked in loops only.
        @return: The value and its cost.
        @raise EvaluationError: The evaluation failed.
        @raise AllowanceExceeded: The cost exceeds the allowance of L{kubetwist.cel.allowance.with_allowance}.
        """
        allowance = current_allowance.get()
        if allowance is not None:
            return self._evaluate_with_allowance(activation, cost_limit, timeout, allowance)
        return self._evaluate(activation, cost_limit, timeout)

    def _evaluate_with_allowance(
        self, activation: Mapping[str, Value], cost_limit: int, timeout: float, allowance: Allowance
    ) -> tuple[Value, int]:
        """
        Do the same as L{evaluate}, within an allowance.

        @param activation: See L{evaluate}.
        @param cost_limit: See L{evaluate}.
        @param timeout: See L{evaluate}.
        @param allowance: The allowance, from which the cost is subtracted.
        @raise AllowanceExceeded: The cost exceeds the allowance.
        """
        allowance.remaining -= EVALUATION_BASE_COST
        if allowance.remaining < 0:
            raise AllowanceExceeded
        limit = min(cost_limit, allowance.remaining)
        try:
            value, cost = self._evaluate(activation, limit, timeout)
        except EvaluationError as error:
            if error.interrupted or (error.cost_exceeded and error.cost <= cost_limit and limit < cost_limit):
                raise AllowanceExceeded from None
            allowance.remaining -= error.cost
            raise
        allowance.remaining -= cost
        return value, cost

    def _evaluate(self, activation: Mapping[str, Value], cost_limit: int, timeout: float) -> tuple[Value, int]:
        frame = Frame(activation, self._slots, cost_limit, timeout)
        start = perf_counter()
        try:
            if self._depth < _DEPTH_THRESHOLD:
                value = self._run(frame)
            else:
                with _recursion_limit(self._depth):
                    value = self._run(frame)
        except CelError as error:
            self._check_cost(frame)
            raise EvaluationError(error.message, frame.cost) from None
        except Cancelled as error:
            interrupted = isinstance(error, Interrupted)
            raise EvaluationError(error.message, frame.cost, not interrupted, interrupted) from None
        except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError):
            # A value does not have its declared type.
            self._check_cost(frame)
            raise EvaluationError("no such overload", frame.cost) from None
        except RecursionError:
            raise EvaluationError("max recursion depth exceeded", frame.cost) from None
        finally:
            durations.EVALUATION.observe(perf_counter() - start)
        self._check_cost(frame)
        return value, frame.cost

    @staticmethod
    def _check_cost(frame: Frame) -> None:
        if frame.cost > frame.limit:
            message = "operation cancelled: actual cost limit exceeded"
            raise EvaluationError(message, frame.cost, cost_exceeded=True) from None


def _nesting_error(text: str) -> CompileErrors:
    """
    Return the error for an expression whose types are nested too deeply.

    The expression itself may be flat: bound variables can be lists of other bound variables.
    """
    source = Source(text)
    return source.errors([Issue("the types nest too deep", *source.position(0))])


def _no_types(name: str) -> Type | None:
    return None


class Environment:
    """Declarations of variables, functions and types for expressions. Extensions share everything but the variables."""

    def __init__(
        self,
        variables: Mapping[str, Type] | None = None,
        libraries: Sequence[Library] = (),
        costs: CostModel | None = None,
        container: str = "",
        find_type: Callable[[str], Type | None] = _no_types,
        validators: Sequence[Validator] = (),
    ) -> None:
        """
        @param variables: Types of variables.
        @param libraries: The libraries besides the standard library.
        @param costs: Costs of functions.
        @param container: The namespace in which names are resolved first.
        @param find_type: Finds types by name that no library declares, such as C{Object.spec}.
        @param validators: Further checks of well-typed expressions.
        """
        functions: dict[str, list[Overload]] = {}
        macros: list[Macro] = []
        types: dict[str, Type] = {}
        constants: dict[str, tuple[Type, Any]] = {}
        for library in (STANDARD, *libraries):
            macros += library.macros
            types.update(library.types)
            constants.update(library.constants)
            for function in library.functions:
                existing = functions.setdefault(function.name, [])
                ids = {overload.id for overload in existing}
                existing += (overload for overload in function.overloads if overload.id not in ids)
        self._macros: dict[MacroKey, Macro] = macro_table(macros)
        self._costs = costs
        self._validators = (*VALIDATORS, *validators)
        self._declared = Declarations(variables or {}, constants, types, functions, container, find_type)

    def extend(
        self,
        variables: Mapping[str, Type],
        find_type: Callable[[str], Type | None] | None = None,
        container: str | None = None,
    ) -> Environment:
        """Return an environment with additional variables, which shares everything else."""
        extended = object.__new__(Environment)
        declared = self._declared
        extended._macros, extended._costs, extended._validators = self._macros, self._costs, self._validators
        extended._declared = Declarations(
            {**declared.variables, **variables},
            declared.constants,
            declared.types,
            declared.functions,
            declared.container if container is None else container,
            declared.find_type if find_type is None else find_type,
            declared.signatures,
            declared.resolved,
        )
        return extended

    def check(self, text: str) -> Checked:
        """
        Parse and type-check an expression.

        @raise CompileErrors: The expression is invalid.
        """
        with _recursion_limit(_max_nesting(text)):
            try:
                return self._check(text)
            except RecursionError:
                raise _nesting_error(text) from None

    def _check(self, text: str) -> Checked:
        source = Source(text)
        parser = Parser(source, self._macros)
        parsed = parser.parse()
        if parsed is None:
            raise source.errors(parser.issues)
        checker = Checker(parsed, source, self._declared)
        checked = checker.check()
        if checked is None:
            raise source.errors(checker.issues)
        issues = [
            Issue(message, *source.position(parsed.offsets.get(expr.id, -1)))
            for validator in self._validators
            for expr, message in validator(checked)
        ]
        if issues:
            raise source.errors(issues)
        return checked

    def compile(self, text: str) -> Program:
        """
        Compile an expression.

        @raise CompileErrors: The expression is invalid.
        """
        start = perf_counter()
        with _recursion_limit(_max_nesting(text)):
            try:
                checked = self._check(text)
                compiler = Compiler(checked, self._costs, self._declared.functions)
                try:
                    run = compiler.compile()
                except ConstantError as error:
                    raise ProgramError(str(error), checked.types[checked.root.id]) from None
            except RecursionError:
                raise _nesting_error(text) from None
        durations.COMPILATION.observe(perf_counter() - start)
        return Program(checked, run, compiler.slots, self._costs, _depth(checked.root))
