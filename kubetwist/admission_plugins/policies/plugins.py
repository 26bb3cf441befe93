"""
The plugins MutatingAdmissionPolicy and ValidatingAdmissionPolicy.

The evaluation of policies is imported with the first policy, since most servers have none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from zope.interface import implementer

from ...api.admission import AdmissionAttributes
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ...interfaces import IMeasuredAdmission, IMutatingAdmission, IValidatingAdmission
from ...metrics.registry import MetricSnapshot
from .manifests import read_manifests
from .metrics import MutatingPolicyMetrics, PolicyMetrics
from .source import PolicySource

if TYPE_CHECKING:
    from ...registry.admissioncontext import ServerAdmissionContext
    from .mutating import MutatingPolicy
    from .policy import Binding
    from .validating import ValidatingPolicy


def _mutating_policy(obj: JSONObject, server: ServerAdmissionContext) -> MutatingPolicy:
    from .mutating import MutatingPolicy

    return MutatingPolicy(obj, server)


def _validating_policy(obj: JSONObject, server: ServerAdmissionContext) -> ValidatingPolicy:
    from .validating import ValidatingPolicy

    return ValidatingPolicy(obj, server)


@implementer(IMutatingAdmission, IMeasuredAdmission)
class MutatingAdmissionPolicy:
    """Runs the mutating policies that have bindings."""

    name: ClassVar[str] = "MutatingAdmissionPolicy"
    #: The cost of expressions is limited by their budget.
    timeout: ClassVar[None] = None

    def __init__(
        self, server: ServerAdmissionContext, policies: PolicySource[MutatingPolicy], *, active: bool = True
    ) -> None:
        self._server = server
        self._policies = policies
        self._active = active
        self._metrics = MutatingPolicyMetrics()

    def collect(self) -> Iterator[MetricSnapshot]:
        """See L{IMeasuredAdmission.collect}."""
        return self._metrics.collect()

    @classmethod
    def configured(cls, server: ServerAdmissionContext, configuration: JSONValue) -> MutatingAdmissionPolicy:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        manifests = read_manifests(configuration, cls.name, server)
        policies = PolicySource(server, "mutatingadmissionpolicies", _mutating_policy, manifests)
        return cls(server, policies, active=server.features.enabled("MutatingAdmissionPolicy"))

    def handles(self, operation: str) -> bool:
        """Return true except for DELETE, which has no object to change."""
        return self._active and operation != "DELETE"

    def admit(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IMutatingAdmission.admit}."""
        hooks = self._policies.hooks_for(attributes)
        return self._mutate(attributes, hooks) if hooks else None

    async def _mutate(
        self, attributes: AdmissionAttributes, hooks: Sequence[tuple[MutatingPolicy, Sequence[Binding]]]
    ) -> None:
        from .mutating import mutate

        equivalents = self._policies.equivalents(attributes)
        await mutate(attributes, self._server, hooks, equivalents, self.name, self._metrics)


@implementer(IMeasuredAdmission, IValidatingAdmission)
class ValidatingAdmissionPolicy:
    """Evaluates the validating policies that have bindings."""

    name: ClassVar[str] = "ValidatingAdmissionPolicy"
    #: The cost of expressions is limited by their budget.
    timeout: ClassVar[None] = None

    def __init__(self, server: ServerAdmissionContext, policies: PolicySource[ValidatingPolicy]) -> None:
        self._server = server
        self._policies = policies
        self._metrics = PolicyMetrics()

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return the metrics of policy checks."""
        return self._metrics.collect()

    @classmethod
    def configured(cls, server: ServerAdmissionContext, configuration: JSONValue) -> ValidatingAdmissionPolicy:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        manifests = read_manifests(configuration, cls.name, server)
        return cls(server, PolicySource(server, "validatingadmissionpolicies", _validating_policy, manifests))

    def handles(self, operation: str) -> bool:
        """Return true: the rules of policies decide."""
        return True

    def validate(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IValidatingAdmission.validate}."""
        hooks = self._policies.hooks_for(attributes)
        return self._evaluate(attributes, hooks) if hooks else None

    async def _evaluate(
        self, attributes: AdmissionAttributes, hooks: Sequence[tuple[ValidatingPolicy, Sequence[Binding]]]
    ) -> None:
        from .validating import evaluate

        await evaluate(attributes, self._server, hooks, self._policies.equivalents(attributes), self._metrics)
