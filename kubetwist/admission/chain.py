"""The admission chain: which plugins are on, in which order they are asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from twisted.plugin import getPlugins

from ..interfaces import IAdmissionPluginFactory, IMutatingAdmission, IValidatingAdmission
from .attributes import AdmissionAttributes, AdmissionContext

#: The order that plugins are asked in, whatever order they are named in; others come after these, by name.
#: See kubernetes, C{pkg/kubeapiserver/options/plugins.go}.
ORDER: Final = (
    "AlwaysAdmit",
    "NamespaceAutoProvision",
    "NamespaceLifecycle",
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "TaintNodesByCondition",
    "AlwaysPullImages",
    "ImagePolicyWebhook",
    "PodSecurity",
    "PodNodeSelector",
    "Priority",
    "DefaultTolerationSeconds",
    "PodTolerationRestriction",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PodGroupProtection",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DenyServiceExternalIPs",
    "PodTopologyLabels",
    "PodGroupWorkloadExists",
    "NodeDeclaredFeatureValidator",
    "JobValidation",
    "PodResizeValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
    "AlwaysDeny",
)


class UnknownPlugins(Exception):
    """Plugins that are asked for and not found, or found twice."""


class AdmissionChain:
    """The plugins that are on; knows beforehand which of them an operation concerns."""

    def __init__(self, plugins: Sequence[Any] = ()) -> None:
        self.plugins = list(plugins)
        self._mutating = self._by_operation(IMutatingAdmission)
        self._validating = self._by_operation(IValidatingAdmission)

    def _by_operation(self, interface: Any) -> dict[str, list[Any]]:
        return {
            operation: [one for one in self.plugins if interface.providedBy(one) and one.handles(operation)]
            for operation in ("CREATE", "UPDATE", "DELETE", "CONNECT")
        }

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Let the mutating plugins change the object."""
        for plugin in self._mutating[attributes.operation]:
            await plugin.admit(attributes)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Let the validating plugins refuse the object."""
        for plugin in self._validating[attributes.operation]:
            await plugin.validate(attributes)


def build_chain(
    enabled: Iterable[str], disabled: Iterable[str], server: AdmissionContext, *, only: Iterable[Any] | None = None
) -> AdmissionChain:
    """
    Make the chain of what is found as Twisted plugins.

    @param enabled: Names to switch on besides the default ones.
    @param disabled: Names to switch off.
    @param only: Factories to use instead of the installed plugins.
    @raise UnknownPlugins: A name that no plugin has, or two have.
    """
    factories: dict[str, Any] = {}
    for factory in getPlugins(IAdmissionPluginFactory) if only is None else only:
        if factory.name in factories:
            raise UnknownPlugins(f"two admission plugins are called {factory.name}")
        factories[factory.name] = factory
    enabled, disabled = set(enabled), set(disabled)
    unknown = sorted((enabled | disabled) - set(factories) - set(ORDER))
    missing = sorted(enabled - set(factories))
    if unknown or missing:
        raise UnknownPlugins(f"no such admission plugin: {', '.join(unknown or missing)}")
    wanted = {name for name, factory in factories.items() if factory.default} | enabled
    rank = {name: place for place, name in enumerate(ORDER)}
    names = sorted(wanted - disabled, key=lambda name: (rank.get(name, len(rank)), name))
    return AdmissionChain([factories[name].make(server, None) for name in names])
