"""The group certificates.k8s.io: CertificateSigningRequests, ClusterTrustBundles, PodCertificateRequests."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, SubresourceInfo, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind(
        "certificates.k8s.io",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        short="csr",
        status=True,
        subresources=(SubresourceInfo("approval", "CertificateSigningRequest"),),
    ),
    define_kind(
        "certificates.k8s.io",
        "clustertrustbundles",
        "ClusterTrustBundle",
        versions="v1:37 v1beta1:33 v1alpha1:27",
        gate="ClusterTrustBundle",
    ),
    define_kind(
        "certificates.k8s.io",
        "podcertificaterequests",
        "PodCertificateRequest",
        namespaced=True,
        versions="v1:37 v1beta1:35 v1alpha1:34",
        status=True,
        gate="PodCertificateRequest",
    ),
)
