"""
The checks of the reference's servers, in the order of its health paths.

Monitoring requests single checks (C{/readyz/poststarthook/rbac/bootstrap-roles}), so their names are part of the
API. A hook that is registered under one of these names takes its place in the order. Hooks that are not registered
stand for work that is done before the server listens, or that this server does not need: they pass when the start is
complete.
"""

from __future__ import annotations

from typing import Final

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
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
)
#: A check that is not a hook, and the hook that it follows.
AUTOREGISTRATION: Final = ("autoregister-completion", "kube-apiserver-autoregistration")

ORDER: Final = (*EXTENSIONS, *KUBE, *AGGREGATOR)
