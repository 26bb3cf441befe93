"""Discovers, enables and orders admission plugins, and builds the admission chain."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from twisted.plugin import getPlugins

from ..api.admission import AdmissionContext
from ..api.featuregates import FeatureGates
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
#: Third-party plugins run before this plugin: policies and webhooks see their changes, and quotas count the result.
THIRD_PARTY_BEFORE: Final = "MutatingAdmissionPolicy"
#: The features of a server of the default release.
_DEFAULT_FEATURES: Final = FeatureGates()


class PluginInitError(AdmissionConfigError):
    """A plugin is unknown, installed twice, misplaced, or its constructor failed."""


def installed(only: Iterable[IAdmissionPluginFactory] | None = None) -> dict[str, IAdmissionPluginFactory]:
    """
    Return the factories of installed plugins, by name.

    @param only: Factories to use instead of the installed Twisted plugins.
    @raise PluginInitError: Two have the same name, or one does not provide L{IAdmissionPluginFactory}.
    """
    factories: dict[str, Any] = {}
    for factory in getPlugins(IAdmissionPluginFactory) if only is None else only:
        problem = interface_error(factory, IAdmissionPluginFactory)
        if problem:
            raise PluginInitError(f"an installed admission plugin factory cannot be used: {problem}")
        if factory.name in factories:
            raise PluginInitError(f"two admission plugins are called {factory.name}")
        factories[factory.name] = factory
    return factories


def order(factories: Mapping[str, IAdmissionPluginFactory]) -> list[str]:
    """
    Return the names of all plugins in the order of their calls.

    The plugins of the reference have a fixed order. A third-party plugin follows the plugin that its C{after} names, or
    is inserted before L{THIRD_PARTY_BEFORE}; plugins at the same position are sorted by name.

    @raise PluginInitError: C{after} names an unknown plugin, or there is a cycle.
    """
    known = {*ALL_ORDERED_PLUGINS, *factories}
    followers: dict[str, list[str]] = {}
    for name in sorted(set(factories) - set(ALL_ORDERED_PLUGINS)):
        after = getattr(factories[name], "after", None) or ""
        if after and after not in known:
            raise PluginInitError(f"admission plugin {name} must follow {after}, which is not installed")
        followers.setdefault(after, []).append(name)
    ordered: list[str] = []

    def add(name: str) -> None:
        if name in factories:
            ordered.append(name)
        for follower in followers.get(name, ()):
            add(follower)

    for name in ALL_ORDERED_PLUGINS:
        if name == THIRD_PARTY_BEFORE:
            for third_party in followers.get("", ()):
                add(third_party)
        add(name)
    unreachable = set(factories).difference(ordered)
    if unreachable:
        raise PluginInitError(f"admission plugins with a cycle in their order: {', '.join(sorted(unreachable))}")
    return ordered


def build_chain(
    enabled: Iterable[str],
    disabled: Iterable[str],
    server: AdmissionContext,
    configurations: Mapping[str, JSONValue] | None = None,
    *,
    traced: bool = False,
    only: Iterable[IAdmissionPluginFactory] | None = None,
    features: FeatureGates = _DEFAULT_FEATURES,
) -> AdmissionChain:
    """
    Build the admission chain from the installed Twisted plugins.

    @param enabled: Names to enable in addition to the default ones.
    @param disabled: Names to disable.
    @param server: The server, as plugins see it.
    @param configurations: Plugin configurations by name, from C{--admission-control-config-file}.
    @param traced: Whether to create a span for each call of a plugin.
    @param only: Factories to use instead of the installed plugins.
    @param features: The release of the server, which decides which plugins exist.
    @raise PluginInitError: A name is unknown or ambiguous, or a plugin cannot be created.
    """
    factories = installed(only)
    absent = [name for name, factory in factories.items() if not features.meets(getattr(factory, "when", ""))]
    for name in absent:
        del factories[name]
    enabled, disabled = set(enabled), set(disabled)
    check_names(enabled, disabled, factories, absent)
    configurations = configurations or {}
    plugins = []
    for name in order(factories):
        factory = factories[name]
        if name not in disabled and (factory.default or name in enabled):
            plugins.append(make_plugin(factory, server, configurations.get(name)))
    make_chain = TracedChain if traced else AdmissionChain
    return make_chain(plugins, getattr(server, "reactor", None))


def check_names(
    enabled: set[str],
    disabled: set[str],
    factories: Mapping[str, IAdmissionPluginFactory],
    absent: Container[str] = (),
) -> None:
    """
    Check the names of enabled and disabled plugins.

    @param enabled: The names of plugins to enable.
    @param disabled: The names of plugins to disable.
    @param factories: The plugins of the server.
    @param absent: The names of plugins that other releases have.
    @raise PluginInitError: A name is unknown, or enabled and disabled; the text is the reference's.
    """
    for flag, names in (("enable", enabled), ("disable", disabled)):
        for name in sorted(names):
            if name not in factories and (flag == "enable" or name not in ALL_ORDERED_PLUGINS or name in absent):
                raise PluginInitError(f'{flag}-admission-plugins plugin "{name}" is unknown')
    both = sorted(enabled & disabled)
    if both:
        raise PluginInitError(
            f"[{' '.join(both)}] in enable-admission-plugins and disable-admission-plugins overlapped"
        )


def make_plugin(
    factory: IAdmissionPluginFactory, server: AdmissionContext, configuration: JSONValue
) -> IAdmissionPlugin:
    """
    Create a plugin, and check that it can be used.

    @raise PluginInitError: The factory fails, or the plugin lacks an interface or has another name.
    """
    try:
        plugin = factory.make(server, configuration)
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise PluginInitError(f'couldn\'t init admission plugin "{factory.name}": {reason}') from error
    problem = interface_error(plugin, IMutatingAdmission, IValidatingAdmission)
    if problem:
        raise PluginInitError(f'couldn\'t init admission plugin "{factory.name}": {problem}')
    if plugin.name != factory.name:
        raise PluginInitError(f'couldn\'t init admission plugin "{factory.name}": its name is {plugin.name}')
    return plugin
