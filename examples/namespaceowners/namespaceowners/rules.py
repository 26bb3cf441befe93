"""The configuration file: the label that names the owners of a namespace, and what owners may do."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from kubetwist.api.jsontypes import JSONObject
from kubetwist.api.rbacrules import RoleRules

#: Resources whose objects decide who owns a namespace. The wildcard includes them.
_REFUSED_RESOURCES: Final = ("*", "namespaces")
_FIELDS: Final = {"apiGroups", "resources", "resourceNames", "verbs"}


@frozen
class Configuration:
    """
    The content of the file.

    @ivar label: The label of namespaces whose value is the name of a group.
    @ivar rules: What members of the group may do in the namespace.
    """

    label: str
    rules: RoleRules


def read_configuration(content: bytes) -> Configuration:
    """
    Return the content of a file.

    @param content: TOML with C{label} and C{rules}.
    @raise ValueError: The content is invalid.
    """
    document = tomllib.loads(content.decode())
    unknown = sorted(document.keys() - {"label", "rules"})
    if unknown:
        raise ValueError(f"unknown field: {', '.join(unknown)}")
    label = document.get("label")
    if not isinstance(label, str) or not label:
        raise ValueError("label must be the name of a label")
    tables = document.get("rules", [])
    if not isinstance(tables, list):
        raise ValueError("rules must be a list of tables")
    rules = []
    for number, table in enumerate(tables):
        try:
            rules.append(_read_rule(table))
        except ValueError as error:
            raise ValueError(f"rules[{number}]: {error}") from None
    return Configuration(label, RoleRules(rules))


def _read_rule(table: Any) -> JSONObject:
    if not isinstance(table, Mapping):
        raise ValueError("it is not a table")
    unknown = sorted(table.keys() - _FIELDS)
    if unknown:
        raise ValueError(f"unknown field: {', '.join(unknown)}")
    rule: JSONObject = {}
    for name in ("verbs", "apiGroups", "resources", "resourceNames"):
        values = table.get(name, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError(f"{name} must be a list of texts")
        if values:
            rule[name] = list(values)
        elif name != "resourceNames":
            raise ValueError(f"{name} is missing")
    for resource in rule["resources"]:
        # An owner who could write the namespace could give it to another group, and a `*/...` includes it too.
        if resource.partition("/")[0] in _REFUSED_RESOURCES:
            raise ValueError(f"resources must not contain {resource}, as owners could change who owns the namespace")
    return rule
