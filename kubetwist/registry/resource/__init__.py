"""The group resource.k8s.io: device classes, resource claims, resource slices."""

from __future__ import annotations

from typing import Final

from ..generic.conversion import register_converters
from ..generic.resourceinfo import Kind, SubresourceInfo, define_kind
from .conversion import CONVERTERS

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind("resource.k8s.io", "deviceclasses", "DeviceClass", versions="v1:34 v1beta2:33 v1beta1:32 v1alpha3:31"),
    define_kind(
        "resource.k8s.io",
        "devicetaintrules",
        "DeviceTaintRule",
        versions="v1:37 v1beta2:36 v1alpha3:33",
        subresources=(SubresourceInfo("status", "DeviceTaintRule", since=35),),
    ),
    define_kind(
        "resource.k8s.io",
        "podschedulings",
        "PodScheduling",
        singular="podscheduling",
        namespaced=True,
        versions="v1alpha1:26",
        status=True,
    ),
    define_kind(
        "resource.k8s.io",
        "podschedulingcontexts",
        "PodSchedulingContext",
        namespaced=True,
        versions="v1alpha3:31 v1alpha2:27",
        status=True,
    ),
    define_kind(
        "resource.k8s.io", "resourceclaimparameters", "ResourceClaimParameters", namespaced=True, versions="v1alpha2:30"
    ),
    define_kind(
        "resource.k8s.io",
        "resourceclaims",
        "ResourceClaim",
        namespaced=True,
        versions="v1:34 v1beta2:33 v1beta1:32 v1alpha3:31 v1alpha2:27 v1alpha1:26",
        status=True,
    ),
    define_kind(
        "resource.k8s.io",
        "resourceclaimtemplates",
        "ResourceClaimTemplate",
        namespaced=True,
        versions="v1:34 v1beta2:33 v1beta1:32 v1alpha3:31 v1alpha2:27 v1alpha1:26",
    ),
    define_kind("resource.k8s.io", "resourceclasses", "ResourceClass", versions="v1alpha2:27 v1alpha1:26"),
    define_kind(
        "resource.k8s.io", "resourceclassparameters", "ResourceClassParameters", namespaced=True, versions="v1alpha2:30"
    ),
    define_kind(
        "resource.k8s.io",
        "resourcepoolstatusrequests",
        "ResourcePoolStatusRequest",
        versions="v1alpha3:36",
        status=True,
    ),
    define_kind(
        "resource.k8s.io",
        "resourceslices",
        "ResourceSlice",
        versions="v1:34 v1beta2:33 v1beta1:32 v1alpha3:31 v1alpha2:30",
    ),
)

register_converters(CONVERTERS)
