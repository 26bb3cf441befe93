"""Which admission plugins a server has: what is found, what is switched on, in which order they are asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from twisted.plugin import getPlugins

from ..api.admission import AdmissionContext
from ..api.jsontypes import JSONValue
from ..api.providers import interface_error
from ..interfaces import (
    IAdmissionPluginFactory,
    IMutatingAdmission,
    IValidatingAdmission,
)
from .chain import AdmissionChain
from .configuration import AdmissionConfigError
from .traced import TracedChain

if TYPE_CHECKING:
    from ..interfaces import IAdmissionPlugin

#: The order in which plugins are called. Third-party plugins come before L{THIRD_PARTY_BEFORE}, sorted by name.
#: See kubernetes, C{pkg/kubeapiserver/options/plugins.go}.
ALL_ORDERED_PLUGINS: Final = (
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
#: What policies and webhooks see is what plugins in the server have made of an object; and a quota counts what is left.
THIRD_PARTY_BEFORE: Final = "MutatingAdmissionPolicy"


class PluginInitError(AdmissionConfigError):
    """Plugins that are asked for and not found, found twice, or that can not be made."""


def installed(only: Iterable[IAdmissionPluginFactory] | None = None) -> dict[str, IAdmissionPluginFactory]:
    """
    Return the factories of installed plugins, by name.

    @param only: Factories to use instead of those that Twisted finds.
    @raise UnknownPlugins: Two have the same name, or one does not provide L{IAdmissionPluginFactory}.
    """
    factories: dict[str, Any] = {}
    for factory in getPlugins(IAdmissionPluginFactory) if only is None else only:
        wrong = interface_error(factory, IAdmissionPluginFactory)
        if wrong:
            raise PluginInitError(f"an installed admission plugin factory cannot be used: {wrong}")
        if factory.name in factories:
            raise PluginInitError(f"two admission plugins are called {factory.name}")
        factories[factory.name] = factory
    return factories


def order(factories: Mapping[str, IAdmissionPluginFactory]) -> list[str]:
    """
    All plugins in the order that they are asked in.

    Those of the reference have a fixed place. Another comes after the one that its C{after} names, or else where all
    others come; several at one place are sorted by name.

    @raise UnknownPlugins: One wants to come after what is not there, or after itself.
    """
    known = {*ALL_ORDERED_PLUGINS, *factories}
    behind: dict[str, list[str]] = {}
    for name in sorted(set(factories) - set(ALL_ORDERED_PLUGINS)):
        place = getattr(factories[name], "after", None) or ""
        if place and place not in known:
            raise PluginInitError(f"admission plugin {name} wants to come after {place}, which is not there")
        behind.setdefault(place, []).append(name)
    result: list[str] = []

    def add(name: str) -> None:
        if name in factories:
            result.append(name)
        for follower in behind.get(name, ()):
            add(follower)

    for name in ALL_ORDERED_PLUGINS:
        if name == THIRD_PARTY_BEFORE:
            for other in behind.get("", ()):
                add(other)
        add(name)
    lost = set(factories).difference(result)
    if lost:
        raise PluginInitError(f"admission plugins that want to come after each other: {', '.join(sorted(lost))}")
    return result


def build_chain(
    enabled: Iterable[str],
    disabled: Iterable[str],
    server: AdmissionContext,
    configurations: Mapping[str, JSONValue] | None = None,
    *,
    traced: bool = False,
    only: Iterable[IAdmissionPluginFactory] | None = None,
) -> AdmissionChain:
    """
    Make the chain of what is found as Twisted plugins.

    @param enabled: Names to switch on besides the default ones.
    @param disabled: Names to switch off.
    @param configurations: By name, what --admission-control-config-file has for the plugins.
    @param traced: Whether requests leave spans.
    @param only: Factories to use instead of the installed plugins.
    @raise UnknownPlugins: A name that no plugin has, or two have; or a plugin that can not be made.
    """
    factories = installed(only)
    enabled, disabled = set(enabled), set(disabled)
    check_names(enabled, disabled, factories)
    configurations = configurations or {}
    plugins = []
    for name in order(factories):
        factory = factories[name]
        if name not in disabled and (factory.default or name in enabled):
            plugins.append(_made(factory, server, configurations.get(name)))
    make = TracedChain if traced else AdmissionChain
    return make(plugins, getattr(server, "reactor", None))


def check_names(enabled: set[str], disabled: set[str], factories: Mapping[str, IAdmissionPluginFactory]) -> None:
    """
    Compare what is asked for with what there is.

    @raise UnknownPlugins: In the reference's words.
    """
    for flag, names in (("enable", enabled), ("disable", disabled)):
        for name in sorted(names):
            if name not in factories and not (flag == "disable" and name in ALL_ORDERED_PLUGINS):
                raise PluginInitError(f'{flag}-admission-plugins plugin "{name}" is unknown')
    both = sorted(enabled & disabled)
    if both:
        raise PluginInitError(
            f"[{' '.join(both)}] in enable-admission-plugins and disable-admission-plugins overlapped"
        )


def _made(factory: IAdmissionPluginFactory, server: AdmissionContext, configuration: JSONValue) -> IAdmissionPlugin:
    try:
        plugin = factory.make(server, configuration)
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise PluginInitError(f'couldn\'t init admission plugin "{factory.name}": {why}') from error
    wrong = interface_error(plugin, IMutatingAdmission, IValidatingAdmission)
    if wrong:
        raise PluginInitError(f'couldn\'t init admission plugin "{factory.name}": {wrong}')
    if plugin.name != factory.name:
        raise PluginInitError(f'couldn\'t init admission plugin "{factory.name}": it calls itself {plugin.name}')
    return plugin
