"""The group apiextensions.k8s.io: CustomResourceDefinitions."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    # The reference stores CRDs as v1beta1, which is shorter. It can also read v1, which is stored here.
    define_kind(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        short="crd crds",
        categories="api-extensions",
        prefix="apiextensions.k8s.io/customresourcedefinitions",
        status=True,
        hash_version="v1beta1",
    ),
)
