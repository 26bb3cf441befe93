"""
Validation of the CEL rules in schemas of CRDs: syntax, compilation and estimated cost.

@see: kubernetes/apiextensions-apiserver, C{pkg/apis/apiextensions/validation}: C{validation.go}, C{cel_validation.go}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ....api.errors import FieldError, forbidden, go_json, internal, invalid, not_supported, required, valued
from ....api.resource import JSONObject
from ....schema.structuralrules import unsupported
from ....schema.validation.rulepaths import valid_field_path

if TYPE_CHECKING:
    from ....cel.schemas import DeclType
    from ....schema.validation.celrules import CompiledRule

#: Limits of the estimated cost: of one expression, and of all expressions of a schema.
COST_LIMIT: Final = 10_000_000
TOTAL_LIMIT: Final = 100_000_000
#: Maximum number of expensive expressions that are reported; each must use at least 1 % of the total limit.
MAX_REPORTED_EXPRESSIONS: Final = 4
REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_MAX_UINT64: Final = (1 << 64) - 1
_MAX_REQUEST: Final = 3 << 20


def validate_rules_syntax(schema: JSONObject, path: str) -> list[FieldError]:
    """Return the validation errors of the rules of one schema, without compiling their expressions."""
    errors: list[FieldError] = []
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        errors += _validate_rule_syntax(schema, rule, f"{path}.x-kubernetes-validations[{index}]")
    return errors


def _validate_rule_syntax(schema: JSONObject, rule: JSONObject, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    text, message = rule.get("rule") or "", rule.get("message") or ""
    if not text.strip():
        errors.append(required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        errors.append(_named(f"{path}.message", message, "must be non-empty if specified"))
    elif _has_lines(message.strip()):
        errors.append(_named(f"{path}.message", message, "must not contain line breaks"))
    elif _has_lines(text.strip()) and not message.strip():
        errors.append(required(f"{path}.message", "message must be specified if rule contains line breaks"))
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        errors.append(required(f"{path}.messageExpression", "messageExpression must be non-empty if specified"))
    reason = rule.get("reason")
    if reason is not None and reason not in REASONS:
        errors.append(not_supported(f"{path}.reason", reason, REASONS))
    field = rule.get("fieldPath") or ""
    if field:
        if not field.strip():
            errors.append(_named(f"{path}.fieldPath", field, "must be non-empty if specified"))
        if _has_lines(field):
            errors.append(_named(f"{path}.fieldPath", field, "must not contain line breaks"))
        if not unsupported(schema):
            try:
                valid_field_path(field, schema)
            except ValueError:
                errors.append(_named(f"{path}.fieldPath", field, "must be a valid path"))
    return errors


def _named(path: str, value: str, text: str) -> FieldError:
    """Return an error whose detail began with the name of the field before 1.34."""
    return invalid(path, value, text).reworded(1, 34, f"{path.rpartition('.')[2]} {text}")


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text


class RuleContext:
    """
    The position of rules in a schema.

    @ivar schema: The schema at this position.
    @ivar max_count: Maximum number of values at this position in an object, given the limits of outer lists and maps;
        L{None} without a limit.
    @ivar total: The cost of all rules of the whole schema.
    """

    def __init__(self, schema: JSONObject, parent: RuleContext | None = None, step: tuple[str, str] = ("", "")) -> None:
        """
        @param step: The step from C{parent} to this position: C{("properties", name)}, C{("items", "")} or
            C{("additionalProperties", "")}.
        """
        self.schema = schema
        self._parent = parent
        self._step = step
        self._inside: bool = bool(schema.get("x-kubernetes-validations")) or (parent is not None and parent._inside)
        self._declaration: DeclType | None = None
        self.total: TotalCost = TotalCost() if parent is None else parent.total
        self.max_count: int | None = 1 if parent is None else _product(parent.max_count, _elements(parent.schema))

    def below(self, schema: JSONObject, kind: str, name: str = "") -> RuleContext:
        """Return the context of a schema within this one."""
        return RuleContext(schema, self, (kind, name))

    @property
    def declaration(self) -> DeclType | None:
        """Return the CEL type of values at this position; L{None} if CEL has no type for them."""
        if self._declaration is None:
            self._declaration = self._found()
        return self._declaration

    def _found(self) -> DeclType | None:
        from ....cel.names import escape
        from ....cel.schemas import schema_decl_type
        from ....schema.validation.celrules import SELF_TYPE

        if self._parent is not None and self._parent._inside:
            above = self._parent.declaration
            if above is None:
                return None
            kind, name = self._step
            declaration = (above.fields or {}).get(escape(name) or "") if kind == "properties" else above.element
            if declaration is not None:
                return declaration
        root = self._parent is None or bool(self.schema.get("x-kubernetes-embedded-resource"))
        return schema_decl_type(self.schema, SELF_TYPE, root)


class TotalCost:
    """
    The estimated cost of all rules of a schema.

    @ivar sum: The sum, in CEL cost units.
    @ivar expressions: The most expensive expressions, with their paths.
    """

    def __init__(self) -> None:
        self.sum = 0
        self.expressions: list[tuple[int, str]] = []

    def add(self, path: str, cost: int) -> None:
        """Add the cost of an expression."""
        self.sum = min(self.sum + cost, _MAX_UINT64)
        if cost >= TOTAL_LIMIT // 100:
            self.expressions.append((cost, path))
            self.expressions.sort(key=lambda one: -one[0])
            del self.expressions[MAX_REPORTED_EXPRESSIONS:]

    def errors(self, path: str) -> list[FieldError]:
        """Return the errors for a total cost over the limit."""
        if self.sum <= TOTAL_LIMIT:
            return []
        text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        errors = [forbidden(field_path, text) for _, field_path in self.expressions]
        subject = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [*errors, forbidden(path, _too_expensive(subject, self.sum, TOTAL_LIMIT))]


def validate_compiled_rules(context: RuleContext, path: str, uncorrelated: str | None) -> list[FieldError]:
    """
    Validate the expressions at one position, whose schema is valid.

    @param uncorrelated: The schema, at or above this position, whose old and new items cannot be correlated.
    """
    from ....schema.validation.celrules import compile_rules

    field_path = f"{path}.x-kubernetes-validations"
    declaration = context.declaration
    if declaration is None:
        reason = "failed to construct type information for x-kubernetes-validations rules"
        problem = "unable to convert structural schema to CEL declarations"
        return [internal(field_path, f"internal error: {reason}: {problem}")]
    errors: list[FieldError] = []
    rules = compile_rules(context.schema, context.schema["x-kubernetes-validations"], declaration)
    for index, rule in enumerate(rules):
        errors += _validate_compiled_rule(rule, context, declaration, f"{field_path}[{index}]", uncorrelated)
    return errors


def _validate_compiled_rule(
    rule: CompiledRule,
    context: RuleContext,
    declaration: DeclType,
    path: str,
    uncorrelated: str | None,
) -> list[FieldError]:
    errors: list[FieldError] = []
    field_path = f"{path}.rule"
    cost = 0
    if rule.program is not None:
        once = rule.program.estimated_cost(declaration.size_of).max
        times = context.max_count if context.max_count is not None else _MAX_REQUEST // (declaration.min_size + 1)
        cost = min(once * times, _MAX_UINT64)
    if cost > COST_LIMIT:
        errors.append(forbidden(field_path, _too_expensive("estimated rule cost", cost, COST_LIMIT)))
    context.total.add(field_path, cost)
    if rule.error:
        errors.append(_wrong(field_path, rule, rule.error))
    field_path = f"{path}.messageExpression"
    if rule.message_error:
        errors.append(_wrong(field_path, rule, rule.message_error))
    elif rule.message is not None:
        cost = rule.message.estimated_cost(declaration.size_of).max
        if cost > COST_LIMIT:
            errors.append(forbidden(field_path, _too_expensive("estimated messageExpression cost", cost, COST_LIMIT)))
        context.total.add(field_path, cost)
    if rule.uses_old_self:
        if uncorrelated is not None:
            text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
            errors.append(invalid(f"{path}.rule", rule.rule["rule"], text))
    elif rule.rule.get("optionalOldSelf") is not None:
        text = "may not be set if oldSelf is not used in rule"
        errors.append(invalid(f"{path}.optionalOldSelf", rule.rule["optionalOldSelf"], text))
    return errors


def _wrong(path: str, compiled: CompiledRule, reason: str) -> FieldError:
    """Return the error of an invalid rule, which is quoted as Go prints it."""
    rule = compiled.rule
    shown = {
        "Rule": rule.get("rule") or "",
        "Message": rule.get("message") or "",
        "MessageExpression": rule.get("messageExpression") or "",
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    go_type = "apiextensions.ValidationRule"
    return valued("FieldValueInvalid", "Invalid value", path, rule, reason, go_type, go_json(shown))


def _too_expensive(subject: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        ratio = "more than 100x"
    elif factor < 1.5:
        ratio = f"{factor:f}x"
    else:
        ratio = f"{factor:.1f}x"
    return (
        f"{subject} exceeds budget by factor of {ratio} "
        "(try simplifying the rule, or adding maxItems, maxProperties, and "
        "maxLength where arrays, maps, and strings are declared)"
    )


def _elements(schema: JSONObject) -> int | None:
    """Return the maximum number of elements of a value; L{None} without a limit."""
    kind: Any = schema.get("type")
    limit: Any = 1
    if kind == "object" and schema.get("additionalProperties") is not None:
        limit = schema.get("maxProperties")
    elif kind == "array":
        limit = schema.get("maxItems")
    return None if limit is None else max(0, limit)


def _product(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one * other, _MAX_UINT64)
