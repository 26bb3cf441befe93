"""The group networking.k8s.io: Ingresses, NetworkPolicies, IPAddresses, ServiceCIDRs."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, SubresourceInfo, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind("networking.k8s.io", "clustercidrs", "ClusterCIDR", versions="v1alpha1", short="cc"),
    define_kind("networking.k8s.io", "ingressclasses", "IngressClass"),
    define_kind(
        "networking.k8s.io", "ingresses", "Ingress", namespaced=True, short="ing", prefix="ingress", status=True
    ),
    define_kind("networking.k8s.io", "ipaddresses", "IPAddress", versions="v1:33 v1beta1:31 v1alpha1:27", short="ip"),
    define_kind(
        "networking.k8s.io",
        "networkpolicies",
        "NetworkPolicy",
        namespaced=True,
        short="netpol",
        subresources=(SubresourceInfo("status", "NetworkPolicy", until=27),),
    ),
    define_kind(
        "networking.k8s.io", "servicecidrs", "ServiceCIDR", versions="v1:33 v1beta1:31 v1alpha1:29", status=True
    ),
)
