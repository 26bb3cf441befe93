"""
CEL rules of structural schemas (C{x-kubernetes-validations}), compiled once and evaluated for every write.

@see: kubernetes/apiextensions-apiserver, C{pkg/apiserver/schema/cel}: C{compilation.go}, C{validation.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from time import thread_time
from typing import Final, Protocol

from attrs import define, frozen

from ...api.errors import (
    FieldError,
    RatchetedError,
    duplicate,
    forbidden,
    invalid,
    required,
)
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ...cel.ast import (
    Ident,
    walk,
)
from ...cel.environment import (
    Environment,
    Program,
)
from ...cel.errors import (
    CompileErrors,
    CostLimitExceeded,
    EvaluationError,
    ProgramError,
)
from ...cel.names import escape
from ...cel.schemas import (
    DeclType,
    schema_decl_type,
)
from ...cel.types import (
    BOOL,
    STRING,
    optional_of,
)
from ...cel.values import (
    NONE,
    Optional,
    Value,
)
from .listrules import child_path
from .rulepaths import (
    RULES_BUDGET,
    has_rules,
    valid_field_path,
)

#: Name of the type of C{self}.
SELF_TYPE: Final = "selfType"
#: The cost limit of one evaluation of one expression.
PER_CALL_LIMIT: Final = 1_000_000
#: Maximum processor time, in seconds, of all rules of one object; kube-apiserver needs about a second for the cost
#: budget.
RULES_TIMEOUT: Final = 2.0
#: Cost of an evaluation, and number of evaluations, after which the processor time is checked.
EXPENSIVE_EVALUATION_COST: Final = 1000
EVALUATIONS_PER_TIME_CHECK: Final = 256
#: Maximum size, in bytes, of the result of a messageExpression.
MAX_MESSAGE_SIZE: Final = 5 * 1024
NO_BUDGET: Final = "due to running out of cost budget, no further validation rules will be run"
_NOT_BOOL: Final = "cel expression must evaluate to a bool"
_NOT_STRING: Final = "messageExpression must evaluate to a string"
NO_MORE: Final = "no further validation rules will be run due to call cost exceeds limit for"


class CorrelatedObjectLike(Protocol):
    """A value and the old value that it replaces; see L{kubetwist.schema.validation.correlation.CorrelatedObject}."""

    @property
    def unchanged(self) -> bool:
        """Return whether both values are equal."""

    def key(self, name: str) -> CorrelatedObjectLike | None:
        """Return the values of a field, or C{None} if they cannot be correlated."""

    def index(self, index: int) -> CorrelatedObjectLike | None:
        """Return the values of a list item, or C{None} if they cannot be correlated."""


@frozen
class CompiledRule:
    """
    A compiled rule, or the error of its compilation.

    @ivar rule: The entry in the schema.
    @ivar program: The compiled expression; L{None} for a rule without an expression, or with C{error}.
    @ivar error: The error of the compilation.
    @ivar uses_old_self: Whether it is a transition rule.
    @ivar message: The compiled messageExpression; L{None} without one, or with C{message_error}.
    @ivar field_path: The path of failures relative to the schema of the rule: C{"spec.x"}; C{""} for the value itself.
    """

    rule: JSONObject
    program: Program | None = None
    error: str = ""
    uses_old_self: bool = False
    message: Program | None = None
    message_error: str = ""
    field_path: str = ""

    @property
    def optional(self) -> bool:
        """Return whether a transition rule is evaluated for new values, too."""
        return bool(self.rule.get("optionalOldSelf"))

    @property
    def description(self) -> str:
        """Return the description of the rule in errors of its evaluation."""
        return str(self.rule.get("message") or self.rule.get("rule") or "").strip()


def compile_rules(schema: JSONObject, rules: Sequence[JSONObject], decl_type: DeclType) -> list[CompiledRule]:
    """Compile the rules of one schema, but not of nested schemas."""
    return [_compiled(schema, rule, decl_type) for rule in rules]


def _compiled(schema: JSONObject, rule: JSONObject, decl_type: DeclType) -> CompiledRule:
    text = rule.get("rule") or ""
    if not text.strip():
        return CompiledRule(rule)
    environment = environment_of(decl_type, optional=bool(rule.get("optionalOldSelf")))
    try:
        program = environment.compile(text)
    except ProgramError as error:
        reason = f"program instantiation failed: {error}" if error.output_type == BOOL else _NOT_BOOL
        return CompiledRule(rule, error=reason)
    except CompileErrors as error:
        return CompiledRule(rule, error=f"compilation failed: {error}")
    if program.output_type != BOOL:
        return CompiledRule(rule, error=_NOT_BOOL)
    message, message_error = None, ""
    message_text = rule.get("messageExpression")
    if message_text:
        try:
            message = environment.compile(message_text)
        except ProgramError as error:
            message_error = _NOT_STRING
            if error.output_type == STRING:
                message_error = f"messageExpression instantiation failed: {error}"
        except CompileErrors as error:
            message_error = f"messageExpression compilation failed: {error}"
        else:
            if message.output_type != STRING:
                message, message_error = None, _NOT_STRING
    path = ""
    if rule.get("fieldPath"):
        try:
            path = valid_field_path(rule["fieldPath"], schema)
        except ValueError:
            path = ""
    return CompiledRule(
        rule,
        program,
        uses_old_self=any(isinstance(node, Ident) and node.name == "oldSelf" for node in walk(program.checked.root)),
        message=message,
        message_error=message_error,
        field_path=path,
    )


@cache
def _base() -> Environment:
    from ...cel.library.environments import kubernetes_environment

    return kubernetes_environment()


def environment_of(decl_type: DeclType, *, optional: bool) -> Environment:
    """Return the environment of rules, with the variables C{self} and C{oldSelf}, which may be an optional value."""
    self_type = decl_type.type
    return _base().extend({"self": self_type, "oldSelf": optional_of(self_type) if optional else self_type})


# --- validation


@define
class _Run:
    """
    State of the validation of one object.

    @ivar budget: The remaining cost; if it is negative, no further rule is evaluated.
    @ivar causes: The errors.
    @ivar deadline: The deadline, in processor time of this thread; 0 before the first check.
    @ivar evaluated: Number of evaluations since the last check of the time.
    """

    budget: int
    causes: list[FieldError]
    deadline: float = 0.0
    evaluated: int = 0

    def has_timed_out(self, cost: int) -> bool:
        """
        Return whether the rules of the object have exceeded their time.

        @param cost: Cost of the last evaluation.
        """
        self.evaluated += 1
        if cost <= EXPENSIVE_EVALUATION_COST and self.evaluated < EVALUATIONS_PER_TIME_CHECK:
            return False
        self.evaluated = 0
        now = thread_time()
        # The validation of most objects ends before the first check.
        self.deadline = self.deadline or now + RULES_TIMEOUT
        return now > self.deadline


@frozen
class RatchetingOptions:
    """
    Correlation with the old object: failures of unchanged values are tolerated (ratcheting).

    @ivar current_correlation: The correlation of the current value; L{None} if it cannot be correlated.
    @ivar nearest_parent_correlation: The correlation of the nearest parent that can be correlated.
    """

    current_correlation: CorrelatedObjectLike | None = None
    nearest_parent_correlation: CorrelatedObjectLike | None = None

    @property
    def should_ratchet_error(self) -> bool:
        """Return whether the current value, or else its nearest correlated parent, is unchanged."""
        if self.current_correlation is not None:
            return self.current_correlation.unchanged
        return self.nearest_parent_correlation is not None and self.nearest_parent_correlation.unchanged

    def key(self, name: str) -> RatchetingOptions:
        """Return the options for a field."""
        if self.current_correlation is None:
            return self
        if self.nearest_parent_correlation is None and name in ("apiVersion", "kind"):
            # Both objects were converted to the same version, so that changes of these fields are not visible.
            return RatchetingOptions()
        return RatchetingOptions(self.current_correlation.key(name), self.current_correlation)

    def index(self, index: int) -> RatchetingOptions:
        """Return the options for a list item."""
        return (
            self
            if self.current_correlation is None
            else RatchetingOptions(self.current_correlation.index(index), self.current_correlation)
        )


class CELValidator:
    """Validator of the rules of a schema and its nested schemas."""

    def __init__(self, schema: JSONObject, rules: list[CompiledRule], decl_type: DeclType) -> None:
        self._kind: str = schema.get("type") or ""
        self._rules = rules
        self._decl_type = decl_type
        self._needs_old = any(rule.uses_old_self for rule in rules)
        self._keys: tuple[str, ...] = ()
        if schema.get("x-kubernetes-list-type") == "map":
            self._keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self._all_of: list[CELValidator] = []
        self._items: CELValidator | None = None
        self._additional: CELValidator | None = None
        self._properties: dict[str, CELValidator] = {}

    @classmethod
    def of(cls, schema: JSONObject, *, root: bool) -> CELValidator | None:
        """
        Compile all rules of a schema; return L{None} if it has none.

        @param root: Whether it is the schema of a resource, whose rules may use kind, apiVersion and metadata.
        """
        if not has_rules(schema):
            return None
        decl_type = schema_decl_type(schema, SELF_TYPE, root)
        return None if decl_type is None else cls._build(schema, schema, decl_type)

    @classmethod
    def _build(cls, rules: JSONObject, schema: JSONObject, decl_type: DeclType) -> CELValidator | None:
        """
        @param rules: The schema that has the rules: C{schema} or a part of its C{allOf}.
        @param schema: The structural schema of the value.
        @param decl_type: The CEL type of the schema.
        """
        own_rules = compile_rules(schema, rules.get("x-kubernetes-validations") or (), decl_type)
        tree = cls(schema, own_rules, decl_type)
        items, subschema = rules.get("items"), schema.get("items")
        if isinstance(items, dict) and isinstance(subschema, dict) and decl_type.element is not None:
            tree._items = cls._build(items, subschema, decl_type.element)
        for name, part_rules in (rules.get("properties") or {}).items():
            subschema = (schema.get("properties") or {}).get(name)
            if subschema is None:
                continue  # Rules below allOf need a schema in the structure.
            identifier = escape(name)
            if identifier is not None:
                field = (decl_type.fields or {}).get(identifier)
            else:
                # Rules of the enclosing schema cannot name the field, but the field may have rules.
                field = schema_decl_type(subschema, SELF_TYPE, bool(subschema.get("x-kubernetes-embedded-resource")))
            if field is not None:
                child = cls._build(part_rules, subschema, field)
                if child is not None:
                    tree._properties[name] = child
        additional, subschema = rules.get("additionalProperties"), schema.get("additionalProperties")
        if isinstance(additional, dict) and isinstance(subschema, dict) and decl_type.element is not None:
            tree._additional = cls._build(additional, subschema, decl_type.element)
        for part_rules in rules.get("allOf") or ():
            child = cls._build(part_rules, schema, decl_type)
            if child is not None:
                tree._all_of.append(child)
        return tree if own_rules or tree._items or tree._additional or tree._properties or tree._all_of else None

    def validate(
        self,
        value: JSONValue,
        old: JSONValue,
        path: str = "",
        correlation: CorrelatedObjectLike | None = None,
        budget: int = RULES_BUDGET,
    ) -> tuple[list[FieldError], int]:
        """
        Evaluate all rules.

        @param value: The value.
        @param old: The old value; L{None} without one.
        @param path: The path of the value.
        @param correlation: In updates, the correlation of both values: failures of unchanged values are
            L{RatchetedError}.
        @param budget: The cost budget.
        @return: The errors, and the remaining budget; if it is negative, not all rules were evaluated.
        """
        run = _Run(budget, [])
        self._visit(run, value, old, path, RatchetingOptions(correlation))
        return run.causes, run.budget

    def _visit(self, run: _Run, value: JSONValue, old: JSONValue, path: str, ratchet: RatchetingOptions) -> None:
        if value is None:
            return
        if self._rules:
            self._evaluate(run, value, old, path, ratchet)
        for tree in self._all_of:
            if run.budget < 0:
                return
            tree._visit(run, value, old, path, RatchetingOptions(None, ratchet.nearest_parent_correlation))
        if isinstance(value, dict):
            self._visit_fields(run, value, old if isinstance(old, dict) else {}, path, ratchet)
        elif isinstance(value, list) and self._items is not None:
            old_items = self._by_keys(old)
            for index, item in enumerate(value):
                if run.budget < 0:
                    return
                old_item = old_items.get(self._key(item)) if old_items else None
                self._items._visit(run, item, old_item, f"{path}[{index}]", ratchet.index(index))

    def _visit_fields(
        self, run: _Run, value: JSONObject, old: JSONObject, path: str, ratchet: RatchetingOptions
    ) -> None:
        if self._additional is not None:
            for name, field_value in value.items():
                if run.budget < 0:
                    return
                self._additional._visit(run, field_value, old.get(name), f"{path}[{name}]", ratchet.key(name))
        for name, tree in self._properties.items():
            if run.budget < 0:
                return
            if name in value:
                tree._visit(run, value[name], old.get(name), child_path(path, name), ratchet.key(name))

    def _by_keys(self, old: JSONValue) -> dict[JSONValue, JSONValue]:
        if not self._keys or not isinstance(old, list):
            return {}
        items_by_key: dict[JSONValue, JSONValue] = {}
        for item in old:
            items_by_key.setdefault(self._key(item), item)
        return items_by_key

    def _key(self, item: JSONValue) -> JSONValue:
        if not isinstance(item, dict):
            return None
        # The type distinguishes 1 from true.
        return tuple((type(item.get(name)).__name__, item.get(name)) for name in self._keys)

    # --- rules of one schema

    def _evaluate(self, run: _Run, value: JSONValue, old: JSONValue, path: str, ratchet: RatchetingOptions) -> None:
        field_path = path or "<nil>"
        if run.budget <= 0:
            run.causes.append(invalid(field_path, self._kind, f"validation failed {NO_BUDGET}"))
            run.budget = -1
            return
        to_cel = self._decl_type.to_cel
        self_value = to_cel(value)
        old_self = to_cel(old) if self._needs_old and old is not None else None
        for rule in self._rules:
            if rule.error:
                run.causes.append(invalid(field_path, self._kind, f"rule compile error: {rule.error}"))
                continue
            if rule.program is None or (rule.uses_old_self and old is None and not rule.optional):
                continue
            variables = {"self": self_value}
            if rule.uses_old_self and old is not None:
                variables["oldSelf"] = old_self
            rule_variables = variables
            if rule.optional:
                rule_variables = {"self": self_value, "oldSelf": NONE if old is None else Optional(old_self)}
            if not self._holds(run, rule, rule_variables, field_path):
                # As in kube-apiserver, oldSelf in messages is the plain value, even if it is optional in rules.
                self._report_failure(run, rule, variables, value, path, ratchet)
            if run.budget < 0:
                return

    def _holds(self, run: _Run, rule: CompiledRule, variables: dict[str, Value], field_path: str) -> bool:
        """Return whether a rule holds; an evaluation error is reported and counts as true."""
        assert rule.program is not None
        try:
            result, cost = rule.program.evaluate(variables, cost_limit=PER_CALL_LIMIT)
        except EvaluationError as error:
            if not self._spend_budget(run, error.cost, field_path):
                return True
            reason = str(error)
            if reason.startswith("no such overload"):
                text = (
                    f"'{reason}': call arguments did not match a supported operator, function or macro signature for"
                    f" rule: {rule.description}"
                )
            elif error.cost_exceeded or error.interrupted:
                # The time limit has the same error as the cost limit.
                text = f"'{CostLimitExceeded().message}': {NO_MORE} rule: {rule.description}"
                run.budget = -1
            else:
                text = f"{reason} evaluating rule: {rule.description}"
            run.causes.append(invalid(field_path, self._kind, text))
            return True
        return not self._spend_budget(run, cost, field_path) or result is True

    def _spend_budget(self, run: _Run, cost: int, field_path: str) -> bool:
        if cost > run.budget or run.has_timed_out(cost):
            run.causes.append(invalid(field_path, self._kind, f"validation failed {NO_BUDGET}"))
            run.budget = -1
            return False
        run.budget -= cost
        return True

    def _report_failure(
        self,
        run: _Run,
        rule: CompiledRule,
        variables: dict[str, Value],
        value: JSONValue,
        path: str,
        ratchet: RatchetingOptions,
    ) -> None:
        """
        Report that a rule does not hold.

        @param run: The state of the validation.
        @param rule: The rule.
        @param variables: The variables of the messageExpression.
        @param value: The value.
        @param path: The path of the value.
        @param ratchet: Decides whether the failure is tolerated.
        """
        field_path = (child_path(path, rule.field_path) if rule.field_path else path) or "<nil>"
        is_ratcheted = not rule.uses_old_self and ratchet.should_ratchet_error
        budget_error = ""
        text: str | None = None
        if rule.message is not None:
            text, budget_error = self._message(run, rule, variables)
        if budget_error:
            cause = invalid(field_path, self._kind, budget_error)
        else:
            if text is None:
                text = str(rule.rule.get("message") or "").strip() or f"failed rule: {rule.description}"
            bad_value = () if self._kind in ("object", "array") else (value,)
            reason = rule.rule.get("reason")
            # Before, the message contained the type instead of the value.
            earlier = _cause(field_path, (self._kind,), text, reason)
            cause = _cause(field_path, bad_value, text, reason).since(1, 35, earlier)
        run.causes.append(RatchetedError.of(cause) if is_ratcheted else cause)

    def _message(self, run: _Run, rule: CompiledRule, variables: dict[str, Value]) -> tuple[str | None, str]:
        """Return the result of the messageExpression, or L{None}, and the error of an exceeded limit, or C{""}."""
        assert rule.message is not None
        reason = ""
        try:
            text, cost = rule.message.evaluate(variables, cost_limit=PER_CALL_LIMIT)
        except EvaluationError as error:
            text, cost = "", error.cost
            if error.cost_exceeded or error.interrupted:
                source = rule.rule["messageExpression"]
                reason = f'{NO_MORE} messageExpression: "{source}"'
        if cost > run.budget or run.has_timed_out(cost):
            reason = f"messageExpression evaluation failed {NO_BUDGET}"
        if reason:
            run.budget = -1
            return None, reason
        run.budget -= cost
        text = text.strip() if isinstance(text, str) else ""
        if not text or "\n" in text or len(text.encode()) > MAX_MESSAGE_SIZE:
            return None, ""
        return text, ""


def _cause(path: str, bad_value: tuple[JSONValue, ...], text: str, reason: str | None) -> FieldError:
    """
    Return the error with the reason of the rule.

    @param path: The path of the value.
    @param bad_value: The value for the message; empty for objects and arrays.
    @param text: The message.
    @param reason: The C{reason} of the rule.
    """
    if reason == "FieldValueForbidden":
        return forbidden(path, text)
    if reason == "FieldValueRequired":
        return required(path, text)
    if reason == "FieldValueDuplicate":
        return (
            duplicate(path, bad_value[0]) if bad_value else FieldError("FieldValueDuplicate", "Duplicate value", path)
        )
    return (
        invalid(path, bad_value[0], text)
        if bad_value
        else FieldError("FieldValueInvalid", f"Invalid value: {text}", path)
    )
