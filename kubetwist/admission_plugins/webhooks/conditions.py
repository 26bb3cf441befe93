"""
C{matchConditions}: expressions that must all hold for a webhook to be called.

@see: kubernetes/apiserver, C{pkg/admission/plugin/webhook/matchconditions/matcher.go}.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...admission import expressions
from ...admission.admissionrequest import admission_request
from ...admission.expressions import (
    Compiler,
    Evaluation,
    MatchConditionError,
    OptionalVariables,
    VersionedRequest,
    cel_authorizer,
    evaluate_with_authorizer,
)
from ...admission.matching.equivalents import EquivalentResource
from ...api.admission import AdmissionAttributes
from ...api.errors import APIStatusError
from ...api.resource import JSONObject
from ...cel.admission import MATCH_BUDGET, request_value
from ...registry.versions import VersionConverter

_NAMES = OptionalVariables()


class MatchConditions:
    """The conditions of one webhook, compiled at their first use."""

    def __init__(self, conditions: Sequence[JSONObject]) -> None:
        self._conditions = conditions
        self._compiled: expressions.MatchConditions | None = None

    @classmethod
    def make(cls, conditions: Sequence[JSONObject]) -> MatchConditions | None:
        """Return the conditions of a webhook; L{None} if it has none."""
        return cls(conditions) if conditions else None

    async def matches(
        self,
        attributes: AdmissionAttributes,
        equivalent: EquivalentResource,
        versions: VersionConverter,
        ignore_failures: bool,
    ) -> bool:
        """
        Return whether all conditions are true for a request.

        @param equivalent: The resource and kind to which the objects are converted.
        @param ignore_failures: Whether an error counts as false.
        @raise APIStatusError: A condition failed to evaluate, none is false, and failures are not ignored (403).
        """
        compiled = self._compiled
        if compiled is None:
            compiled = self._compiled = expressions.MatchConditions(self._conditions, Compiler(), _NAMES)

        async def versioned(obj: JSONObject | None) -> JSONObject | None:
            if obj is None:
                return None
            return await versions.convert_to_gvk(
                attributes.group, attributes.resource, obj, attributes.object_kind, equivalent.kind
            )

        request = request_value(admission_request(attributes, equivalent), attributes.dry_run, attributes.options)
        versioned_request = VersionedRequest(
            await versioned(attributes.object), await versioned(attributes.old_object), request, None, attributes
        )
        values = versioned_request.for_conditions(_NAMES, cel_authorizer(attributes), None)
        try:
            return await evaluate_with_authorizer(
                lambda: compiled.matches(Evaluation(values, {}, MATCH_BUDGET)), attributes
            )
        except MatchConditionError as error:
            if ignore_failures:
                return False
            raise APIStatusError.forbidden(attributes.group_resource, attributes.name, str(error)) from None
