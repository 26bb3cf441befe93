"""Strategies of Roles, ClusterRoles and their bindings."""

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
    """The common strategy of the four kinds, whose names are any path segments."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    allow_create_on_update = True

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """Return the errors of a name, which must be a path segment."""
        return validate_path_segment_name(name, prefix)


class RoleStrategy(RBACStrategy):
    """Strategy of rbac.authorization.k8s.io/v1 Role."""

    def default(self, obj: JSONObject) -> None:
        """Set missing C{rules} and C{verbs} to C{null}, as Go does not omit them."""
        obj["rules"] = obj.get("rules") or None
        for rule in obj["rules"] or ():
            rule.setdefault("verbs", None)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate a Role."""
        return validation.validate_role(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate as for a new object, before metadata are compared."""
        return UpdateErrors(self.validate(obj))


class ClusterRoleStrategy(RoleStrategy):
    """Strategy of rbac.authorization.k8s.io/v1 ClusterRole."""

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate a ClusterRole."""
        return validation.validate_cluster_role(obj)


class RoleBindingStrategy(RBACStrategy):
    """Strategy of rbac.authorization.k8s.io/v1 RoleBinding and ClusterRoleBinding."""

    def __init__(self, namespaced: bool) -> None:
        self._namespaced = namespaced

    def default(self, obj: JSONObject) -> None:
        """Set the defaults of C{pkg/apis/rbac/v1/defaults.go}."""
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
        """Validate a binding."""
        return validation.validate_binding(obj, self._namespaced)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate an update of a binding, whose role is immutable."""
        return validation.validate_binding_update(obj, old, self._namespaced)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Role": RoleStrategy(),
    "ClusterRole": ClusterRoleStrategy(),
    "RoleBinding": RoleBindingStrategy(namespaced=True),
    "ClusterRoleBinding": RoleBindingStrategy(namespaced=False),
}
