"""The types of the default release, loaded once for all tests, and strategies of their values."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from kubetwist.api.resource import GroupVersion, GroupVersionKind
from kubetwist.schema.definitions import Definitions
from kubetwist.schema.nodes import ListNode, MapNode, StructNode, TypeNode
from kubetwist.schema.objecttype import ObjectType


@cache
def definitions() -> Definitions:
    """Return the types of Kubernetes 1.36."""
    return Definitions.load("1.36")


@cache
def definitions_of(minor: str) -> Definitions:
    """Return the types of another release: C{"1.33"}."""
    return Definitions.load(minor)


def kinds_in_protobuf() -> list[GroupVersionKind]:
    """Return the kinds whose objects have a form in protobuf by the table of field numbers."""
    # L{kubetwist.schema.metaprotobuf} encodes these.
    by_hand = ("APIResourceList", "APIGroup", "APIGroupList", "APIVersions", "WatchEvent")
    return [
        gvk
        for gvk in sorted(definitions().gvks())
        if gvk.kind not in by_hand or not definitions().type_for(gvk).definition.startswith("io.k8s.apimachinery")
    ]


def type_of(kind: str, api_version: str = "v1") -> ObjectType:
    """Return the type of a kind."""
    return definitions().type_for(GroupVersionKind(*GroupVersion.parse(api_version), kind))


_TEXTS = {
    "v1.Time": ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678+02:00"],
    "v1.MicroTime": ["2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678901+02:00"],
    "resource.Quantity": ["1", "0.5", "1000m", "1Gi", "2048Mi", 3, "1e3", "-7"],
    "intstr.IntOrString": ["http", "25%", 0, 8080],
    "[]uint8": ["", "YWJj", "YQ==", [1, 2]],
}


def values(node: TypeNode, depth: int = 3) -> st.SearchStrategy[Any]:
    """Return a strategy of JSON values of a type, including nulls."""
    if isinstance(node, StructNode):
        fields = {
            name: st.none() | values(field.node, depth - 1)
            for name, field in node.fields.items()
            if depth > 0 or not isinstance(field.node, (ListNode, MapNode, StructNode))
        }
        if not fields:
            return st.just({})
        names = st.lists(st.sampled_from(sorted(fields)), max_size=6, unique=True)
        return names.flatmap(lambda chosen: st.fixed_dictionaries({name: fields[name] for name in chosen}))
    if isinstance(node, ListNode):
        return st.lists(st.none() | values(node.item, depth - 1), max_size=2)
    if isinstance(node, MapNode):
        return st.dictionaries(st.sampled_from(["a", "b", "cpu"]), st.none() | values(node.item, depth - 1), max_size=2)
    if node.go_type in _TEXTS:
        return st.sampled_from(_TEXTS[node.go_type])
    zero = node.zero()
    if isinstance(zero, bool):
        return st.booleans()
    if isinstance(zero, int):
        return st.integers(0, 255)
    if isinstance(zero, str):
        return st.text(max_size=5)
    return st.sampled_from([{"any": [1, None]}, {}])
