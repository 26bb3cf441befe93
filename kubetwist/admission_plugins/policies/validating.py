"""
ValidatingAdmissionPolicy: evaluates policies and enforces the validation actions of their bindings.

@see: kubernetes/apiserver, C{pkg/admission/plugin/policy/validating}: C{dispatcher.go}, C{validator.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final

import orjson
from attrs import define, field, frozen

from twisted.logger import Logger

from ...admission.expressions import (
    CompilationResult,
    CostBudgetExceeded,
    EvaluationResult,
    MatchConditionError,
    OptionalVariables,
    VersionedRequest,
    cel_authorizer,
    evaluate_with_authorizer,
)
from ...api.admission import AdmissionAttributes
from ...api.errors import APIStatusError
from ...api.resource import JSONObject
from ...cel.admission import MATCH_BUDGET, POLICY_BUDGET
from .metrics import PolicyMetrics
from .params import ConfigurationError
from .policy import Binding, Policy, VersionedAttributeAccessor

if TYPE_CHECKING:
    from ...admission.matching.equivalents import EquivalentResource
    from ...cel.library.authz import Authorizer
    from ...cel.values import Value
    from ...registry.admissioncontext import ServerAdmissionContext

#: Maximum size of the result of a message expression, in bytes.
_MESSAGE_LIMIT: Final = 5 * 1024
#: Maximum size of the value of an audit annotation in bytes; longer values are truncated.
_ANNOTATION_LIMIT: Final = 10 * 1024
_FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"
_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}


@frozen
class Validation:
    """
    A compiled validation.

    @ivar message_expression: The compiled C{messageExpression}; L{None} without it.
    """

    expression: CompilationResult
    message: str
    message_expression: CompilationResult | None
    reason: str

    def failure_message(self, evaluated: EvaluationResult | None) -> str:
        """
        Return the message of a failed validation.

        @param evaluated: The result of the message expression; L{None} if it was not evaluated.
        """
        text = ""
        if evaluated is not None and not evaluated.error and isinstance(evaluated.value, str):
            text = evaluated.value.strip()
            if len(text.encode()) > _MESSAGE_LIMIT or "\n" in text:
                text = ""
        return text or self.message.strip() or f"failed expression: {self.expression.text.strip()}"


@frozen
class PolicyDecision:
    """
    A validation that is false or failed to evaluate.

    @ivar index: The index of the validation in the policy.
    @ivar reason: The status reason; C{""} for the default.
    @ivar error: The label C{error_type} of metrics.
    """

    message: str
    index: int = 0
    reason: str = ""
    error: str = "no_error"


@define
class ValidateResult:
    """
    The result of a policy for one parameter (C{ValidateResult}).

    @ivar annotations: Keys and values of audit annotations.
    @ivar audit_annotation_errors: Errors of audit annotations, which deny the request.
    """

    failures: list[PolicyDecision] = field(factory=list)
    annotations: list[tuple[str, str]] = field(factory=list)
    audit_annotation_errors: list[str] = field(factory=list)


class ValidatingPolicy(Policy):
    """A compiled ValidatingAdmissionPolicy."""

    def __init__(self, obj: JSONObject, server: ServerAdmissionContext) -> None:
        super().__init__(obj, server)
        from ...cel.types import BOOL, NULL, STRING

        spec = obj["spec"]
        compile_expression = self.compiler.compile
        message_names = OptionalVariables(has_params=self.names.has_params, has_authorizer=False)
        self._validations = [
            Validation(
                compile_expression(one.get("expression") or "", self.names, (BOOL,)),
                one.get("message") or "",
                compile_expression(one["messageExpression"], message_names, (STRING,))
                if one.get("messageExpression")
                else None,
                one.get("reason") or "",
            )
            for one in spec.get("validations") or ()
        ]
        self._annotations = [
            (one.get("key") or "", compile_expression(one.get("valueExpression") or "", self.names, (STRING, NULL)))
            for one in spec.get("auditAnnotations") or ()
        ]

    def evaluate(self, request: VersionedRequest, authorizer: Authorizer, params: JSONObject | None) -> ValidateResult:
        """Evaluate match conditions, validations and audit annotations, without side effects."""
        result = ValidateResult()
        values = request.activation(self.names, authorizer, params)
        if self.conditions is not None:
            condition_values = request.for_conditions(self.names, authorizer, params)
            try:
                if not self.conditions.matches(self.evaluation(condition_values, MATCH_BUDGET)):
                    return result
            except MatchConditionError as error:
                if not self.ignore_failures:
                    result.failures.append(PolicyDecision(str(error), error="invalid_error"))
                return result
        try:
            self._validate(values, result)
            self._annotate(values, result)
        except CostBudgetExceeded as error:
            result = ValidateResult([] if self.ignore_failures else [PolicyDecision(str(error), error="out_of_budget")])
        return result

    def _validate(self, values: dict[str, Value], result: ValidateResult) -> None:
        evaluation = self.evaluation(values, POLICY_BUDGET)
        outcomes = [evaluation.run(one.expression) for one in self._validations]
        failed = [bool(outcome.error) or outcome.value is not True for outcome in outcomes]
        messages: list[EvaluationResult | None] = [None] * len(outcomes)
        out_of_budget = ""
        if any(failed):
            # Message expressions have separate variables, because they must not use the authorizer.
            message_evaluation = self.evaluation(values, evaluation.budget)
            try:
                messages = [
                    None if one.message_expression is None else message_evaluation.run(one.message_expression)
                    for one in self._validations
                ]
            except CostBudgetExceeded as error:
                out_of_budget = f"failed messageExpression: {error}"
        for index, (one, outcome) in enumerate(zip(self._validations, outcomes, strict=True)):
            if outcome.error or (out_of_budget and failed[index]):
                if not self.ignore_failures:
                    result.failures.append(
                        PolicyDecision(
                            outcome.error or out_of_budget,
                            index,
                            error="invalid_error" if outcome.error else "out_of_budget",
                        )
                    )
            elif failed[index]:
                result.failures.append(PolicyDecision(one.failure_message(messages[index]), index, one.reason))

    def _annotate(self, values: dict[str, Value], result: ValidateResult) -> None:
        if not self._annotations:
            return
        evaluation = self.evaluation(values, POLICY_BUDGET)
        for key, expression in self._annotations:
            outcome = evaluation.run(expression)
            if outcome.error:
                if not self.ignore_failures:
                    result.audit_annotation_errors.append(outcome.error)
            elif isinstance(outcome.value, str):
                value = outcome.value.strip()
                if value:
                    result.annotations.append((key, value.encode()[:_ANNOTATION_LIMIT].decode("utf-8", "ignore")))


@frozen
class _Denial:
    message: str
    reason: str


class _ValidatingDispatcher:
    """Evaluates all policies for one request."""

    _log = Logger()

    def __init__(
        self, attributes: AdmissionAttributes, versioned: VersionedAttributeAccessor, metrics: PolicyMetrics
    ) -> None:
        self._attributes = attributes
        self._metrics = metrics
        self._versioned = versioned
        self._authorizer: Authorizer | None = None
        self._denials: list[_Denial] = []

    async def evaluate_policy(
        self, policy: ValidatingPolicy, bindings: Sequence[Binding], equivalents: Sequence[EquivalentResource]
    ) -> None:
        """Evaluate a policy for each matching binding and parameter, and enforce its actions."""
        try:
            equivalent = policy.matching.match(self._attributes, equivalents)
            if equivalent is None:
                return
            policy.check_configuration()
        except (APIStatusError, ConfigurationError) as error:
            self._misconfigured(policy, None, error)
            return
        annotations: dict[str, list[str]] = {}
        for binding in bindings:
            try:
                if binding.matching is not None and binding.matching.match(self._attributes, equivalents) is None:
                    continue
                params = await policy.params(binding, self._attributes.namespace)
            except (APIStatusError, ConfigurationError) as error:
                self._misconfigured(policy, binding, error)
                continue
            if not params:
                continue
            request = await self._versioned.request(equivalent)
            authorizer = self._authorizer = self._authorizer or cel_authorizer(self._attributes)
            for one in params:
                began = perf_counter()
                result = await evaluate_with_authorizer(
                    partial(policy.evaluate, request, authorizer, one), self._attributes
                )
                self._count(policy, binding, result, perf_counter() - began)
                self._enforce_actions(policy, binding, result, annotations)
        for key, values in annotations.items():
            self._annotate(f"{policy.name}/{key}", ", ".join(dict.fromkeys(values)))

    def _count(self, policy: ValidatingPolicy, binding: Binding, result: ValidateResult, took: float) -> None:
        observe = partial(self._metrics.observe, policy.name, binding.name)
        if not result.failures:
            observe("no_error", "allow", took)
        for failure in result.failures:
            for action in binding.validation_actions:
                observe(failure.error, action.lower(), took)

    def _enforce_actions(
        self, policy: ValidatingPolicy, binding: Binding, result: ValidateResult, annotations: dict[str, list[str]]
    ) -> None:
        for failure in result.failures:
            for action in binding.validation_actions:
                if action == "Deny":
                    self._deny(policy, binding, failure.message, failure.reason)
                elif action == "Warn":
                    self._attributes.warn(
                        f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding "
                        f"'{binding.name}': {failure.message}"
                    )
                elif action == "Audit":
                    details = {
                        "message": failure.message,
                        "policy": policy.name,
                        "binding": binding.name,
                        "expressionIndex": failure.index,
                        "validationActions": list(binding.validation_actions),
                    }
                    self._annotate(_FAILURES, orjson.dumps([details]).decode())
        for key, value in result.annotations:
            annotations.setdefault(key, []).append(value)
        for text in result.audit_annotation_errors:
            self._deny(policy, binding, text)

    def _misconfigured(self, policy: ValidatingPolicy, binding: Binding | None, error: Exception) -> None:
        if not policy.ignore_failures:
            misconfigured = "policy" if binding is None else "binding"
            self._deny(policy, binding, f"failed to configure {misconfigured}: {error}")

    def _deny(self, policy: ValidatingPolicy, binding: Binding | None, message: str, reason: str = "") -> None:
        with_binding = f" with binding '{binding.name}'" if binding is not None else ""
        text = f"ValidatingAdmissionPolicy '{policy.name}'{with_binding} denied request: {message}"
        self._denials.append(_Denial(text, reason or "Invalid"))

    def _annotate(self, key: str, value: str) -> None:
        try:
            self._attributes.annotate(key, value)
        except ValueError as error:
            self._log.warn("invalid audit annotation omitted: key={key} error={error}", key=key, error=error)

    def raise_errors(self) -> None:
        """
        Raise the first denial, if there is one.

        @raise APIStatusError: A policy denied the request.
        """
        if not self._denials:
            return
        denial = self._denials[0]
        error = self._attributes.forbidden(denial.message)
        error.code, error.reason = _CODES.get(denial.reason, 422), denial.reason
        error.details = {**(error.details or {}), "causes": [{"message": denial.message}]}
        raise error


async def evaluate(
    attributes: AdmissionAttributes,
    server: ServerAdmissionContext,
    hooks: Sequence[tuple[ValidatingPolicy, Sequence[Binding]]],
    equivalents: Sequence[EquivalentResource],
    metrics: PolicyMetrics,
) -> None:
    """
    Evaluate the policies that match a request.

    @param attributes: The request.
    @param server: The server.
    @param hooks: The policies with their bindings.
    @param equivalents: The equivalent resources of the request, the requested resource first.
    @param metrics: Counts the checks.
    @raise APIStatusError: A policy denied the request, or failed.
    """
    dispatcher = _ValidatingDispatcher(attributes, VersionedAttributeAccessor(attributes, server), metrics)
    for policy, bindings in hooks:
        await dispatcher.evaluate_policy(policy, bindings, equivalents)
    dispatcher.raise_errors()
