"""
MutatingAdmissionPolicy: evaluates policies and applies their mutations to the object.

@see: kubernetes/apiserver, C{pkg/admission/plugin/policy}: C{mutating/dispatcher.go}, C{generic/policy_dispatcher.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ...admission.expressions import (
    CompilationResult,
    CostBudgetExceeded,
    MatchConditionError,
    OptionalVariables,
    VersionedRequest,
    cel_authorizer,
    evaluate_with_authorizer,
)
from ...admission.matching.equivalents import EquivalentResource
from ...admission.reinvocation import ReinvokeContext, canonical_json, replace_in_place
from ...api.admission import (
    AdmissionAttributes,
    ReinvocationContext,
)
from ...api.errors import APIStatusError
from ...api.jsontypes import JSONValue
from ...api.resource import GroupVersionKind, JSONObject
from ...cel.admission import MATCH_BUDGET, POLICY_BUDGET
from ...registry.generic.schemes import STILL_KNOWN
from .metrics import MutatingPolicyMetrics
from .params import ConfigurationError
from .patches import MutationFailed, apply_configuration, apply_operations
from .policy import Binding, Policy, VersionedAttributeAccessor

if TYPE_CHECKING:
    from ...cel.library.authz import Authorizer
    from ...registry.admissioncontext import ServerAdmissionContext
    from ...schema.merge.types import MergeType

APPLY_CONFIGURATION = "ApplyConfiguration"
JSON_PATCH = "JSONPatch"


@frozen
class Mutation:
    """One of a policy's mutations."""

    kind: str
    expression: CompilationResult


class MutatingPolicy(Policy):
    """
    A compiled MutatingAdmissionPolicy.

    @ivar reinvocable: Whether the policy is called again after later changes (C{reinvocationPolicy} is C{IfNeeded}).
    """

    def __init__(self, obj: JSONObject, server: ServerAdmissionContext) -> None:
        super().__init__(obj, server)
        from ...cel.library.mutation import JSON_PATCHES_TYPE, OBJECT_TYPE

        spec = obj["spec"]
        self.reinvocable = spec.get("reinvocationPolicy") == "IfNeeded"
        self.patching = OptionalVariables(has_params=self.names.has_params, has_patch_types=True)
        self.mutations: list[Mutation] = []
        for one in spec.get("mutations") or ():
            kind = one.get("patchType") or ""
            field, expected = (
                ("jsonPatch", JSON_PATCHES_TYPE) if kind == JSON_PATCH else ("applyConfiguration", OBJECT_TYPE)
            )
            text = (one.get(field) or {}).get("expression") or ""
            self.mutations.append(Mutation(kind, self.compiler.compile(text, self.patching, (expected,))))

    def match_conditions_hold(
        self, request: VersionedRequest, authorizer: Authorizer, params: JSONObject | None
    ) -> bool:
        """
        Return whether the match conditions are true.

        @raise MatchConditionError: A condition failed to evaluate.
        """
        if self.conditions is None:
            return True
        values = request.for_conditions(self.names, authorizer, params)
        return self.conditions.matches(self.evaluation(values, MATCH_BUDGET))

    def evaluate(
        self, mutation: Mutation, request: VersionedRequest, authorizer: Authorizer, params: JSONObject | None
    ) -> Any:
        """
        Evaluate the expression of a mutation.

        @raise MutationFailed: The evaluation failed.
        """
        if mutation.expression.program is None:
            raise MutationFailed(mutation.expression.error)
        values = request.activation(self.patching, authorizer, params)
        try:
            outcome = self.evaluation(values, POLICY_BUDGET).run(mutation.expression)
        except CostBudgetExceeded as error:
            raise MutationFailed(str(error)) from None
        if outcome.error:
            raise MutationFailed(outcome.error)
        return outcome.value


@frozen
class _Invocation:
    """A policy with a binding and a parameter, for one equivalent resource of the request."""

    policy: MutatingPolicy
    binding: Binding
    equivalent: EquivalentResource
    params: JSONObject | None

    @property
    def key(self) -> tuple[str, ...]:
        """Return the key that identifies the invocation in the reinvocation context."""
        meta = (self.params or {}).get("metadata") or {}
        return (self.policy.name, self.binding.name, meta.get("namespace") or "", meta.get("name") or "")


@frozen
class _PolicyError:
    message: str
    reason: str = ""


class _MutatingDispatcher:
    """Runs mutating policies on one object."""

    def __init__(
        self,
        attributes: AdmissionAttributes,
        server: ServerAdmissionContext,
        versioned: VersionedAttributeAccessor,
        metrics: MutatingPolicyMetrics,
    ) -> None:
        self._attributes = attributes
        self._server = server
        self._metrics = metrics
        self._versioned = versioned
        self._errors: list[_PolicyError] = []

    async def invocations(
        self, hooks: Sequence[tuple[MutatingPolicy, Sequence[Binding]]], equivalents: Sequence[EquivalentResource]
    ) -> list[Any]:
        """Return the policies to run; record the errors of misconfigured ones."""
        invocations = []
        for policy, bindings in hooks:
            try:
                equivalent = policy.matching.match(self._attributes, equivalents)
                if equivalent is None:
                    continue
                policy.check_configuration()
            except (APIStatusError, ConfigurationError) as error:
                self._record_error(policy, None, f"failed to configure policy: {error}")
                continue
            for binding in bindings:
                try:
                    if binding.matching is not None and binding.matching.match(self._attributes, equivalents) is None:
                        continue
                    params = await policy.params(binding, self._attributes.namespace)
                except (APIStatusError, ConfigurationError) as error:
                    self._record_error(policy, binding, f"failed to configure binding: {error}")
                    continue
                invocations += [_Invocation(policy, binding, equivalent, one) for one in params]
        return invocations

    async def run(
        self, invocations: Sequence[_Invocation], reinvocation: ReinvocationContext, reinvoke_context: ReinvokeContext
    ) -> None:
        """Run policies in order, each on the result of the previous ones."""
        authorizer = cel_authorizer(self._attributes)
        for invocation in invocations:
            policy, key = invocation.policy, repr(invocation.key)
            request = await self._versioned.request(invocation.equivalent)
            try:
                if not await evaluate_with_authorizer(
                    partial(policy.match_conditions_hold, request, authorizer, invocation.params), self._attributes
                ):
                    continue
            except MatchConditionError as error:
                self._record_error(policy, invocation.binding, str(error), "Invalid")
                continue
            if reinvocation.is_reinvoke and key not in reinvoke_context.to_reinvoke:
                continue
            if self._attributes.object is not None and await self._mutate(invocation, authorizer):
                reinvoke_context.require_reinvocation()
                reinvocation.request_reinvocation()
            if policy.reinvocable:
                reinvoke_context.previously_invoked.add(key)

    async def _mutate(self, invocation: _Invocation, authorizer: Authorizer) -> bool:
        """Apply all mutations of a policy; return whether they changed the object."""
        before = canonical_json(self._attributes.object)
        observe = partial(self._metrics.observe, invocation.policy.name, invocation.binding.name)
        for mutation in invocation.policy.mutations:
            began = perf_counter()
            request = await self._versioned.request(invocation.equivalent)
            evaluate = partial(invocation.policy.evaluate, mutation, request, authorizer, invocation.params)
            try:
                value = await evaluate_with_authorizer(evaluate, self._attributes)
                patched = self._patched(mutation, request, value, invocation.equivalent.kind)
            except MutationFailed as error:
                observe(str(error), perf_counter() - began)
                self._record_error(invocation.policy, invocation.binding, str(error), "Invalid")
                continue
            observe("", perf_counter() - began)
            if patched is not request.object:
                await self._store_patched(patched, invocation.equivalent.kind, mutation.kind == JSON_PATCH)
        return before != canonical_json(self._attributes.object)

    def _patched(
        self, mutation: Mutation, request: VersionedRequest, value: JSONValue, kind: GroupVersionKind
    ) -> JSONObject:
        assert request.object is not None
        if mutation.kind == JSON_PATCH:
            patched = apply_operations(request.object, value)
            self._check_version(patched, kind)
            return patched
        return apply_configuration(request.object, value, self._type(kind))

    def _check_version(self, patched: JSONObject, kind: GroupVersionKind) -> None:
        """
        Check that a patch has not changed the version of an object to another version that the reference knows.

        @raise MutationFailed: The version was changed; policies do not convert objects between versions.
        """
        name, api_version = patched.get("kind"), patched.get("apiVersion")
        if name != kind.kind or api_version == kind.api_version or not isinstance(api_version, str):
            return
        group, _, version = api_version.rpartition("/")
        patched_kind = GroupVersionKind(group, version, kind.kind)
        definitions = self._server.definitions
        if patched_kind in STILL_KNOWN or (definitions is not None and definitions.has_kind(patched_kind)):
            message = f"converting ({version}.{name}) to ({kind.version}.{name}): unknown conversion"
            raise MutationFailed(message)

    def _type(self, kind: GroupVersionKind) -> MergeType:
        """
        Return the merge type of a kind.

        @raise APIStatusError: The type is not available yet (503).
        """
        definitions = self._server.definitions
        if definitions is not None and definitions.has_kind(kind):
            return definitions.merge_type_for(kind)
        served = self._server.stores.custom.get(f"{self._attributes.resource}.{kind.group}")
        merge_type = served.versions.type_of(kind.api_version) if served is not None else None
        if merge_type is None:
            raise APIStatusError.service_unavailable(
                f"Resource kind {kind.group}/{kind.version}, Kind={kind.kind} not found. There can be a delay between "
                "when CustomResourceDefinitions are created and when they are available."
            )
        return merge_type

    async def _store_patched(self, patched: JSONObject, kind: GroupVersionKind, strict: bool) -> None:
        """
        Replace the object by the patched one.

        @param patched: The patched JSON.
        @param kind: The kind and version that it must have.
        @param strict: Whether unknown fields are an error, as for the result of a JSON patch
            (C{mutating/patch/json_patch.go}).
        @raise APIStatusError: The result is not an object of its kind (500).
        """
        attributes = self._attributes
        assert attributes.object is not None
        names = attributes.group, attributes.resource
        try:
            obj = await self._server.versions.decode_mutated(
                *names, patched, kind, attributes.object_kind, strict=strict
            )
        except ValueError as error:
            text = str(error)
            raise APIStatusError.internal(
                f"failed to convert object: {text}" if text.startswith("converting (") else text
            ) from None
        replace_in_place(attributes.object, obj)
        self._versioned.invalidate()

    def _record_error(self, policy: MutatingPolicy, binding: Binding | None, message: str, reason: str = "") -> None:
        if policy.ignore_failures:
            return
        if binding is None:
            text = f'policy "{policy.name}" denied request: {message}'
        else:
            text = f"policy '{policy.name}' with binding '{binding.name}' denied request: {message}"
        self._errors.append(_PolicyError(text, reason))

    def raise_errors(self) -> None:
        """
        Raise the recorded errors, if there are any.

        @raise APIStatusError: A policy denied the request (403).
        """
        if not self._errors:
            return
        first = self._errors[0]
        error = self._attributes.forbidden("admission request denied by policy")
        error.message = first.message
        error.reason = first.reason or error.reason
        error.details = {**(error.details or {}), "causes": [{"message": one.message} for one in self._errors]}
        raise error


async def mutate(
    attributes: AdmissionAttributes,
    server: ServerAdmissionContext,
    hooks: Sequence[tuple[MutatingPolicy, Sequence[Binding]]],
    equivalents: Sequence[EquivalentResource],
    plugin_name: str,
    metrics: MutatingPolicyMetrics,
) -> None:
    """
    Run the policies that match a request, and request a reinvocation if the object has changed since.

    @param attributes: The request; its object is changed.
    @param server: The server.
    @param hooks: The policies with their bindings.
    @param equivalents: The equivalent resources of the request, the requested resource first.
    @param plugin_name: The key of the plugin's state between invocations.
    @param metrics: The metrics of the policies.
    @raise APIStatusError: A policy failed.
    """
    dispatcher = _MutatingDispatcher(attributes, server, VersionedAttributeAccessor(attributes, server), metrics)
    invocations = await dispatcher.invocations(hooks, equivalents)
    if invocations:
        reinvocation = attributes.reinvocation or ReinvocationContext()
        reinvoke_context = reinvocation.plugin_values.setdefault(plugin_name, ReinvokeContext())
        if reinvocation.is_reinvoke and reinvoke_context.last_output != canonical_json(attributes.object):
            reinvoke_context.require_reinvocation()
        await dispatcher.run(invocations, reinvocation, reinvoke_context)
        reinvoke_context.last_output = canonical_json(attributes.object)
    dispatcher.raise_errors()
