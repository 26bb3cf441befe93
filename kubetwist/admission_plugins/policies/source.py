"""Compiled policies with their bindings, updated when the objects change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from ...admission.matching.equivalents import EquivalentResource
from ...admission.matching.rules import is_exempt_admission_configuration, is_review
from ...api.admission import AdmissionAttributes
from ...api.resource import JSONObject
from ...storage.errors import StorageUnavailable
from ..compiledobjects import CompiledObjectCache

if TYPE_CHECKING:
    from ...registry.admissioncontext import ServerAdmissionContext
    from .policy import Binding, Policy

_Policy = TypeVar("_Policy", bound="Policy")


def _binding(obj: JSONObject) -> Binding:
    # Imported lazily, with the evaluation of expressions: most servers have no policies.
    from .policy import Binding

    return Binding(obj)


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
        self._bindings = CompiledObjectCache(server, binding_resource, _binding)
        bindings = list(map(_binding, manifests[1]))
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
