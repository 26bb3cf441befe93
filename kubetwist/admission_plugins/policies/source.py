"""Compiled policies with their bindings, updated when the objects change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from ...admission.admissionrequest import admission_request
from ...admission.expressions import (
    Compiler,
    Evaluation,
    MatchConditions,
    OptionalVariables,
    VersionedRequest,
    namespace_object,
)
from ...admission.matching.equivalents import EquivalentResource
from ...admission.matching.matchresources import MatchResources
from ...admission.matching.rules import is_exempt_admission_configuration, is_review
from ...api.admission import AdmissionAttributes
from ...api.errors import APIStatusError
from ...api.resource import GroupResource, GroupVersionKind, JSONObject
from ...storage.errors import StorageUnavailable
from ..compiledobjects import CompiledObjectCache
from .params import ConfigurationError, ParamKind

if TYPE_CHECKING:
    from ...cel.values import Value
    from ...registry.admissioncontext import ServerAdmissionContext


class Binding:
    """
    The binding of a policy.

    @ivar policy: The name of the policy.
    @ivar param_ref: The reference to parameters; L{None} for none.
    @ivar validation_actions: The actions for failed validations: C{Deny}, C{Warn}, C{Audit}.
    """

    def __init__(self, obj: JSONObject) -> None:
        spec = obj["spec"]
        self.name: str = obj["metadata"]["name"]
        self.policy: str = spec.get("policyName") or ""
        self.param_ref: JSONObject | None = spec.get("paramRef")
        self.validation_actions: Sequence[str] = spec.get("validationActions") or ()
        resources = spec.get("matchResources")
        self.matching = None if resources is None else MatchResources(resources)


class Policy:
    """
    The common part of compiled validating and mutating policies.

    @ivar ignore_failures: Whether errors are ignored (C{failurePolicy} is C{Ignore}).
    @ivar param_kind: The kind of the parameters; L{None} without parameters.
    @ivar configuration_error: Why the policy cannot be used; C{""} if it can.
    @ivar names: The optional variables of its expressions.
    """

    def __init__(self, obj: JSONObject, server: ServerAdmissionContext) -> None:
        spec = obj["spec"]
        self.name: str = obj["metadata"]["name"]
        self.ignore_failures = spec.get("failurePolicy") == "Ignore"
        self.matching = MatchResources(spec.get("matchConstraints") or {})
        self.configuration_error = (
            "" if spec.get("matchConstraints") else "policy contained no match constraints, a required field"
        )
        self.param_kind: ParamKind | None = None
        if spec.get("paramKind"):
            try:
                self.param_kind = ParamKind(spec["paramKind"], server)
            except ValueError as error:
                self.configuration_error = f"failed to parse paramKind APIVersion: {error}"
        self.names = OptionalVariables(has_params=self.param_kind is not None)
        self.compiler = Compiler(composited=True)
        for variable in spec.get("variables") or ():
            self.compiler.compile_and_store_variable(variable["name"], variable.get("expression") or "", self.names)
        conditions = spec.get("matchConditions") or ()
        self.conditions = MatchConditions(conditions, self.compiler, self.names) if conditions else None

    def check_configuration(self) -> None:
        """
        Check whether the policy can be used.

        @raise ConfigurationError: The policy cannot be used.
        """
        if self.configuration_error:
            raise ConfigurationError(self.configuration_error)
        if self.param_kind is not None:
            self.param_kind.check()

    async def params(self, binding: Binding, namespace: str) -> list[JSONObject | None]:
        """
        Return the parameters of a binding; a single L{None} for a policy or binding without parameters.

        @raise ConfigurationError: The parameters are not available.
        """
        if self.param_kind is None or binding.param_ref is None:
            return [None]
        return [*await self.param_kind.collect(binding.param_ref, namespace)]

    def evaluation(self, values: dict[str, Value], budget: int) -> Evaluation:
        """Return an evaluation of the policy's expressions with a cost budget."""
        return Evaluation(values, self.compiler.variables, budget)


_Policy = TypeVar("_Policy", bound=Policy)


class PolicySource(Generic[_Policy]):
    """All policies of one kind with their bindings."""

    def __init__(
        self,
        server: ServerAdmissionContext,
        resource: str,
        make: Callable[[JSONObject, ServerAdmissionContext], _Policy],
        manifests: tuple[Sequence[JSONObject], Sequence[JSONObject]] = ((), ()),
    ) -> None:
        """
        @param server: The server.
        @param resource: The plural of the policies: C{"validatingadmissionpolicies"}.
        @param make: Compiles a policy.
        @param manifests: Policies from manifest files, and their bindings.
        """
        binding_resource = f"{resource.removesuffix('ies')}ybindings"
        self._policies = CompiledObjectCache(server, resource, lambda obj: make(obj, server))
        self._bindings = CompiledObjectCache(server, binding_resource, Binding)
        bindings = list(map(Binding, manifests[1]))
        policies = [make(obj, server) for obj in manifests[0]]
        self._manifest_hooks = tuple(
            (one, [binding for binding in bindings if binding.policy == one.name]) for one in policies
        )
        self._server = server
        self._hooks: tuple[tuple[_Policy, Sequence[Binding]], ...] = self._manifest_hooks

    def hooks(self) -> tuple[tuple[_Policy, Sequence[Binding]], ...]:
        """
        Return the policies that have bindings, each with its bindings.

        @raise StorageUnavailable: The caches are not synced yet.
        """
        if self._policies.is_current and self._bindings.is_current:
            return self._hooks
        self._policies.refresh()
        self._bindings.refresh()
        by_policy: dict[str, list[Binding]] = {}
        for binding in self._bindings.objects:
            by_policy.setdefault(binding.policy, []).append(binding)
        pairs = ((policy, by_policy[policy.name]) for policy in self._policies.objects if policy.name in by_policy)
        self._hooks = (*self._manifest_hooks, *pairs)
        return self._hooks

    def hooks_for(self, attributes: AdmissionAttributes) -> tuple[tuple[_Policy, Sequence[Binding]], ...]:
        """
        Return the policies and bindings for a request; empty for exempt requests.

        @raise APIStatusError: The caches are not synced yet (403, as in the reference).
        """
        try:
            hooks = self.hooks()
        except StorageUnavailable as error:
            raise attributes.forbidden(str(error)) from None
        return () if is_exempt_admission_configuration(attributes) or is_review(attributes) else hooks

    def equivalents(self, attributes: AdmissionAttributes) -> tuple[EquivalentResource, ...]:
        """Return the equivalent resources of a request, the requested resource first."""
        requested = EquivalentResource(attributes.request_resource, attributes.request_kind)
        equivalents = self._server.versions.equivalents_for(
            attributes.group, attributes.resource, attributes.subresource, attributes.request_kind
        )
        return (requested, *(one for one in equivalents if one.resource != requested.resource))


class VersionedAttributeAccessor:
    """Converts the objects of a request to each kind that policies match, at most once."""

    def __init__(self, attributes: AdmissionAttributes, server: ServerAdmissionContext) -> None:
        self.attributes = attributes
        self._server = server
        self._kinds: dict[GroupVersionKind, tuple[JSONObject | None, JSONObject | None]] = {}

    async def versioned_objects(self, kind: GroupVersionKind) -> tuple[JSONObject | None, JSONObject | None]:
        """Return the object and the old object, converted to a kind."""
        objects = self._kinds.get(kind)
        if objects is None:
            objects = (
                await self._versioned(self.attributes.object, kind),
                await self._versioned(self.attributes.old_object, kind),
            )
            self._kinds[kind] = objects
        return objects

    async def _versioned(self, obj: JSONObject | None, kind: GroupVersionKind) -> JSONObject | None:
        if obj is None:
            return None
        attributes = self.attributes
        return await self._server.versions.convert_to_gvk(
            attributes.group, attributes.resource, obj, attributes.object_kind, kind
        )

    def invalidate(self) -> None:
        """Discard the converted objects, because the object has changed."""
        self._kinds.clear()

    async def request(self, equivalent: EquivalentResource) -> VersionedRequest:
        """
        Return the request with its objects converted to an equivalent resource.

        @raise APIStatusError: The namespace does not exist (404), or the conversion failed (500).
        """
        obj, old = await self.versioned_objects(equivalent.kind)
        attributes = self.attributes
        request = {
            **admission_request(attributes, equivalent),
            "dryRun": attributes.dry_run,
            "options": attributes.options,
        }
        return VersionedRequest(obj, old, request, namespace_object(self._namespace()), attributes)

    def _namespace(self) -> JSONObject | None:
        attributes = self.attributes
        if not attributes.namespace or (attributes.group, attributes.request_kind.kind) == ("", "Namespace"):
            # Requests for namespaces have no namespaceObject, as in the reference.
            return None
        namespace = attributes.context.get_decoded("", "namespaces", "", attributes.namespace)
        if namespace is None:
            raise APIStatusError.not_found(GroupResource("", "namespaces"), attributes.namespace)
        return namespace
