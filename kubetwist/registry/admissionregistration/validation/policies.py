"""
Validation of admission policies and bindings.

See kubernetes, C{pkg/apis/admissionregistration/validation/validation.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ....admission.expressions import Compiler, OptionalVariables
from ....api.errors import FieldError, duplicate, forbidden, invalid, required
from ....api.names import (
    validate_c_identifier,
    validate_dns1035_label,
    validate_dns1123_subdomain,
    validate_path_segment_name,
    validate_qualified_name,
)
from ....api.resource import JSONObject
from ....cel.names import RESERVED
from ....cel.types import BOOL, NULL, STRING, Type
from ...generic.validation.conditions import conditions
from ...generic.validation.fields import (
    ErrorList,
    check,
    dns_subdomain,
    go_json,
    invalid_shown,
    label_selector,
    unsupported,
)
from .webhooks import check_conditions, check_rule

#: Maximum number of audit annotations of a policy, and maximum length of their expressions in bytes.
_MAX_ANNOTATIONS: Final = 20
_MAX_ANNOTATION_LENGTH: Final = 5 * 1024
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MUTATING_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_PATCH_TYPES: Final = {"JSONPatch": "jsonPatch", "ApplyConfiguration": "applyConfiguration"}


class _Expressions:
    """Compiles the expressions of a policy and reports compile errors."""

    def __init__(self, names: OptionalVariables, errors: ErrorList, *, composited: bool) -> None:
        """
        @param composited: Whether expressions may use C{variables}, which a validating policy without variables does
            not declare.
        """
        self.names = names
        self._compiler = Compiler(composited=composited)
        self._causes = errors

    def variable(self, name: str, text: str, path: str) -> None:
        """Declare a variable for the expressions that follow."""
        self._report(self._compiler.compile_and_store_variable(name, text, self.names).cause(path))

    def check(
        self, text: str, path: str, types: Sequence[Type], names: OptionalVariables | None = None, shown: str = ""
    ) -> None:
        """
        Check that an expression compiles and has one of the given types.

        @param shown: The value in the error, if it is not C{text}.
        """
        self._report(self._compiler.compile(text, names or self.names, types).cause(path, shown))

    def _report(self, field_error: FieldError | None) -> None:
        if field_error is not None:
            self._causes.append(field_error)


def validate_policy(obj: JSONObject, mutating: bool, old: JSONObject | None = None) -> list[FieldError]:
    """
    Validate an admission policy.

    @param old: The stored policy; L{None} on create.
    """
    errors: ErrorList = []
    spec = obj["spec"]
    policy = spec.get("failurePolicy")
    if policy is None:
        errors.append(required("spec.failurePolicy"))
    elif policy not in ("Fail", "Ignore"):
        errors.append(unsupported("spec.failurePolicy", policy, ("Fail", "Ignore")))
    if spec.get("paramKind") is not None:
        _validate_param_kind(spec["paramKind"], "spec.paramKind", errors)
    constraints = spec.get("matchConstraints")
    if constraints is None:
        errors.append(required("spec.matchConstraints"))
    else:
        _validate_match(constraints, "spec.matchConstraints", errors)
        if not constraints.get("resourceRules"):
            errors.append(required("spec.matchConstraints.resourceRules"))
        if mutating:
            _validate_operations(constraints, "spec.matchConstraints", errors)
    names = OptionalVariables(has_params=spec.get("paramKind") is not None)
    if old is None or not _same_conditions(spec, old["spec"]):
        check_conditions(spec.get("matchConditions") or [], "spec.matchConditions", errors, names)
    expressions = _Expressions(names, errors, composited=mutating or bool(spec.get("variables")))
    for index, variable in enumerate(spec.get("variables") or ()):
        _validate_variable(variable, f"spec.variables[{index}]", expressions, errors)
    if mutating:
        _validate_mutations(spec, expressions, errors)
    else:
        _validate_validations(spec, obj["metadata"].get("name") or "", expressions, errors)
    return errors


def _same_conditions(spec: JSONObject, old: JSONObject) -> bool:
    """Return whether the match conditions, and all that they depend on, are unchanged."""
    return all(spec.get(name) == old.get(name) for name in ("paramKind", "matchConditions"))


def _validate_validations(spec: JSONObject, name: str, expressions: _Expressions, errors: ErrorList) -> None:
    checks, notes = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not checks and not notes:
        text = "validations or auditAnnotations must contain at least one item"
        errors.append(required("spec.validations", text))
        errors.append(required("spec.auditAnnotations", text))
    for index, one in enumerate(checks):
        _validate_validation(one, f"spec.validations[{index}]", expressions, errors)
    if len(notes) > _MAX_ANNOTATIONS:
        text = f"must not have more than {_MAX_ANNOTATIONS} auditAnnotations"
        shown = [{"Key": one.get("key") or "", "ValueExpression": one.get("valueExpression") or ""} for one in notes]
        errors.append(invalid_shown("spec.auditAnnotations", go_json(shown), text))
    keys: set[str] = set()
    for index, one in enumerate(notes):
        path, key = f"spec.auditAnnotations[{index}]", one.get("key") or ""
        _validate_annotation(one, key, name, path, expressions, errors)
        if key in keys:
            errors.append(duplicate(f"{path}.key", key))
        keys.add(key)


def _validate_validation(one: JSONObject, path: str, expressions: _Expressions, errors: ErrorList) -> None:
    expression = one.get("expression") or ""
    if not expression.strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    else:
        expressions.check(expression, f"{path}.expression", (BOOL,))
    making = one.get("messageExpression") or ""
    if making and not making.strip():
        errors.append(invalid(f"{path}.messageExpression", making, "must be non-empty if specified"))
    elif making:
        names = OptionalVariables(has_params=expressions.names.has_params, has_authorizer=False)
        expressions.check(making, f"{path}.messageExpression", (STRING,), names)
    message = one.get("message") or ""
    if message and not message.strip():
        text = "must be non-empty if specified"
        errors.append(invalid(f"{path}.message", message, text).reworded(1, 34, f"message {text}"))
    elif "\n" in message.strip() or "\r" in message.strip():
        text = "must not contain line breaks"
        errors.append(invalid(f"{path}.message", message, text).reworded(1, 34, f"message {text}"))
    reason = one.get("reason")
    if reason is not None and reason not in _REASONS:
        errors.append(unsupported(f"{path}.reason", reason, _REASONS))


def _validate_annotation(
    one: JSONObject, key: str, name: str, path: str, expressions: _Expressions, errors: ErrorList
) -> None:
    if name:
        check(f"{name}/{key}", f"{path}.key", validate_qualified_name, errors)
    else:
        errors.append(invalid(f"{path}.key", key, "requires metadata.name be non-empty"))
    expression = one.get("valueExpression") or ""
    trimmed = expression.strip()
    field_path = f"{path}.valueExpression"
    if not trimmed:
        errors.append(required(field_path, "valueExpression is not specified"))
    elif len(trimmed.encode()) > _MAX_ANNOTATION_LENGTH:
        errors.append(required(field_path, f"must not exceed {_MAX_ANNOTATION_LENGTH} bytes in length"))
    else:
        expressions.check(trimmed, field_path, (STRING, NULL), shown=expression)


def _validate_mutations(spec: JSONObject, expressions: _Expressions, errors: ErrorList) -> None:
    if not spec.get("mutations"):
        errors.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, one in enumerate(spec.get("mutations") or ()):
        _validate_mutation(one, f"spec.mutations[{index}]", expressions, errors)
    again = spec.get("reinvocationPolicy")
    if not again:
        errors.append(required("spec.reinvocationPolicy"))
    elif again not in ("IfNeeded", "Never"):
        errors.append(unsupported("spec.reinvocationPolicy", again, ("IfNeeded", "Never")))


def _validate_mutation(one: JSONObject, path: str, expressions: _Expressions, errors: ErrorList) -> None:
    from ....cel.library.mutation import JSON_PATCHES_TYPE, OBJECT_TYPE

    kind = one.get("patchType") or ""
    if not kind:
        errors.append(required(f"{path}.patchType"))
        return
    if kind not in _PATCH_TYPES:
        errors.append(unsupported(f"{path}.patchType", kind, ("ApplyConfiguration", "JSONPatch")))
        return
    field = _PATCH_TYPES[kind]
    (other,) = set(_PATCH_TYPES.values()) - {field}
    if one.get(field) is None:
        errors.append(required(f"{path}.{field}", f"must be specified when patchType is {kind}"))
    else:
        expression = (one[field].get("expression") or "").strip()
        result_type = JSON_PATCHES_TYPE if kind == "JSONPatch" else OBJECT_TYPE
        names = OptionalVariables(has_params=expressions.names.has_params, has_patch_types=True)
        if not expression:
            errors.append(required(f"{path}.{field}.expression"))
        else:
            expressions.check(expression, f"{path}.{field}.expression", (result_type,), names)
    if one.get(other) is not None:
        errors.append(invalid(f"{path}.{other}", f"{{{other}}}", f"must not be specified when patchType is {kind}"))


def _validate_variable(variable: JSONObject, path: str, expressions: _Expressions, errors: ErrorList) -> None:
    name = variable.get("name") or ""
    if not name.strip():
        errors.append(required(f"{path}.name", "name is not specified"))
    elif validate_c_identifier(name) or name in RESERVED:
        field_error = invalid(f"{path}.name", name, "must be a valid CEL identifier")
        errors.append(field_error.reworded(1, 34, "name is not a valid CEL identifier"))
    expression = variable.get("expression") or ""
    if not expression.strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    else:
        expressions.variable(name, expression, f"{path}.expression")


def _validate_param_kind(kind: JSONObject, path: str, errors: ErrorList) -> None:
    text = kind.get("apiVersion") or ""
    field_path = f"{path}.apiVersion"
    if not text:
        errors.append(required(field_path))
    elif text.count("/") > 1:
        errors.append(invalid(field_path, text, f"unexpected GroupVersion string: {text}"))
    else:
        group, _, version = text.rpartition("/")
        problems = validate_dns1123_subdomain(group) if group else []
        if problems:
            errors.append(invalid(field_path, group, ",".join(problems)))
        problems = validate_dns1035_label(version)
        if not version:
            errors.append(invalid(field_path, text, "version must be specified"))
        elif problems:
            errors.append(invalid(field_path, version, ",".join(problems)))
    name = kind.get("kind") or ""
    if not name:
        errors.append(required(f"{path}.kind"))
    else:
        problems = validate_dns1035_label(name.lower())
        if problems:
            text = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            errors.append(invalid(f"{path}.kind", name, text))


def _validate_operations(resources: JSONObject, path: str, errors: ErrorList) -> None:
    """Return an error for mutations of DELETE requests."""
    for rule in resources.get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            if operation not in _MUTATING_OPERATIONS:
                field_path = f"{path}.resourceRules.operations"
                errors.append(unsupported(field_path, operation, _MUTATING_OPERATIONS))


def _validate_match(resources: JSONObject, path: str, errors: ErrorList) -> None:
    policy = resources.get("matchPolicy")
    if policy is not None and policy not in ("Equivalent", "Exact"):
        errors.append(unsupported(f"{path}.matchPolicy", policy, ("Equivalent", "Exact")))
    for field in ("namespaceSelector", "objectSelector"):
        if resources.get(field) is None:
            errors.append(required(f"{path}.{field}"))
        else:
            label_selector(resources[field], f"{path}.{field}", errors)
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(resources.get(field) or ()):
            names: set[str] = set()
            for place, name in enumerate(rule.get("resourceNames") or ()):
                field_path = f"{path}.{field}[{index}].resourceNames[{place}]"
                errors += [invalid(field_path, name, text) for text in validate_path_segment_name(name)]
                if name in names:
                    errors.append(duplicate(field_path, name))
                names.add(name)
            check_rule(rule, f"{path}.{field}[{index}]", errors)


def validate_policy_binding(obj: JSONObject, mutating: bool) -> list[FieldError]:
    """Validate a policy binding: policy name, parameters and validation actions."""
    errors: ErrorList = []
    spec = obj["spec"]
    name = spec.get("policyName") or ""
    if not name:
        errors.append(required("spec.policyName"))
    else:
        check(name, "spec.policyName", dns_subdomain, errors)
    if spec.get("paramRef") is not None:
        _validate_param_ref(spec["paramRef"], "spec.paramRef", errors)
    if spec.get("matchResources") is not None:
        _validate_match(spec["matchResources"], "spec.matchResources", errors)
    if mutating:
        _validate_operations(spec.get("matchResources") or {}, "spec.matchResources", errors)
        return errors
    _validate_actions(spec.get("validationActions") or [], "spec.validationActions", errors)
    return errors


def _validate_actions(actions: list[str], path: str, errors: ErrorList) -> None:
    seen: set[str] = set()
    for index, action in enumerate(actions):
        if action not in ("Audit", "Deny", "Warn"):
            errors.append(unsupported(f"{path}[{index}]", action, ("Audit", "Deny", "Warn")))
        if action in seen:
            errors.append(duplicate(f"{path}[{index}]", action))
        seen.add(action)
    if "Deny" in seen and "Warn" in seen:
        text = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        errors.append(invalid(path, actions, text))
    if not actions:
        errors.append(required(path, "at least one validation action is required"))


def _validate_param_ref(reference: JSONObject, path: str, errors: ErrorList) -> None:
    name, selector = reference.get("name") or "", reference.get("selector")
    both = "name and selector are mutually exclusive"
    if name:
        errors += [invalid(f"{path}.name", name, text) for text in validate_path_segment_name(name)]
        if selector is not None:
            errors.append(forbidden(f"{path}.name", both))
    if selector is not None:
        label_selector(selector, f"{path}.selector", errors)
        if name:
            errors.append(forbidden(f"{path}.selector", both))
    if not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction")
    if not action:
        errors.append(required(f"{path}.parameterNotFoundAction"))
    elif action not in ("Deny", "Allow"):
        errors.append(unsupported(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow")))


# --- the status --------------------------------------------------------------------------------------------------


def validate_policy_status(obj: JSONObject) -> list[FieldError]:
    """Validate the results of type checking, and the conditions."""
    errors: ErrorList = []
    status = obj.get("status") or {}
    for index, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        path = f"status.typeChecking.expressionWarnings[{index}]"
        if not warning.get("warning"):
            errors.append(required(f"{path}.warning"))
        if not (warning.get("fieldRef") or "").strip():
            errors.append(required(f"{path}.fieldRef"))
    conditions(status.get("conditions") or [], "status.conditions", errors)
    return errors
