"""
C{matchConditions}: expressions that must all hold for a webhook to be called.

@see: kubernetes/apiserver, C{pkg/admission/plugin/webhook/matchconditions/matcher.go}.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...admission import expressions
from ...admission.admissionrequest import request_object
from ...admission.expressions import Compiler, ConditionsFailed, Evaluation, Names, Request, authorizer_of, settled
from ...admission.matching.equivalents import Form
from ...api.admission import AdmissionAttributes
from ...api.errors import APIStatusError
from ...api.resource import JSONObject
from ...cel.admission import MATCH_BUDGET, request_value
from ...registry.versions import Versions

_NAMES = Names()


class Conditions:
    """The conditions of one webhook, compiled at their first use."""

    def __init__(self, conditions: Sequence[JSONObject]) -> None:
        self._conditions = conditions
        self._compiled: expressions.Conditions | None = None

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
        compiled = self._compiled
        if compiled is None:
            compiled = self._compiled = expressions.Conditions(self._conditions, Compiler(), _NAMES)

        async def shown(obj: JSONObject | None) -> JSONObject | None:
            if obj is None:
                return None
            return await versions.shown(attributes.group, attributes.resource, obj, attributes.object_kind, form.kind)

        request = request_value(request_object(attributes, form), attributes.dry_run, attributes.options)
        seen = Request(await shown(attributes.object), await shown(attributes.old_object), request, None, attributes)
        values = seen.for_conditions(_NAMES, authorizer_of(attributes), None)
        try:
            return await settled(lambda: compiled.hold(Evaluation(values, {}, MATCH_BUDGET)), attributes)
        except ConditionsFailed as error:
            if ignores:
                return False
            raise APIStatusError.forbidden(attributes.group_resource, attributes.name, str(error)) from None
