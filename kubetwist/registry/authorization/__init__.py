"""The group authorization.k8s.io: access reviews."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind(
        "authorization.k8s.io",
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview",
        namespaced=True,
        stored=False,
    ),
    define_kind("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", stored=False),
    define_kind("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", stored=False),
    define_kind("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", stored=False),
)
