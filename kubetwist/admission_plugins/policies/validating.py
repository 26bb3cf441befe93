"""
ValidatingAdmissionPolicy: what policies say of a request, and what their bindings make of it.

@see: kubernetes/apiserver, C{pkg/admission/plugin/policy/validating}: C{dispatcher.go}, C{validator.go}.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final

import orjson
from attrs import define, field, frozen

from twisted.logger import Logger
from zope.interface import implementer

from ...admission.expressions import (
    ConditionsFailed,
    Expression,
    Names,
    Outcome,
    OutOfBudget,
    Request,
    authorizer_of,
    settled,
)
from ...api.admission import AdmissionAttributes
from ...api.errors import APIStatusError
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ...cel.admission import MATCH_BUDGET, POLICY_BUDGET
from ...interfaces import IMeasuredAdmission, IValidatingAdmission
from ...metrics.registry import Reading
from .manifests import read_manifests
from .metrics import PolicyTally
from .params import BadConfiguration
from .source import Binding, Policies, Policy, Shown

if TYPE_CHECKING:
    from ...admission.matching.equivalents import Form
    from ...cel.library.authz import Authorizer
    from ...cel.values import Value
    from ...registry.admissioncontext import ServerAdmissionContext

#: Bytes that a message made by an expression may have.
_MESSAGE_LIMIT: Final = 5 * 1024
#: Bytes of an audit annotation's value; the rest is cut off.
_ANNOTATION_LIMIT: Final = 10 * 1024
_FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"
_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}


@frozen
class Validation:
    """
    One of a policy's validations.

    @ivar making: Makes the message; L{None} without it.
    """

    expression: Expression
    message: str
    making: Expression | None
    reason: str

    def told(self, made: Outcome | None) -> str:
        """What is said when it fails."""
        text = ""
        if made is not None and not made.error and isinstance(made.value, str):
            text = made.value.strip()
            if len(text.encode()) > _MESSAGE_LIMIT or "\n" in text:
                text = ""
        return text or self.message.strip() or f"failed expression: {self.expression.text.strip()}"


@frozen
class Failure:
    """
    A validation that failed, or could not be run.

    @ivar index: Which of the policy's.
    @ivar reason: C{""} for the usual one.
    @ivar error: Why it could not be run, as metrics tell it.
    """

    message: str
    index: int = 0
    reason: str = ""
    error: str = "no_error"


@define
class Findings:
    """
    What a policy finds for one parameter.

    @ivar annotations: Keys and values for the audit.
    @ivar broken: Annotations that could not be made, and must not pass.
    """

    failures: list[Failure] = field(factory=list)
    annotations: list[tuple[str, str]] = field(factory=list)
    broken: list[str] = field(factory=list)


class ValidatingPolicy(Policy):
    """A ValidatingAdmissionPolicy, compiled."""

    def __init__(self, obj: JSONObject, server: ServerAdmissionContext) -> None:
        super().__init__(obj, server)
        from ...cel.types import BOOL, NULL, STRING

        spec = obj["spec"]
        compiled, messages = self.compiler.compile, Names(params=self.names.params, authorizer=False)
        self._validations = [
            Validation(
                compiled(one.get("expression") or "", self.names, (BOOL,)),
                one.get("message") or "",
                compiled(one["messageExpression"], messages, (STRING,)) if one.get("messageExpression") else None,
                one.get("reason") or "",
            )
            for one in spec.get("validations") or ()
        ]
        self._annotations = [
            (one.get("key") or "", compiled(one.get("valueExpression") or "", self.names, (STRING, NULL)))
            for one in spec.get("auditAnnotations") or ()
        ]

    def evaluate(self, request: Request, authorizer: Authorizer, params: JSONObject | None) -> Findings:
        """Run everything; nothing else is done."""
        findings = Findings()
        values = request.activation(self.names, authorizer, params)
        if self.conditions is not None:
            conditional = request.for_conditions(self.names, authorizer, params)
            try:
                if not self.conditions.hold(self.evaluation(conditional, MATCH_BUDGET)):
                    return findings
            except ConditionsFailed as error:
                if not self.ignores:
                    findings.failures.append(Failure(str(error), error="invalid_error"))
                return findings
        try:
            self._validate(values, findings)
            self._annotate(values, findings)
        except OutOfBudget as error:
            findings = Findings([] if self.ignores else [Failure(str(error), error="out_of_budget")])
        return findings

    def _validate(self, values: dict[str, Value], findings: Findings) -> None:
        evaluation = self.evaluation(values, POLICY_BUDGET)
        outcomes = [evaluation.run(one.expression) for one in self._validations]
        failed = [bool(outcome.error) or outcome.value is not True for outcome in outcomes]
        made: list[Outcome | None] = [None] * len(outcomes)
        out_of_budget = ""
        if any(failed):
            # Messages are made with variables of their own, as they may not ask the authorizer.
            messages = self.evaluation(values, evaluation.budget)
            try:
                made = [None if one.making is None else messages.run(one.making) for one in self._validations]
            except OutOfBudget as error:
                out_of_budget = f"failed messageExpression: {error}"
        for index, (one, outcome) in enumerate(zip(self._validations, outcomes, strict=True)):
            if outcome.error or (out_of_budget and failed[index]):
                if not self.ignores:
                    findings.failures.append(
                        Failure(
                            outcome.error or out_of_budget,
                            index,
                            error="invalid_error" if outcome.error else "out_of_budget",
                        )
                    )
            elif failed[index]:
                findings.failures.append(Failure(one.told(made[index]), index, one.reason))

    def _annotate(self, values: dict[str, Value], findings: Findings) -> None:
        if not self._annotations:
            return
        evaluation = self.evaluation(values, POLICY_BUDGET)
        for key, expression in self._annotations:
            outcome = evaluation.run(expression)
            if outcome.error:
                if not self.ignores:
                    findings.broken.append(outcome.error)
            elif isinstance(outcome.value, str):
                value = outcome.value.strip()
                if value:
                    findings.annotations.append((key, value.encode()[:_ANNOTATION_LIMIT].decode("utf-8", "ignore")))


@frozen
class _Denial:
    message: str
    reason: str


class _Review:
    """The review of one request by all policies."""

    _log = Logger()

    def __init__(self, attributes: AdmissionAttributes, shown: Shown, tally: PolicyTally) -> None:
        self._attributes = attributes
        self._tally = tally
        self._shown = shown
        self._authorizer: Authorizer | None = None
        self._denials: list[_Denial] = []

    async def look(self, policy: ValidatingPolicy, bindings: Sequence[Binding], forms: Sequence[Form]) -> None:
        """Have a policy look at the request."""
        try:
            form = policy.matching.form(self._attributes, forms)
            if form is None:
                return
            policy.check()
        except (APIStatusError, BadConfiguration) as error:
            self._misconfigured(policy, None, error)
            return
        annotations: dict[str, list[str]] = {}
        for binding in bindings:
            try:
                if binding.matching is not None and binding.matching.form(self._attributes, forms) is None:
                    continue
                params = await policy.params(binding, self._attributes.namespace)
            except (APIStatusError, BadConfiguration) as error:
                self._misconfigured(policy, binding, error)
                continue
            if not params:
                continue
            request = await self._shown.request(form)
            authorizer = self._authorizer = self._authorizer or authorizer_of(self._attributes)
            for one in params:
                began = perf_counter()
                findings = await settled(partial(policy.evaluate, request, authorizer, one), self._attributes)
                self._count(policy, binding, findings, perf_counter() - began)
                self._note(policy, binding, findings, annotations)
        for key, values in annotations.items():
            self._annotate(f"{policy.name}/{key}", ", ".join(dict.fromkeys(values)))

    def _count(self, policy: ValidatingPolicy, binding: Binding, findings: Findings, took: float) -> None:
        checked = partial(self._tally.checked, policy.name, binding.name)
        if not findings.failures:
            checked("no_error", "allow", took)
        for failure in findings.failures:
            for action in binding.actions:
                checked(failure.error, action.lower(), took)

    def _note(
        self, policy: ValidatingPolicy, binding: Binding, findings: Findings, annotations: dict[str, list[str]]
    ) -> None:
        for failure in findings.failures:
            for action in binding.actions:
                if action == "Deny":
                    self._deny(policy, binding, failure.message, failure.reason)
                elif action == "Warn":
                    self._attributes.warn(
                        f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding "
                        f"'{binding.name}': {failure.message}"
                    )
                elif action == "Audit":
                    said = {
                        "message": failure.message,
                        "policy": policy.name,
                        "binding": binding.name,
                        "expressionIndex": failure.index,
                        "validationActions": list(binding.actions),
                    }
                    self._annotate(_FAILURES, orjson.dumps([said]).decode())
        for key, value in findings.annotations:
            annotations.setdefault(key, []).append(value)
        for text in findings.broken:
            self._deny(policy, binding, text)

    def _misconfigured(self, policy: ValidatingPolicy, binding: Binding | None, error: Exception) -> None:
        if not policy.ignores:
            what = "policy" if binding is None else "binding"
            self._deny(policy, binding, f"failed to configure {what}: {error}")

    def _deny(self, policy: ValidatingPolicy, binding: Binding | None, message: str, reason: str = "") -> None:
        by = f" with binding '{binding.name}'" if binding is not None else ""
        text = f"ValidatingAdmissionPolicy '{policy.name}'{by} denied request: {message}"
        self._denials.append(_Denial(text, reason or "Invalid"))

    def _annotate(self, key: str, value: str) -> None:
        try:
            self._attributes.annotate(key, value)
        except ValueError as error:
            self._log.warn("no audit annotation {key}: {error}", key=key, error=error)

    def finish(self) -> None:
        """
        Tell what is wrong, if something is.

        @raise APIStatusError: The request is denied.
        """
        if not self._denials:
            return
        denial = self._denials[0]
        error = self._attributes.forbidden(denial.message)
        error.code, error.reason = _CODES.get(denial.reason, 422), denial.reason
        error.details = {**(error.details or {}), "causes": [{"message": denial.message}]}
        raise error


@implementer(IMeasuredAdmission, IValidatingAdmission)
class ValidatingAdmissionPolicy:
    """Asks the policies that are bound."""

    name: ClassVar[str] = "ValidatingAdmissionPolicy"
    #: What expressions may cost is limited already.
    timeout: ClassVar[None] = None

    def __init__(self, server: ServerAdmissionContext, policies: Policies[ValidatingPolicy]) -> None:
        self._server = server
        self._policies = policies
        self._tally = PolicyTally()

    def readings(self) -> Iterator[Reading]:
        """What is counted of checks."""
        return self._tally.readings()

    @classmethod
    def configured(cls, server: ServerAdmissionContext, configuration: JSONValue) -> ValidatingAdmissionPolicy:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        fixed = read_manifests(configuration, cls.name, server)
        return cls(server, Policies(server, "validatingadmissionpolicies", ValidatingPolicy, fixed))

    def handles(self, operation: str) -> bool:
        """Everything: rules decide."""
        return True

    def validate(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IValidatingAdmission.validate}."""
        bound = self._policies.asked(attributes)
        return self._review(attributes, bound) if bound else None

    async def _review(
        self, attributes: AdmissionAttributes, bound: Sequence[tuple[ValidatingPolicy, Sequence[Binding]]]
    ) -> None:
        review = _Review(attributes, Shown(attributes, self._server), self._tally)
        forms = self._policies.forms(attributes)
        for policy, bindings in bound:
            await review.look(policy, bindings, forms)
        review.finish()
