"""
The table of the built-in kinds of all releases since 1.25, with the priorities of groups and versions.

The package of each group has its kinds: names, scope, storage key, subresources. The versions in a release come from
its type definitions; L{kubetwist.registry.kinds} combines both. Verbs are derived from the interfaces of the storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import (
    admissionregistration,
    apiextensions,
    apiregistration,
    apiserverinternal,
    apps,
    authentication,
    authorization,
    autoscaling,
    batch,
    certificates,
    coordination,
    core,
    discovery,
    events,
    flowcontrol,
    lifecycle,
    networking,
    node,
    policy,
    rbac,
    resource,
    scheduling,
    storage,
    storagemigration,
)
from .generic.resourceinfo import Kind

#: C{groupPriorityMinimum} of the APIServices of groups, which orders C{/apis}; groups of equal priority are ordered by
#: name.
GROUP_PRIORITIES: Final[Mapping[str, int]] = {
    "": 18000,
    "apiregistration.k8s.io": 20000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "internal.apiserver.k8s.io": 16000,
    "storagemigration.k8s.io": 15800,
    "lifecycle.k8s.io": 15700,
}

#: C{versionPriority} of APIServices that differs from 15 for a stable, 9 for a beta and 1 for an alpha version.
VERSION_PRIORITIES: Final[Mapping[tuple[str, str], int]] = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("autoscaling", "v2beta2"): 1,
    ("admissionregistration.k8s.io", "v1beta1"): 12,
    ("admissionregistration.k8s.io", "v1alpha1"): 9,
    ("coordination.k8s.io", "v1beta1"): 13,
    ("coordination.k8s.io", "v1alpha2"): 12,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("flowcontrol.apiserver.k8s.io", "v1beta3"): 18,
    ("flowcontrol.apiserver.k8s.io", "v1beta2"): 15,
    ("flowcontrol.apiserver.k8s.io", "v1beta1"): 12,
    ("internal.apiserver.k8s.io", "v1alpha1"): 9,
    ("resource.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1beta2"): 15,
    ("resource.k8s.io", "v1beta1"): 12,
    ("resource.k8s.io", "v1alpha3"): 9,
    ("resource.k8s.io", "v1alpha2"): 9,
    ("storagemigration.k8s.io", "v1alpha1"): 9,
}

#: Beta versions that are enabled by default, since they are older than the rule of 1.24 that disables them.
BETAS_ON_BY_DEFAULT: Final = frozenset(
    [
        ("autoscaling", "v2beta2", "horizontalpodautoscalers"),
        ("flowcontrol.apiserver.k8s.io", "v1beta1", "flowschemas"),
        ("flowcontrol.apiserver.k8s.io", "v1beta1", "prioritylevelconfigurations"),
        ("flowcontrol.apiserver.k8s.io", "v1beta2", "flowschemas"),
        ("flowcontrol.apiserver.k8s.io", "v1beta2", "prioritylevelconfigurations"),
        ("flowcontrol.apiserver.k8s.io", "v1beta3", "flowschemas"),
        ("flowcontrol.apiserver.k8s.io", "v1beta3", "prioritylevelconfigurations"),
        ("storage.k8s.io", "v1beta1", "csistoragecapacities"),
    ]
)

#: Every built-in kind of every release.
KINDS: Final[tuple[Kind, ...]] = (
    *core.KINDS,
    *apiregistration.KINDS,
    *apiextensions.KINDS,
    *apps.KINDS,
    *events.KINDS,
    *authentication.KINDS,
    *authorization.KINDS,
    *autoscaling.KINDS,
    *batch.KINDS,
    *certificates.KINDS,
    *coordination.KINDS,
    *discovery.KINDS,
    *networking.KINDS,
    *policy.KINDS,
    *rbac.KINDS,
    *storage.KINDS,
    *admissionregistration.KINDS,
    *scheduling.KINDS,
    *node.KINDS,
    *resource.KINDS,
    *flowcontrol.KINDS,
    *apiserverinternal.KINDS,
    *storagemigration.KINDS,
    *lifecycle.KINDS,
)
