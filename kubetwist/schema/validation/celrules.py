"""
C{x-kubernetes-validations}: rules in CEL at any place of a structural schema, compiled once and run for every write.

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

#: The name of the type of C{self}.
SELF_TYPE: Final = "selfType"
#: The cost limit of one evaluation of one expression.
CALL_LIMIT: Final = 1_000_000
#: Maximum processor time, in seconds, of all rules of one object, beside their cost budget: the reference needs a
#: second for its budget.
RULES_SECONDS: Final = 2.0
#: Cost of an evaluation, and number of evaluations, after which the processor time is checked.
COSTLY: Final = 1000
EVALUATIONS: Final = 256
#: Bytes that a message may have which an expression makes.
MAX_MESSAGE: Final = 5 * 1024
NO_BUDGET: Final = "due to running out of cost budget, no further validation rules will be run"
_NOT_BOOL: Final = "cel expression must evaluate to a bool"
_NOT_STRING: Final = "messageExpression must evaluate to a string"
NO_MORE: Final = "no further validation rules will be run due to call cost exceeds limit for"


class Correlated(Protocol):
    """A value and the one that it replaces: L{kubetwist.schema.validation.validator.Correlation}."""

    @property
    def unchanged(self) -> bool:
        """Return whether the two are the same."""

    def field(self, name: str) -> Correlated | None:
        """Return the two values of a field, where both have it."""

    def item(self, index: int) -> Correlated | None:
        """Return the old and the new value of an item; only lists of type map can pair them."""


@frozen
class CompiledRule:
    """
    A compiled rule, or the error of its compilation.

    @ivar rule: Its entry in the schema.
    @ivar program: L{None} for a rule without an expression, or with C{error}.
    @ivar error: The error of the rule's compilation.
    @ivar uses_old_self: It is about changes.
    @ivar message: Computes the message of a failure; L{None} without one, or with C{message_error}.
    @ivar field_path: The path at which failures are reported, below the rule's place: C{"spec.x"}; C{""} for the place.
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
        """Return whether a rule about changes is run for new values, too."""
        return bool(self.rule.get("optionalOldSelf"))

    @property
    def description(self) -> str:
        """Return the rule as failures of its evaluation name it."""
        return str(self.rule.get("message") or self.rule.get("rule") or "").strip()


def compile_rules(schema: JSONObject, rules: Sequence[JSONObject], declaration: DeclType) -> list[CompiledRule]:
    """Return the rules of one place, without those below."""
    return [_compiled(schema, rule, declaration) for rule in rules]


def _compiled(schema: JSONObject, rule: JSONObject, declaration: DeclType) -> CompiledRule:
    text = rule.get("rule") or ""
    if not text.strip():
        return CompiledRule(rule)
    environment = environment_of(declaration, optional=bool(rule.get("optionalOldSelf")))
    try:
        program = environment.compile(text)
    except ProgramError as error:
        why = f"program instantiation failed: {error}" if error.output_type == BOOL else _NOT_BOOL
        return CompiledRule(rule, error=why)
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


def environment_of(declaration: DeclType, *, optional: bool) -> Environment:
    """Return the variables of the rules at a place: C{self}, and C{oldSelf}, which may be an optional value."""
    mine = declaration.type
    return _base().extend({"self": mine, "oldSelf": optional_of(mine) if optional else mine})


# --- the tree of rules


@define
class _Run:
    """
    One validation.

    @ivar budget: The remaining cost; below zero, no rule is evaluated.
    @ivar deadline: The end of the evaluation, in processor time of this thread; 0 before the first check.
    @ivar evaluated: Number of evaluations since the last check of the time.
    """

    budget: int
    causes: list[FieldError]
    deadline: float = 0.0
    evaluated: int = 0

    def late(self, cost: int) -> bool:
        """
        Return whether the rules of this object have exceeded their time.

        @param cost: Cost of the last evaluation.
        """
        self.evaluated += 1
        if cost <= COSTLY and self.evaluated < EVALUATIONS:
            return False
        self.evaluated = 0
        now = thread_time()
        # The validation of most objects ends before the first check.
        self.deadline = self.deadline or now + RULES_SECONDS
        return now > self.deadline


@frozen
class _Ratchet:
    """
    The relation of a place to the object being replaced: an unchanged place may go on breaking rules.

    @ivar current: This place's values; L{None} where there is nothing to compare.
    @ivar nearest: Of the nearest place above that can be compared.
    """

    current: Correlated | None = None
    nearest: Correlated | None = None

    @property
    def tolerates(self) -> bool:
        """Return whether what fails here was there before."""
        if self.current is not None:
            return self.current.unchanged
        return self.nearest is not None and self.nearest.unchanged

    def field(self, name: str) -> _Ratchet:
        """Return the state for a field."""
        if self.current is None:
            return self
        if self.nearest is None and name in ("apiVersion", "kind"):
            # Old and new are converted to the same version, so their changes cannot be seen.
            return _Ratchet()
        return _Ratchet(self.current.field(name), self.current)

    def item(self, index: int) -> _Ratchet:
        """Return the state for an item."""
        return self if self.current is None else _Ratchet(self.current.item(index), self.current)


class RuleTree:
    """The rules of a schema, and of all that is below it."""

    def __init__(self, schema: JSONObject, rules: list[CompiledRule], declaration: DeclType) -> None:
        self._kind: str = schema.get("type") or ""
        self._rules = rules
        self._declaration = declaration
        self._needs_old = any(rule.uses_old_self for rule in rules)
        self._keys: tuple[str, ...] = ()
        if schema.get("x-kubernetes-list-type") == "map":
            self._keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self._all_of: list[RuleTree] = []
        self._items: RuleTree | None = None
        self._additional: RuleTree | None = None
        self._properties: dict[str, RuleTree] = {}

    @classmethod
    def of(cls, schema: JSONObject, *, root: bool) -> RuleTree | None:
        """
        Compile all rules of a schema; L{None} when it has none.

        @param root: Whether it is that of a resource, whose name and kind rules may speak of.
        """
        if not has_rules(schema):
            return None
        declaration = schema_decl_type(schema, SELF_TYPE, root)
        return None if declaration is None else cls._made(schema, schema, declaration)

    @classmethod
    def _made(cls, rules: JSONObject, schema: JSONObject, declaration: DeclType) -> RuleTree | None:
        """
        @param rules: The schema whose rules count: C{schema}, or a part of its C{allOf}.
        """
        own = compile_rules(schema, rules.get("x-kubernetes-validations") or (), declaration)
        tree = cls(schema, own, declaration)
        items, inner = rules.get("items"), schema.get("items")
        if isinstance(items, dict) and isinstance(inner, dict) and declaration.element is not None:
            tree._items = cls._made(items, inner, declaration.element)
        for name, part in (rules.get("properties") or {}).items():
            inner = (schema.get("properties") or {}).get(name)
            if inner is None:
                continue  # Rules are for what the structure has, not for what only a condition speaks of.
            identifier = escape(name)
            if identifier is not None:
                field = (declaration.fields or {}).get(identifier)
            else:
                # Rules above cannot speak of it, but its own can.
                field = schema_decl_type(inner, SELF_TYPE, bool(inner.get("x-kubernetes-embedded-resource")))
            if field is not None:
                made = cls._made(part, inner, field)
                if made is not None:
                    tree._properties[name] = made
        additional, inner = rules.get("additionalProperties"), schema.get("additionalProperties")
        if isinstance(additional, dict) and isinstance(inner, dict) and declaration.element is not None:
            tree._additional = cls._made(additional, inner, declaration.element)
        for part in rules.get("allOf") or ():
            made = cls._made(part, schema, declaration)
            if made is not None:
                tree._all_of.append(made)
        return tree if own or tree._items or tree._additional or tree._properties or tree._all_of else None

    def causes(
        self,
        value: JSONValue,
        old: JSONValue,
        path: str = "",
        correlation: Correlated | None = None,
        budget: int = RULES_BUDGET,
    ) -> tuple[list[FieldError], int]:
        """
        Run all rules.

        @param value: The value of the place the tree was made for.
        @param old: The value before; L{None} where there was none.
        @param correlation: Of the whole of both, in an update: what failed before may go on failing, and is
            L{RatchetedError}.
        @return: The failures, and the remaining budget; if it is negative, not all rules were evaluated.
        """
        run = _Run(budget, [])
        self._visit(run, value, old, path, _Ratchet(correlation))
        return run.causes, run.budget

    def _visit(self, run: _Run, value: JSONValue, old: JSONValue, path: str, ratchet: _Ratchet) -> None:
        if value is None:
            return
        if self._rules:
            self._evaluate(run, value, old, path, ratchet)
        for tree in self._all_of:
            if run.budget < 0:
                return
            tree._visit(run, value, old, path, _Ratchet(None, ratchet.nearest))
        if isinstance(value, dict):
            self._visit_fields(run, value, old if isinstance(old, dict) else {}, path, ratchet)
        elif isinstance(value, list) and self._items is not None:
            before = self._by_keys(old)
            for index, item in enumerate(value):
                if run.budget < 0:
                    return
                was = before.get(self._key(item)) if before else None
                self._items._visit(run, item, was, f"{path}[{index}]", ratchet.item(index))

    def _visit_fields(self, run: _Run, value: JSONObject, old: JSONObject, path: str, ratchet: _Ratchet) -> None:
        if self._additional is not None:
            for name, part in value.items():
                if run.budget < 0:
                    return
                self._additional._visit(run, part, old.get(name), f"{path}[{name}]", ratchet.field(name))
        for name, tree in self._properties.items():
            if run.budget < 0:
                return
            if name in value:
                tree._visit(run, value[name], old.get(name), child_path(path, name), ratchet.field(name))

    def _by_keys(self, old: JSONValue) -> dict[JSONValue, JSONValue]:
        if not self._keys or not isinstance(old, list):
            return {}
        found: dict[JSONValue, JSONValue] = {}
        for item in old:
            found.setdefault(self._key(item), item)
        return found

    def _key(self, item: JSONValue) -> JSONValue:
        if not isinstance(item, dict):
            return None
        # 1 and true are different keys, though Python thinks otherwise.
        return tuple((type(item.get(name)).__name__, item.get(name)) for name in self._keys)

    # --- one place

    def _evaluate(self, run: _Run, value: JSONValue, old: JSONValue, path: str, ratchet: _Ratchet) -> None:
        where = path or "<nil>"
        if run.budget <= 0:
            run.causes.append(invalid(where, self._kind, f"validation failed {NO_BUDGET}"))
            run.budget = -1
            return
        wrap = self._declaration.to_cel
        itself = wrap(value)
        before = wrap(old) if self._needs_old and old is not None else None
        for rule in self._rules:
            if rule.error:
                run.causes.append(invalid(where, self._kind, f"rule compile error: {rule.error}"))
                continue
            if rule.program is None or (rule.uses_old_self and old is None and not rule.optional):
                continue
            variables = {"self": itself}
            if rule.uses_old_self and old is not None:
                variables["oldSelf"] = before
            seen = variables
            if rule.optional:
                seen = {"self": itself, "oldSelf": NONE if old is None else Optional(before)}
            if not self._holds(run, rule, seen, where):
                # As in the reference, messages use the old value itself, even if rules use an optional one.
                self._tell(run, rule, variables, value, path, ratchet)
            if run.budget < 0:
                return

    def _holds(self, run: _Run, rule: CompiledRule, variables: dict[str, Value], where: str) -> bool:
        """Return whether a rule holds; evaluation errors are reported here and count as holding."""
        assert rule.program is not None
        try:
            result, cost = rule.program.evaluate(variables, cost_limit=CALL_LIMIT)
        except EvaluationError as error:
            if not self._pay(run, error.cost, where):
                return True
            why = str(error)
            if why.startswith("no such overload"):
                text = (
                    f"'{why}': call arguments did not match a supported operator, function or macro signature for"
                    f" rule: {rule.description}"
                )
            elif error.cost_exceeded or error.interrupted:
                # The error of the time limit is the one of the cost budget.
                text = f"'{CostLimitExceeded().message}': {NO_MORE} rule: {rule.description}"
                run.budget = -1
            else:
                text = f"{why} evaluating rule: {rule.description}"
            run.causes.append(invalid(where, self._kind, text))
            return True
        return not self._pay(run, cost, where) or result is True

    def _pay(self, run: _Run, cost: int, where: str) -> bool:
        if cost > run.budget or run.late(cost):
            run.causes.append(invalid(where, self._kind, f"validation failed {NO_BUDGET}"))
            run.budget = -1
            return False
        run.budget -= cost
        return True

    def _tell(
        self, run: _Run, rule: CompiledRule, variables: dict[str, Value], value: JSONValue, path: str, ratchet: _Ratchet
    ) -> None:
        """Report that a rule does not hold, with its own message."""
        where = (child_path(path, rule.field_path) if rule.field_path else path) or "<nil>"
        tolerated = not rule.uses_old_self and ratchet.tolerates
        over = ""
        text: str | None = None
        if rule.message is not None:
            text, over = self._message(run, rule, variables)
        if over:
            cause = invalid(where, self._kind, over)
        else:
            if text is None:
                text = str(rule.rule.get("message") or "").strip() or f"failed rule: {rule.description}"
            shown = () if self._kind in ("object", "array") else (value,)
            cause = _cause(where, shown, text, rule.rule.get("reason"))
        run.causes.append(RatchetedError(cause.reason, cause.message, cause.field) if tolerated else cause)

    def _message(self, run: _Run, rule: CompiledRule, variables: dict[str, Value]) -> tuple[str | None, str]:
        """Return the message of an expression, if it is valid, and the error that stops the evaluation, if any."""
        assert rule.message is not None
        why = ""
        try:
            text, cost = rule.message.evaluate(variables, cost_limit=CALL_LIMIT)
        except EvaluationError as error:
            text, cost = "", error.cost
            if error.cost_exceeded or error.interrupted:
                source = rule.rule["messageExpression"]
                why = f'{NO_MORE} messageExpression: "{source}"'
        if cost > run.budget or run.late(cost):
            why = f"messageExpression evaluation failed {NO_BUDGET}"
        if why:
            run.budget = -1
            return None, why
        run.budget -= cost
        text = text.strip() if isinstance(text, str) else ""
        if not text or "\n" in text or len(text.encode()) > MAX_MESSAGE:
            return None, ""
        return text, ""


def _cause(path: str, shown: tuple[JSONValue, ...], text: str, reason: str | None) -> FieldError:
    """
    Return the error type for the reason that the rule gives.

    @param shown: The value, or nothing where it is too large to be shown.
    """
    if reason == "FieldValueForbidden":
        return forbidden(path, text)
    if reason == "FieldValueRequired":
        return required(path, text)
    if reason == "FieldValueDuplicate":
        return duplicate(path, shown[0]) if shown else FieldError("FieldValueDuplicate", "Duplicate value", path)
    return invalid(path, shown[0], text) if shown else FieldError("FieldValueInvalid", f"Invalid value: {text}", path)
