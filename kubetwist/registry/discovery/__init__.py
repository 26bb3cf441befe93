"""The group discovery.k8s.io: EndpointSlices."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (define_kind("discovery.k8s.io", "endpointslices", "EndpointSlice", namespaced=True),)
