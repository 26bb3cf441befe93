"""A compiled policy, its bindings, and the objects of requests in the kinds that it matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
from ...api.admission import AdmissionAttributes
from ...api.errors import APIStatusError
from ...api.resource import GroupResource, GroupVersionKind, JSONObject
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
