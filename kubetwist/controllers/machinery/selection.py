"""Selects the controllers to run: the installed ones, filtered by C{--controllers} as in kube-controller-manager."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ...api.go.quote import quoted
from ...api.providers import interface_error

if TYPE_CHECKING:
    from ...interfaces import IControllerFactory

#: Names and former aliases of all controllers of kube-controller-manager (Go: cmd/kube-controller-manager/names).
KNOWN: Final[Mapping[str, str]] = {
    "serviceaccount-token-controller": "serviceaccount-token",
    "endpoints-controller": "endpoint",
    "endpointslice-controller": "endpointslice",
    "endpointslice-mirroring-controller": "endpointslicemirroring",
    "replicationcontroller-controller": "replicationcontroller",
    "pod-garbage-collector-controller": "podgc",
    "resourcequota-controller": "resourcequota",
    "namespace-controller": "namespace",
    "serviceaccount-controller": "serviceaccount",
    "garbage-collector-controller": "garbagecollector",
    "daemonset-controller": "daemonset",
    "job-controller": "job",
    "deployment-controller": "deployment",
    "replicaset-controller": "replicaset",
    "horizontal-pod-autoscaler-controller": "horizontalpodautoscaling",
    "disruption-controller": "disruption",
    "statefulset-controller": "statefulset",
    "cronjob-controller": "cronjob",
    "certificatesigningrequest-signing-controller": "csrsigning",
    "certificatesigningrequest-approving-controller": "csrapproving",
    "certificatesigningrequest-cleaner-controller": "csrcleaner",
    "ttl-controller": "ttl",
    "bootstrap-signer-controller": "bootstrapsigner",
    "token-cleaner-controller": "tokencleaner",
    "node-ipam-controller": "nodeipam",
    "node-lifecycle-controller": "nodelifecycle",
    "taint-eviction-controller": "",
    "service-lb-controller": "service",
    "node-route-controller": "route",
    "cloud-node-lifecycle-controller": "cloud-node-lifecycle",
    "persistentvolume-binder-controller": "persistentvolume-binder",
    "persistentvolume-attach-detach-controller": "attachdetach",
    "persistentvolume-expander-controller": "persistentvolume-expander",
    "clusterrole-aggregation-controller": "clusterrole-aggregation",
    "persistentvolumeclaim-protection-controller": "pvc-protection",
    "persistentvolume-protection-controller": "pv-protection",
    "ttl-after-finished-controller": "ttl-after-finished",
    "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller": "",
    "ephemeral-volume-controller": "ephemeral-volume",
    "storageversion-garbage-collector-controller": "storage-version-gc",
    "resourceclaim-controller": "resource-claim-controller",
    "device-taint-eviction-controller": "",
    "legacy-serviceaccount-token-cleaner-controller": "legacy-service-account-token-cleaner",
    "validatingadmissionpolicy-status-controller": "",
    "service-cidr-controller": "",
    "storage-version-migrator-controller": "",
    "selinux-warning-controller": "",
    "volumeattributesclass-protection-controller": "",
    "podcertificaterequest-cleaner-controller": "",
}
_ALIASES: Final = {alias: name for name, alias in KNOWN.items() if alias}


class UnknownControllers(ValueError):
    """C{--controllers} names unknown controllers, or an installed factory is invalid."""


def installed_factories(only: Iterable[IControllerFactory] | None = None) -> dict[str, IControllerFactory]:
    """
    Return the factories of installed controllers, by name.

    @param only: Factories to use instead of the plugins that Twisted finds.
    @raise UnknownControllers: Two have the same name, or one does not provide L{IControllerFactory}.
    """
    from ...interfaces import IControllerFactory

    if only is None:
        from twisted.plugin import getPlugins

        only = getPlugins(IControllerFactory)
    factories: dict[str, IControllerFactory] = {}
    for factory in only:
        error = interface_error(factory, IControllerFactory)
        if error:
            raise UnknownControllers(f"an installed controller factory cannot be used: {error}")
        if factory.name in factories:
            raise UnknownControllers(f"two controllers are called {factory.name}")
        factories[factory.name] = factory
    return factories


def select_controllers(
    items: Sequence[str], only: Iterable[IControllerFactory] | None = None
) -> list[IControllerFactory]:
    """
    Return the factories of the enabled controllers, sorted by name.

    The first item that matches a controller decides: its name enables it, C{-name} disables it, and C{*} enables
    those that are enabled by default.

    @param items: The items of C{--controllers}: C{"*"}, C{"name"}, C{"+name"}, C{"-name"}, and names of groups.
    @raise UnknownControllers: An item names no controller or group.
    """
    if not items:
        return []
    factories = installed_factories(only)
    groups: dict[str, set[str]] = {}
    for factory in factories.values():
        for group in factory.groups:
            groups.setdefault(group, set()).add(factory.name)
    all_by_default = False
    enabled: dict[str, bool] = {}
    errors = []
    for item in items:
        if item == "*":
            all_by_default = True
            continue
        unprefixed = item[1:] if item[:1] in "+-" else item
        name = _ALIASES.get(unprefixed, unprefixed)
        enable = item[:1] != "-"
        # Controllers of kube-controller-manager that do not exist here may be disabled.
        if not (name in factories or unprefixed in groups or (not enable and name in KNOWN)):
            errors.append(f"{quoted(unprefixed)} is not in the list of known controllers")
        for selected in groups.get(unprefixed, {name}):
            enabled.setdefault(selected, enable)
    if errors:
        raise UnknownControllers(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return [
        factories[name] for name in sorted(factories) if enabled.get(name, all_by_default and factories[name].default)
    ]
