"""Rows of Tables for RoleBindings and ClusterRoleBindings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Row, wide
from ..generic.printers.texts import name_of


def role_binding(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a binding: its role and subjects."""
    role = obj.get("roleRef") or {}
    subjects = obj.get("subjects") or ()
    yield name_of(obj)
    yield f"{role.get('kind', '')}/{role.get('name', '')}"
    yield age(obj)
    for kind in ("User", "Group", "ServiceAccount"):
        yield ", ".join(_subject(subject) for subject in subjects if subject.get("kind") == kind)


def _subject(subject: JSONObject) -> str:
    name: str = subject.get("name", "")
    if subject.get("kind") == "ServiceAccount":
        return f"{subject.get('namespace', '')}/{name}"
    return name


def _role_binding(kind: str, text: str) -> tuple[Column, ...]:
    return (
        NAME,
        Column("Role", f"{text} If the RoleRef cannot be resolved, the Authorizer must return an error."),
        AGE,
        wide("Users", f"Users in the {kind}"),
        wide("Groups", f"Groups in the {kind}"),
        wide("ServiceAccounts", f"ServiceAccounts in the {kind}"),
    )


#: The columns of Tables, by kind.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "RoleBinding": _role_binding(
        "roleBinding", "RoleRef can reference a Role in the current namespace or a ClusterRole in the global namespace."
    ),
    "ClusterRoleBinding": _role_binding(
        "clusterRoleBinding", "RoleRef can only reference a ClusterRole in the global namespace."
    ),
}

#: The functions that return the cells of a row, by kind.
ROWS: Final[Mapping[str, Row]] = {
    "RoleBinding": role_binding,
    "ClusterRoleBinding": role_binding,
}
