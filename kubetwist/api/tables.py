"""The Table form of a kind: columns, and the cells of an object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import frozen

from .jsonpath import Budget
from .jsontypes import JSONValue
from .resource import JSONObject

#: Returns the description of a field of a built-in type: of C{"api.core.v1.PodStatus"}, the field C{"podIP"}; C{""}
#: without one.
Describe = Callable[[str, str], str]


def no_conditions(obj: JSONObject) -> list[JSONObject]:
    """Return no conditions."""
    return []


@frozen(eq=False)
class TableDefinition:
    """
    Converts the objects of one kind and version to rows of C{Table}s.

    @ivar columns: The C{columnDefinitions}.
    @ivar cells: Returns the cells of an object with C{kind} and C{apiVersion}, one for each column: JSON values, or
        ages (L{kubetwist.registry.generic.printers.ages.AgeCell}). It is called with the object and the number of
        values that it may visit, and its result is cached with the object.
    @ivar conditions: Returns the C{conditions} of the row of an object.
    @ivar sort_key: Returns the sort key of a row for an object; L{None} keeps the order of the list.
    @ivar from_stored: Whether cells are computed from the stored version of an object instead of the requested one.
    @ivar null_if_empty: Whether the rows of an empty list are C{null} instead of C{[]}.
    """

    columns: Sequence[JSONObject]
    cells: Callable[[JSONObject, Budget], Iterable[JSONValue]]
    conditions: Callable[[JSONObject], list[JSONObject]] = no_conditions
    sort_key: Callable[[JSONObject], JSONValue] | None = None
    from_stored: bool = False
    null_if_empty: bool = False
