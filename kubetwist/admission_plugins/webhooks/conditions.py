"""
C{matchConditions}: expressions that must all hold for a webhook to be called.

@see: kubernetes/apiserver, C{pkg/admission/plugin/webhook/matchconditions/matcher.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...admission.attributes import AdmissionAttributes
from ...api.authorization import AuthorizerAttributes, Decision, Verdict
from ...api.errors import APIStatusError
from ...api.frozen import thawed
from ...api.resource import JSONObject
from ...cel.admission import MATCH_BUDGET, OUT_OF_BUDGET, compile_condition, request_value
from ...registry.versions import Form, Versions
from .review import request_object

if TYPE_CHECKING:
    from ...cel.environment import Program


class Conditions:
    """The conditions of one webhook, compiled at their first use."""

    def __init__(self, conditions: Sequence[JSONObject]) -> None:
        self._expressions = [condition.get("expression") or "" for condition in conditions]
        self._compiled: list[tuple[str, Program | None, str]] | None = None

    @classmethod
    def make(cls, conditions: Sequence[JSONObject]) -> Conditions | None:
        """Those of a webhook; L{None} when it has none."""
        return cls(conditions) if conditions else None

    async def hold(self, attributes: AdmissionAttributes, form: Form, versions: Versions, ignores: bool) -> bool:
        """
        Whether all hold for a request.

        @param form: In which the request is shown.
        @param ignores: Whether conditions that can not be told are taken for a no.
        @raise APIStatusError: They can not be told, none is false, and that is not to be ignored (403).
        """
        if self._compiled is None:
            self._compiled = [(text, *compile_condition(text)) for text in self._expressions]
        from ...cel.errors import EvaluationError

        variables = await _variables(attributes, form, versions)
        budget = MATCH_BUDGET
        problems: list[str] = []
        for text, program, problem in self._compiled:
            if program is None:
                problems.append(f"compilation error: {problem}")
                continue
            try:
                value, cost = await _settled(program, variables)
            except EvaluationError as error:
                value, cost = None, error.cost
                problems.append(f"expression '{text}' resulted in error: {error.message}")
            budget -= cost
            if budget < 0:
                problems = [OUT_OF_BUDGET]
                break
            if value is False:
                return False
        if not problems:
            return True
        if ignores:
            return False
        problems = list(dict.fromkeys(problems))
        why = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise APIStatusError.forbidden(attributes.group_resource, attributes.name, why)


async def _settled(program: Program, variables: dict[str, Any]) -> tuple[Any, int]:
    """What an expression gives, and costs; it begins again when the authorizer took its time to answer it."""
    from ...cel.library.authz import NeedsDecision

    while True:
        try:
            return program.evaluate(variables)
        except NeedsDecision as needed:
            await needed.settle()


def _nobody(question: AuthorizerAttributes) -> Verdict:
    return Verdict(Decision.NO_OPINION)


async def _variables(attributes: AdmissionAttributes, form: Form, versions: Versions) -> dict[str, Any]:
    """What the expressions see."""
    from ...cel.library.authz import Authorizer

    async def shown(obj: JSONObject | None) -> JSONObject | None:
        if obj is None:
            return None
        names = attributes.group, attributes.resource
        return thawed(await versions.shown(*names, obj, attributes.object_kind, form.kind))  # type: ignore[no-any-return]

    asked = attributes.context.authorizer
    authorizer = Authorizer(attributes.user, _nobody if asked is None else asked.authorize)
    return {
        "object": await shown(attributes.object),
        "oldObject": await shown(attributes.old_object),
        "namespaceObject": None,
        "request": request_value(request_object(attributes, form), attributes.dry_run, attributes.options),
        "authorizer": authorizer,
        "authorizer.requestResource": authorizer.request_resource(
            attributes.group, attributes.resource, attributes.subresource, attributes.namespace, attributes.name
        ),
    }
