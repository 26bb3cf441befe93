"""
The hooks of the reference's servers, in the order of its health paths.

Monitoring requests single checks (C{/readyz/poststarthook/rbac/bootstrap-roles}), so their names are part of the API. A
hook of this server has the name of the reference's hook that does the same, and takes its place in the order. A name
without a hook here is shown as not applicable. Always without a hook are:

 - C{start-apiserver-admission-initializer}: plugins read the kinds of resources from the stores, not from a copy of
   discovery;
 - C{storage-object-count-tracker-hook}: the watch caches count their objects;
 - C{peer-endpoint-reconciler-controller}: no request is proxied to servers of another release.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..api.featuregates import FeatureGates

#: A check that is not named after a hook: the APIServices of the served group-versions exist.
AUTOREGISTRATION: Final = "autoregister-completion"

EXTENSIONS: Final = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
)
KUBE: Final = (
    "start-system-namespaces-controller",
    "peer-endpoint-reconciler-controller",
    "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "storage-readiness",
    "start-legacy-token-tracking-controller",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
)
AGGREGATOR: Final = (
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "apiservice-wait-for-first-sync",
    "apiservice-discovery-controller",
    "kube-apiserver-autoregistration",
    AUTOREGISTRATION,
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
)
ORDER: Final = (*EXTENSIONS, *KUBE, *AGGREGATOR)
#: The hooks that a server has only if a feature gate is enabled.
GATES: Final = {
    "peer-endpoint-reconciler-controller": "UnknownVersionInteroperabilityProxy",
    "start-kubernetes-service-cidr-controller": "MultiCIDRServiceAllocator",
    "storage-readiness": "WatchCacheInitializationPostStartHook",
}


def hook_order(features: FeatureGates) -> Sequence[str]:
    """Return the hooks that the reference's server has with C{features}, in the order of its health paths."""
    return [hook for hook in ORDER if hook not in GATES or features.enabled(GATES[hook])]


def check_name(hook: str) -> str:
    """Return the name of the health check of a hook."""
    return hook if hook == AUTOREGISTRATION else f"poststarthook/{hook}"
