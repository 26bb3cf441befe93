"""Roles, ClusterRoles and their bindings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.names import validate_path_segment_name
from ...api.objectmeta import Rule, UpdateErrors
from ...api.resource import JSONObject
from ..generic.strategy import Strategy
from . import validation

GROUP: Final = "rbac.authorization.k8s.io"


class RBACStrategy(Strategy):
    """What the four kinds have in common: names that need only be parts of paths."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    allow_create_on_update = True

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """A part of a path."""
        return validate_path_segment_name(name, prefix)


class RoleStrategy(RBACStrategy):
    """rbac.authorization.k8s.io/v1 Role."""

    def default(self, obj: JSONObject) -> None:
        """C{rules} is written even when there are none."""
        obj["rules"] = obj.get("rules") or None
        for rule in obj["rules"] or ():
            rule.setdefault("verbs", None)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Rules about resources."""
        return validation.validate_role(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate as for a new object, before metadata are compared."""
        return UpdateErrors(self.validate(obj))


class ClusterRoleStrategy(RoleStrategy):
    """rbac.authorization.k8s.io/v1 ClusterRole."""

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Rules about resources or paths, and selectors of roles to gather."""
        return validation.validate_cluster_role(obj)


class RoleBindingStrategy(RBACStrategy):
    """rbac.authorization.k8s.io/v1 RoleBinding and ClusterRoleBinding."""

    def __init__(self, namespaced: bool) -> None:
        self._namespaced = namespaced

    def default(self, obj: JSONObject) -> None:
        """See C{pkg/apis/rbac/v1/defaults.go}."""
        reference = obj.setdefault("roleRef", {})
        if not reference.get("apiGroup"):
            reference["apiGroup"] = GROUP
        for name in ("kind", "name"):
            reference.setdefault(name, "")
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = GROUP
            subject.setdefault("name", "")

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """A role of this group, and subjects."""
        return validation.validate_binding(obj, self._namespaced)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """The role stays."""
        return validation.validate_binding_update(obj, old, self._namespaced)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Role": RoleStrategy(),
    "ClusterRole": ClusterRoleStrategy(),
    "RoleBinding": RoleBindingStrategy(namespaced=True),
    "ClusterRoleBinding": RoleBindingStrategy(namespaced=False),
}
