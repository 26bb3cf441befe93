"""
The rows and columns of Tables, which C{kubectl get} prints, for the built-in kinds.

A row depends only on the object, so that it can be cached with the object; ages in it are L{AgeCell}s, which are
formatted for each request. The default columns are the name and the creation time.

A module C{printers} contains C{COLUMNS} and C{ROWS} by kind. The modules of a group are imported for its first Table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

from attrs import evolve

from ..api.featuregates import FeatureGates
from ..api.jsonpath import Budget
from ..api.resource import GroupVersionKind, JSONObject
from ..api.tables import Describe, TableDefinition, no_conditions
from .generic.printers.ages import AgeCell, Cell, human_age, human_duration
from .generic.printers.columns import DEFAULT, Column, Rows, select_row
from .generic.printers.tables import default_row, default_table

__all__ = ["AgeCell", "built_in_table", "cells", "columns", "human_age", "human_duration", "row"]


#: The features of a server of the default release.
_DEFAULT_FEATURES: Final = FeatureGates()


def built_in_table(
    kind: GroupVersionKind, describe: Describe, features: FeatureGates = _DEFAULT_FEATURES
) -> TableDefinition:
    """
    Return the Table of a built-in kind.

    @param kind: The kind of the responses.
    @param describe: Returns the description of a field.
    @param features: The feature gates and the release of the server.
    """
    printer = _PRINTERS[kind.group, kind.kind]
    if printer is _DEFAULT:
        return evolve(default_table(describe), from_stored=True)

    row_of = select_row(printer.rows, features)

    def built_in_cells(obj: JSONObject, budget: Budget) -> Iterator[Cell]:
        return row_of(obj)

    conditions: Callable[[JSONObject], list[JSONObject]] = no_conditions
    sort_key: Callable[[JSONObject], Any] | None = None
    # The access to the printer has imported the module.
    if kind.group_kind == ("", "Pod"):
        from .core.pod.printers import row_conditions

        conditions = row_conditions
    elif kind.group_kind == ("flowcontrol.apiserver.k8s.io", "FlowSchema"):
        from .flowcontrol.printers import flow_schema_order

        sort_key = flow_schema_order
    return TableDefinition(
        columns(kind.group, kind.kind, kind.version, describe, features),
        built_in_cells,
        conditions=conditions,
        sort_key=sort_key,
        # The reference computes cells from its internal type, not from the requested version.
        from_stored=True,
    )


def columns(
    group: str,
    kind: str,
    version: str = "",
    describe: Describe | None = None,
    features: FeatureGates = _DEFAULT_FEATURES,
) -> list[JSONObject]:
    """
    Return the C{columnDefinitions} of the Tables of a kind.

    @param group: The group of the kind.
    @param kind: The kind.
    @param version: The version of the request. All versions of a kind have the same columns; descriptions of fields are
        searched in this version if the release lacks the usual version.
    @param describe: Returns the description of a field, C{""} if there is none; without it, columns have no
        descriptions of fields. It is called with the name of the type without the leading C{io.k8s.}:
        C{describe("api.core.v1.PodStatus", "podIP")}.
    @param features: The feature gates and the release of the server.
    """

    def description(type_name: str, field: str) -> str:
        if describe is None:
            return ""
        package, _, name = type_name.rpartition(".")
        in_version = f"{package.rpartition('.')[0]}.{version}.{name}"
        return describe(type_name, field) or describe(in_version, field)

    return [column.definition(description) for column in _PRINTERS[group, kind].columns if features.meets(column.when)]


def row(group: str, kind: str, obj: JSONObject, features: FeatureGates = _DEFAULT_FEATURES) -> tuple[Cell, ...]:
    """
    Return the cells of an object, including those for wide output: one for each column, except for IPAddress.

    @param group: The group of the kind.
    @param kind: The kind.
    @param obj: The object in any version of the kind, with C{apiVersion}; a zero object in bookmarks.
    @param features: The feature gates and the release of the server.
    """
    return tuple(select_row(_PRINTERS[group, kind].rows, features)(obj))


def cells(group: str, kind: str, obj: JSONObject, now: float, features: FeatureGates = _DEFAULT_FEATURES) -> list[Cell]:
    """
    Return the cells of an object with formatted ages.

    @param group: The group of the kind.
    @param kind: The kind.
    @param obj: The object in any version of the kind, with C{apiVersion}.
    @param now: The time of the request, in seconds since the epoch.
    @param features: The feature gates and the release of the server.
    """
    return [cell.text(now) if isinstance(cell, AgeCell) else cell for cell in row(group, kind, obj, features)]


class Printer(NamedTuple):
    """The columns of the Tables of a kind in all releases, and the functions that return the cells of a row."""

    columns: tuple[Column, ...]
    rows: Rows


_DEFAULT: Final = Printer(DEFAULT, default_row)

#: The modules with the printers of a group, by group.
_MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "": (
        "core.componentstatus.printers",
        "core.configmap.printers",
        "core.endpoints.printers",
        "core.event.printers",
        "core.namespace.printers",
        "core.node.printers",
        "core.persistentvolume.printers",
        "core.persistentvolumeclaim.printers",
        "core.pod.printers",
        "core.podtemplate.printers",
        "core.replicationcontroller.printers",
        "core.resourcequota.printers",
        "core.secret.printers",
        "core.service.printers",
        "core.serviceaccount.printers",
        "generic.printers.rows",
    ),
    "admissionregistration.k8s.io": ("admissionregistration.printers",),
    "apiregistration.k8s.io": ("apiregistration.printers",),
    "apps": ("apps.printers",),
    "autoscaling": ("autoscaling.printers",),
    "batch": ("batch.printers",),
    "certificates.k8s.io": ("certificates.printers",),
    "coordination.k8s.io": ("coordination.printers",),
    "discovery.k8s.io": ("discovery.printers",),
    "events.k8s.io": ("core.event.printers",),
    "flowcontrol.apiserver.k8s.io": ("flowcontrol.printers",),
    "internal.apiserver.k8s.io": ("apiserverinternal.printers",),
    "networking.k8s.io": ("networking.printers",),
    "node.k8s.io": ("node.printers",),
    "policy": ("policy.printers",),
    "rbac.authorization.k8s.io": ("rbac.printers",),
    "resource.k8s.io": ("resource.printers",),
    "scheduling.k8s.io": ("scheduling.printers",),
    "storage.k8s.io": ("storage.printers",),
    "storagemigration.k8s.io": ("storagemigration.printers",),
}


class _Printers(dict[tuple[str, str], Printer]):
    """Printers by group and kind; the modules of a group are imported at the first access to one of its kinds."""

    def __missing__(self, key: tuple[str, str]) -> Printer:
        group, _ = key
        if group not in _MODULES:
            return _DEFAULT
        for name in _MODULES[group]:
            module = import_module(f".{name}", __package__)
            for kind, rows in module.ROWS.items():
                self[group, kind] = Printer(module.COLUMNS[kind], rows)
        return self.setdefault(key, _DEFAULT)


_PRINTERS: Final = _Printers()
