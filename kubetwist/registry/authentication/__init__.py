"""The group authentication.k8s.io: reviews of tokens and users."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind(
        "authentication.k8s.io",
        "selfsubjectreviews",
        "SelfSubjectReview",
        versions="v1:28 v1beta1:27 v1alpha1:26",
        stored=False,
    ),
    define_kind("authentication.k8s.io", "tokenreviews", "TokenReview", stored=False),
)
