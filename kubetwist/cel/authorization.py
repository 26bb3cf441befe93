"""
Match conditions of authorization webhooks: C{matchConditions} of C{AuthorizationConfiguration}.

See kubernetes/apiserver, C{pkg/authorization/cel}. Their variable C{request} is the specification of a
SubjectAccessReview.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from kubetwist.api.errors import FieldError, duplicate, internal, invalid, required, too_many

from ..api.jsontypes import JSONObject, JSONValue

if TYPE_CHECKING:
    from kubetwist.cel.environment import Environment, Program

#: Maximum number of match conditions of a webhook.
_MAX_MATCH_CONDITIONS: Final = 64

_FIELD_SELECTOR: Final = "fieldSelector"
_LABEL_SELECTOR: Final = "labelSelector"
_ATTRIBUTES: Final = ("namespace", "verb", "group", "version", "resource", "subresource", "name")


class MatchConditionError(Exception):
    """The evaluation of a condition failed, and no other condition is false."""


@cache
def _environment() -> Environment:
    from kubetwist.cel.library.environments import kubernetes_environment
    from kubetwist.cel.types import STRING, ObjectType, list_of, map_of

    texts = list_of(STRING)
    requirement = ObjectType("kubernetes.SelectorRequirement", {"key": STRING, "operator": STRING, "values": texts})
    selector = {"rawSelector": STRING, "requirements": list_of(requirement)}
    resource = ObjectType(
        "kubernetes.ResourceAttributes",
        {
            **dict.fromkeys(_ATTRIBUTES, STRING),
            _FIELD_SELECTOR: ObjectType("kubernetes.FieldSelectorAttributes", selector),
            _LABEL_SELECTOR: ObjectType("kubernetes.LabelSelectorAttributes", selector),
        },
    )
    path = ObjectType("kubernetes.NonResourceAttributes", {"path": STRING, "verb": STRING})
    request = ObjectType(
        "kubernetes.SubjectAccessReviewSpec",
        {
            "resourceAttributes": resource,
            "nonResourceAttributes": path,
            "user": STRING,
            "groups": texts,
            "extra": map_of(STRING, texts),
            "uid": STRING,
        },
    )
    return kubernetes_environment().extend(variables={"request": request})


class MatchConditions:
    """
    The compiled match conditions of one webhook.

    @ivar uses_field_selector: Whether a condition reads the field selector, which is otherwise left out.
    @ivar uses_label_selector: Whether a condition reads the label selector, which is otherwise left out.
    """

    def __init__(self, programs: Sequence[tuple[str, Program]]) -> None:
        from kubetwist.cel.inspection import selected_fields

        self._programs = tuple(programs)
        fields = set().union(*(selected_fields(program.checked.root) for _, program in self._programs))
        self.uses_field_selector = _FIELD_SELECTOR in fields
        self.uses_label_selector = _LABEL_SELECTOR in fields

    def matches(self, spec: Mapping[str, JSONValue]) -> bool:
        """
        Return whether all conditions hold for a request.

        @param spec: The specification of the SubjectAccessReview for the webhook.
        @raise MatchConditionError: The evaluation of a condition failed, and no other condition is false.
        """
        from kubetwist.cel.environment import PER_CALL_LIMIT
        from kubetwist.cel.errors import EvaluationError

        variables = {"request": _request(spec, self.uses_field_selector, self.uses_label_selector)}
        messages: list[str] = []
        for expression, program in self._programs:
            try:
                value, _ = program.evaluate(variables, cost_limit=PER_CALL_LIMIT)
            except EvaluationError as error:
                messages.append(f"cel evaluation error: expression '{expression}' resulted in error: {error.message}")
                continue
            if value is False:
                return False
        if messages:
            messages = list(dict.fromkeys(messages))
            raise MatchConditionError(messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]")
        return True


def compile_match_conditions(
    conditions: Sequence[Mapping[str, JSONValue]], path: str = ""
) -> tuple[MatchConditions | None, list[FieldError]]:
    """
    Compile the conditions of a webhook.

    @param conditions: Objects with the field C{expression}.
    @param path: The path of the object with the field C{matchConditions}.
    @return: The valid conditions, L{None} if there are none, and the errors of the invalid ones.
    """
    field = f"{path}.matchConditions" if path else "matchConditions"
    if len(conditions) > _MAX_MATCH_CONDITIONS:
        return None, [too_many(field, len(conditions), _MAX_MATCH_CONDITIONS)]
    programs: list[tuple[str, Program]] = []
    causes: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        expression_path = f"{field}[{index}].expression"
        expression = condition.get("expression") or ""
        if not expression.strip():
            causes.append(required(expression_path))
            continue
        if expression in seen:
            causes.append(duplicate(expression_path, expression))
            continue
        seen.add(expression)
        program = _compile(expression, expression_path)
        if isinstance(program, FieldError):
            causes.append(program)
        else:
            programs.append((expression, program))
    return (MatchConditions(programs) if programs else None), causes


def _compile(expression: str, expression_path: str) -> Program | FieldError:
    from kubetwist.cel.errors import CompileErrors, ProgramError
    from kubetwist.cel.types import BOOL

    try:
        program = _environment().compile(expression)
    except ProgramError as error:
        if error.output_type == BOOL:
            return internal(expression_path, f"program instantiation failed: {error}")
        output_type = error.output_type
    except CompileErrors as errors:
        return invalid(expression_path, expression, f"compilation failed: {errors}")
    else:
        if program.output_type == BOOL:
            return program
        output_type = program.output_type
    return invalid(expression_path, expression, f"must evaluate to bool but got {output_type}")


def _request(spec: Mapping[str, JSONValue], field_selector: bool, label_selector: bool) -> JSONObject:
    """Return the value of C{request} with all string fields, including empty ones."""
    request: JSONObject = {
        "user": spec.get("user") or "",
        "groups": list(spec.get("groups") or ()),
        "uid": spec.get("uid") or "",
        "extra": {key: list(values) for key, values in (spec.get("extra") or {}).items()},
    }
    attributes = spec.get("resourceAttributes")
    if attributes is not None:
        resource: JSONObject = {name: attributes.get(name) or "" for name in _ATTRIBUTES}
        for name, is_used in ((_FIELD_SELECTOR, field_selector), (_LABEL_SELECTOR, label_selector)):
            selector = _selector(attributes.get(name)) if is_used else None
            if selector is not None:
                resource[name] = selector
        request["resourceAttributes"] = resource
    attributes = spec.get("nonResourceAttributes")
    if attributes is not None:
        request["nonResourceAttributes"] = {name: attributes.get(name) or "" for name in ("verb", "path")}
    return request


def _selector(selector: Mapping[str, JSONValue] | None) -> JSONObject | None:
    if not selector:
        return None
    if selector.get("rawSelector"):
        return {"rawSelector": selector["rawSelector"]}
    requirements = [
        {
            "key": requirement.get("key") or "",
            "operator": requirement.get("operator") or "",
            "values": list(requirement.get("values") or ()),
        }
        for requirement in selector.get("requirements") or ()
    ]
    return {"requirements": requirements} if requirements else None
