"""
CEL expressions of admission webhooks and policies: variables, compilation and evaluation.

Webhooks have match conditions; policies have match conditions, variables, validations, messages, audit annotations and
mutations. All use the same variables. The CEL packages are imported when the first expression is compiled.

@see: kubernetes/apiserver, C{pkg/admission/plugin/cel}.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from time import thread_time
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from attrs import define, field, frozen

from twisted.internet.defer import Deferred

from ..api.admission import AdmissionAttributes
from ..api.authorization import AuthorizerAttributes, Decision, Verdict
from ..api.errors import FieldError, internal, invalid
from ..api.resource import JSONObject
from ..cel.admission import OUT_OF_BUDGET

if TYPE_CHECKING:
    from ..cel.environment import Environment, Program
    from ..cel.library.authz import Authorizer
    from ..cel.types import Type
    from ..cel.values import Value

_Result = TypeVar("_Result")

_NAMESPACE_META: Final = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
)


#: Cost of an evaluation after which the processor time is checked.
EXPENSIVE_COST: Final = 1000


class CostBudgetExceeded(Exception):
    """The runtime cost of expressions exceeds the budget."""

    def __init__(self) -> None:
        super().__init__(OUT_OF_BUDGET)


@frozen
class OptionalVariables:
    """
    The optional variables (C{OptionalVariableDeclarations}), besides the objects, the request and its namespace.

    @ivar has_params: Whether C{params} is declared: the policy has parameters.
    @ivar has_authorizer: Whether C{authorizer} is declared.
    @ivar has_patch_types: Whether the types of mutations are declared: C{Object}, C{JSONPatch}.
    """

    has_params: bool = False
    has_authorizer: bool = True
    has_patch_types: bool = False


@frozen
class CompilationResult:
    """
    A compiled expression or the error of its compilation.

    @ivar error: The error text; it begins with C{compilation failed: } for compiler errors.
    @ivar internal: Whether the expression is valid, but a constant part of it fails to evaluate.
    """

    text: str
    program: Program | None = None
    error: str = ""
    internal: bool = False

    def cause(self, path: str, visible: str = "") -> FieldError | None:
        """
        Return the field error for an expression that does not compile; L{None} if it compiles.

        @param path: The path of the field.
        @param visible: The value in the error; C{""} for the text of the expression.
        """
        if not self.error:
            return None
        return internal(path, self.error) if self.internal else invalid(path, visible or self.text, self.error)


class Compiler:
    """
    Compiles the expressions of one webhook or policy.

    @ivar variables: The compiled variables in their order; later expressions may use them.
    """

    def __init__(self, *, composited: bool = False, types: Mapping[str, Type] | None = None) -> None:
        """
        @param composited: Whether C{variables} is declared, as for policies.
        @param types: Types of variables that differ from the default ones.
        """
        self._composited = composited
        self._types = types or {}
        self._fields: dict[str, Type] = {}
        self.variables: dict[str, CompilationResult] = {}

    def compile_and_store_variable(self, name: str, text: str, names: OptionalVariables) -> CompilationResult:
        """Compile a variable."""
        from ..cel.types import DYN

        compiled = self.compile(text, names)
        self.variables[name] = compiled
        self._fields[name] = _declared(compiled.program.output_type) if compiled.program is not None else DYN
        return compiled

    def compile(self, text: str, names: OptionalVariables, expected: Sequence[Type] = ()) -> CompilationResult:
        """
        Compile an expression.

        @param expected: The allowed result types; empty for any type.
        """
        from ..cel.errors import CompileErrors, ProgramError

        try:
            program = self._environment(names).compile(text)
        except ProgramError as error:
            problem = _type_error(error.output_type, expected)
            return CompilationResult(
                text, error=problem or f"program instantiation failed: {error}", internal=not problem
            )
        except CompileErrors as error:
            return CompilationResult(text, error=f"compilation failed: {error}")
        problem = _type_error(program.output_type, expected)
        return CompilationResult(text, error=problem) if problem else CompilationResult(text, program)

    def _environment(self, names: OptionalVariables) -> Environment:
        from ..cel.admission import admission_environment

        environment = admission_environment(names.has_params, names.has_authorizer, names.has_patch_types)
        if not self._composited and not self._types:
            return environment
        from ..cel.types import ObjectType

        return environment.extend({**self._types, "variables": ObjectType("kubernetes.variables", dict(self._fields))})


def _type_error(actual: Type, expected: Sequence[Type]) -> str:
    """Return the error if the result type is not expected; C{""} otherwise."""
    if not expected or actual in expected:
        return ""
    if len(expected) == 1:
        return f"must evaluate to {expected[0]} but got {actual}"
    return f"must evaluate to one of [{' '.join(map(str, expected))}] but got {actual}"


def _declared(actual: Type) -> Type:
    """Return the type that other expressions see for a variable: structured types are dynamic."""
    from ..cel.types import DYN, Kind, list_of, map_of

    if actual.kind is Kind.LIST:
        return list_of(_declared(actual.parameters[0]))
    if actual.kind is Kind.MAP:
        return map_of(*map(_declared, actual.parameters))
    return DYN if actual.kind in (Kind.STRUCT, Kind.OPAQUE, Kind.TYPE, Kind.TYPE_PARAM, Kind.ERROR) else actual


# --- requests


@define
class VersionedRequest:
    """
    A request with its objects converted to one version (C{admission.VersionedAttributes}).

    @ivar object: The converted object with C{kind} and C{apiVersion}; L{None} for none.
    @ivar old_object: The converted old object; L{None} for none.
    @ivar request: The variable C{request}.
    @ivar namespace: The variable C{namespaceObject}; L{None} for cluster-scoped objects.
    """

    object: JSONObject | None
    old_object: JSONObject | None
    request: JSONObject
    namespace: JSONObject | None
    attributes: AdmissionAttributes = field(repr=False)

    def for_conditions(
        self, names: OptionalVariables, authorizer: Authorizer | None, params: JSONObject | None
    ) -> dict[str, Value]:
        """
        Return the values of the variables in C{matchConditions}.

        C{namespaceObject} is null also for requests with a namespace (C{webhook/matchconditions/matcher.go}).
        """
        return {**self.activation(names, authorizer, params), "namespaceObject": None}

    def activation(
        self, names: OptionalVariables, authorizer: Authorizer | None, params: JSONObject | None
    ) -> dict[str, Value]:
        """Return the values of the variables."""
        values: dict[str, Value] = {
            "object": self.object,
            "oldObject": self.old_object,
            "namespaceObject": self.namespace,
            "request": self.request,
        }
        if names.has_params:
            values["params"] = params
        if names.has_authorizer and authorizer is not None:
            attributes = self.attributes
            values["authorizer"] = authorizer
            values["authorizer.requestResource"] = authorizer.request_resource(
                attributes.group, attributes.resource, attributes.subresource, attributes.namespace, attributes.name
            )
        return values


def namespace_object(namespace: JSONObject | None) -> JSONObject | None:
    """Return the part of a namespace that expressions can use."""
    if namespace is None:
        return None
    meta = namespace["metadata"]
    visible: JSONObject = {"metadata": {name: meta[name] for name in _NAMESPACE_META if name in meta}}
    for name in ("spec", "status"):
        visible[name] = namespace.get(name) or {}
    return visible


def cel_authorizer(attributes: AdmissionAttributes) -> Authorizer:
    """Return the variable C{authorizer} for the user of a request; all expressions of a request share it."""
    from ..cel.library.authz import Authorizer

    authorizer = attributes.context.authorizer
    if authorizer is None:
        return Authorizer(attributes.user, _no_opinion)

    async def authorize_async(authorizer_attributes: AuthorizerAttributes) -> Verdict:
        verdict = authorizer.authorize(authorizer_attributes)
        return verdict if isinstance(verdict, Verdict) else await verdict

    def authorize(authorizer_attributes: AuthorizerAttributes) -> Verdict | Deferred[Verdict] | Awaitable[Verdict]:
        # Only the reactor's thread may call authorizers: in another thread the evaluation is cancelled and repeated.
        return (
            authorize_async(authorizer_attributes)
            if _in_other_thread.get()
            else authorizer.authorize(authorizer_attributes)
        )

    return Authorizer(attributes.user, authorize)


#: Whether an expression is evaluated in another thread than the reactor's.
_in_other_thread: Final[ContextVar[bool]] = ContextVar("in_other_thread", default=False)


def _run_in_thread(run: Callable[[], _Result]) -> _Result:
    """Call a function in another thread than the reactor's."""
    token = _in_other_thread.set(True)
    try:
        return run()
    finally:
        _in_other_thread.reset(token)


def _no_opinion(authorizer_attributes: AuthorizerAttributes) -> Verdict:
    return Verdict(Decision.NO_OPINION)


async def evaluate_with_authorizer(run: Callable[[], _Result], attributes: AdmissionAttributes) -> _Result:
    """
    Call C{run}, which evaluates expressions, and return its result.

    The call is repeated after a decision of the authorizer that takes time, and in the computation thread if the
    expressions are expensive. Therefore C{run} must not have side effects.

    @param attributes: The admission request; for a large object C{run} starts in the computation thread.
    """
    from ..cel.allowance import AllowanceExceeded, with_allowance
    from ..cel.library.authz import DecisionPending

    computing = attributes.computing
    while True:
        try:
            if computing is not None:
                result: _Result = await computing(_run_in_thread, run)
                return result
            return run() if attributes.in_thread is None else with_allowance(run)
        except DecisionPending as needed:
            await needed.resolve()
        except AllowanceExceeded:
            computing = attributes.in_thread


@frozen
class EvaluationResult:
    """
    The result of an evaluation.

    @ivar value: The value, if C{error} is empty.
    @ivar error: The error text; C{""} on success.
    """

    value: Any = None
    error: str = ""


class Evaluation:
    """
    Evaluates expressions on the same values, with shared variables and a shared budget.

    @ivar budget: The remaining cost budget.
    @cvar seconds: Limit of the processor time of all expressions together; checked after expensive expressions.
    """

    seconds: ClassVar[float] = 2.0

    def __init__(self, values: Mapping[str, Value], variables: Mapping[str, CompilationResult], budget: int) -> None:
        self.budget = budget
        self._deadline = 0.0
        self._activation = values
        self._variables = variables
        self._spent = 0

    @cached_property
    def _values(self) -> Mapping[str, Value]:
        if not self._variables:
            return self._activation
        from ..cel.frame import LazyFields

        lazy = {name: self._variable(name, compiled) for name, compiled in self._variables.items()}
        return {**self._activation, "variables": LazyFields(lazy)}

    def _variable(self, name: str, compiled: CompilationResult) -> Callable[[], Value]:
        from ..cel.errors import CelError, EvaluationError

        def value() -> Value:
            if compiled.program is None:
                raise CelError(f'composited variable "{name}" fails to compile: {compiled.error}')
            try:
                actual, cost = compiled.program.evaluate(self._values)
            except EvaluationError as error:
                self._spent += error.cost
                raise CelError(f'composited variable "{name}" fails to evaluate: {error}') from None
            self._spent += cost
            return actual

        return value

    def run(self, expression: CompilationResult) -> EvaluationResult:
        """
        Evaluate an expression.

        @raise CostBudgetExceeded: The expression or the variables that it uses exceed the budget.
        """
        from ..cel.errors import EvaluationError

        if expression.program is None:
            return EvaluationResult(error=f"compilation error: {expression.error}")
        try:
            value, cost = expression.program.evaluate(self._values)
        except EvaluationError as error:
            self._charge(error.cost)
            return EvaluationResult(error=f"expression '{expression.text}' resulted in error: {error}")
        self._charge(cost)
        return EvaluationResult(value)

    def _charge(self, cost: int) -> None:
        cost += self._spent
        self._spent = 0
        if cost > self.budget:
            raise CostBudgetExceeded
        self.budget -= cost
        if cost > EXPENSIVE_COST:
            now = thread_time()
            # The clock is read after expensive evaluations only.
            self._deadline = self._deadline or now + self.seconds
            if now > self._deadline:
                raise CostBudgetExceeded


# --- conditions


class MatchConditionError(Exception):
    """A match condition failed to evaluate; the failure policy applies. The text is the reference's."""


class MatchConditions:
    """C{matchConditions}: expressions that must all hold."""

    def __init__(self, conditions: Sequence[JSONObject], compiler: Compiler, names: OptionalVariables) -> None:
        from ..cel.types import BOOL

        self._compiled = [compiler.compile(one.get("expression") or "", names, (BOOL,)) for one in conditions]

    def matches(self, evaluation: Evaluation) -> bool:
        """
        Return whether all conditions are true. A false condition takes precedence over errors of other conditions.

        @raise MatchConditionError: A condition failed to evaluate, and none is false.
        """
        outcomes = []
        try:
            for compiled in self._compiled:
                outcomes.append(evaluation.run(compiled))
        except CostBudgetExceeded as error:
            raise MatchConditionError(str(error)) from None
        if any(outcome.value is False for outcome in outcomes if not outcome.error):
            return False
        errors = list(dict.fromkeys(outcome.error for outcome in outcomes if outcome.error))
        if errors:
            raise MatchConditionError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        return True
