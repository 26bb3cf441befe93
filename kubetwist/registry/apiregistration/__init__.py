"""The group apiregistration.k8s.io: APIServices."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind(
        "apiregistration.k8s.io",
        "apiservices",
        "APIService",
        categories="api-extensions",
        prefix="apiregistration.k8s.io/apiservices",
        status=True,
    ),
)
