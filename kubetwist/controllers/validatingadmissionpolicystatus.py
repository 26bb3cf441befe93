"""
Type-checks the expressions of ValidatingAdmissionPolicies and writes the warnings to their status.

@see: kubernetes, C{pkg/controller/validatingadmissionpolicystatus/controller.go}.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from ..admission.typechecking import (
    expression_warnings,
    kinds_to_check,
)
from ..api.resource import (
    GroupVersion,
    GroupVersionKind,
    GroupVersionResource,
    JSONObject,
)
from ..registry.stores import decoded_object
from .machinery.controller import Controller

if TYPE_CHECKING:
    from ..cel.schemas import DeclType

GROUP = "admissionregistration.k8s.io"
RESOURCE = "validatingadmissionpolicies"
_REFERENCE = "#/definitions/"


class ValidatingAdmissionPolicyStatusController(Controller[str]):
    """Type-checks each generation of a policy once. Keys are the names of policies."""

    name: ClassVar[str] = "validatingadmissionpolicy-status-controller"
    service_account: ClassVar[str] = "validatingadmissionpolicy-status-controller"

    def register_handlers(self) -> None:
        """Register a handler for policies."""
        self._policies = self.watch(GROUP, RESOURCE)

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._policies.get("", key)
        if record is None:
            return
        policy = decoded_object(record)
        generation = policy["metadata"].get("generation") or 0
        if (policy.get("status") or {}).get("observedGeneration") == generation:
            return
        kinds = []
        for gvk in kinds_to_check(policy, self._kinds_of):
            declaration = self._declaration(gvk)
            await self.yield_to_reactor()
            if declaration is not None:
                kinds.append((gvk, declaration))
        warnings = expression_warnings(policy, kinds, self._params(policy))
        checked: JSONObject = {"expressionWarnings": warnings} if warnings else {}

        def note(obj: JSONObject) -> None:
            if (obj["metadata"].get("generation") or 0) == generation:
                status = obj.setdefault("status", {})
                status["observedGeneration"] = generation
                status["typeChecking"] = checked

        await self.client.update_status(GROUP, RESOURCE, "", key, note)

    def _kinds_of(self, resource: GroupVersionResource) -> Iterable[GroupVersionKind]:
        return [
            info.gvk(resource.version)
            for info in self.context.resources()
            if (info.group, info.resource) == (resource.group, resource.resource) and resource.version in info.versions
        ]

    def _params(self, policy: JSONObject) -> DeclType | None:
        kind = policy["spec"].get("paramKind")
        if kind is None:
            return None
        try:
            group, version = GroupVersion.parse(kind["apiVersion"])
        except ValueError:
            return None
        return self._declaration(GroupVersionKind(group, version, kind["kind"]))

    def _declaration(self, gvk: GroupVersionKind) -> DeclType | None:
        """Return the CEL type of a kind, or L{None} if its schema is unknown."""
        from ..cel.schemas import schema_decl_type

        definitions = self.context.registry.context.definitions
        if definitions is not None and definitions.has_kind(gvk):
            named = definitions.definition_of(gvk)

            def resolve(reference: str) -> JSONObject:
                return definitions.openapi_schema(reference.removeprefix(_REFERENCE))

            return schema_decl_type(definitions.openapi_schema(named), gvk.kind, True, resolve)
        for info in self.context.resources():
            if (info.group, info.kind) == (gvk.group, gvk.kind) and gvk.version in info.versions:
                served = self.context.stores.custom.get(f"{info.resource}.{info.group}")
                if served is not None:
                    return schema_decl_type(served.definition.version(gvk.version).schema, gvk.kind, True)
        return None
