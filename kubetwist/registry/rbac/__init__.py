"""The group rbac.authorization.k8s.io: roles, bindings, and the resolution of rules."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind("rbac.authorization.k8s.io", "clusterrolebindings", "ClusterRoleBinding"),
    define_kind("rbac.authorization.k8s.io", "clusterroles", "ClusterRole"),
    define_kind("rbac.authorization.k8s.io", "rolebindings", "RoleBinding", namespaced=True),
    define_kind("rbac.authorization.k8s.io", "roles", "Role", namespaced=True),
)
