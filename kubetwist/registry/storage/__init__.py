"""The group storage.k8s.io: StorageClasses, CSI objects, VolumeAttachments."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, SubresourceInfo, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind("storage.k8s.io", "csidrivers", "CSIDriver"),
    define_kind(
        "storage.k8s.io", "csinodes", "CSINode", subresources=(SubresourceInfo("status", "CSINode", since=37),)
    ),
    define_kind("storage.k8s.io", "csistoragecapacities", "CSIStorageCapacity", namespaced=True, versions="v1 v1beta1"),
    define_kind("storage.k8s.io", "storageclasses", "StorageClass", short="sc"),
    define_kind("storage.k8s.io", "volumeattachments", "VolumeAttachment", status=True),
    define_kind(
        "storage.k8s.io",
        "volumeattributesclasses",
        "VolumeAttributesClass",
        versions="v1:34 v1beta1:31 v1alpha1:29",
        short="vac",
    ),
)
