"""Pieces of cells that many kinds share: selectors, containers, lists that are cut short."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ....api.jsontypes import JSONValue
from ....api.resource import JSONObject

NONE = "<none>"
UNSET = "<unset>"


class InvalidSelector(ValueError):
    """A label selector that selects by an operator that does not exist."""


def selector_text(selector: Mapping[str, JSONValue] | None) -> str:
    """
    A label selector as a query has it: C{"app=web,tier in (a,b)"}.

    @raise InvalidSelector: An operator is unknown.
    """
    if not selector:
        return ""
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for requirement in selector.get("matchExpressions") or ():
        key, operator = requirement.get("key", ""), requirement.get("operator", "")
        values = ",".join(sorted(requirement.get("values") or ()))
        match operator:
            case "In":
                parts.append((key, f"{key} in ({values})"))
            case "NotIn":
                parts.append((key, f"{key} notin ({values})"))
            case "Exists":
                parts.append((key, key))
            case "DoesNotExist":
                parts.append((key, f"!{key}"))
            case _:
                raise InvalidSelector(f'"{operator}" is not a valid label selector operator')
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))


def selector_cell(selector: Mapping[str, JSONValue] | None) -> str:
    """A label selector, with words for nothing and for nonsense."""
    try:
        return selector_text(selector) or NONE
    except InvalidSelector:
        return "<error>"


def labels_cell(labels: Mapping[str, str] | None) -> str:
    """Labels, sorted."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def container_cells(template: Mapping[str, JSONValue] | None) -> tuple[str, str]:
    """The names and the images of a pod template's containers."""
    containers = ((template or {}).get("spec") or {}).get("containers") or ()
    return (
        ",".join(container.get("name", "") for container in containers),
        ",".join(container.get("image", "") for container in containers),
    )


def first_few(texts: Sequence[str], most: int, *, empty: str = UNSET) -> str:
    """The first C{most} of C{texts}, and how many more there are."""
    shown = ",".join(texts[:most])
    if len(texts) > most:
        return f"{shown} + {len(texts) - most} more..."
    return shown or empty


def join_host_port(host: str, port: object) -> str:
    """An address with its port; IPv6 ones in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def go_bool(value: JSONValue) -> str:
    """A flag in words."""
    return UNSET if value is None else "True" if value else "False"


def spec_of(obj: JSONObject) -> JSONObject:
    """The spec; an empty one when there is none."""
    return obj.get("spec") or {}


def status_of(obj: JSONObject) -> JSONObject:
    """The status; an empty one when there is none."""
    return obj.get("status") or {}


def name_of(obj: JSONObject) -> str:
    """The object's name; C{""} in the zero objects of bookmarks."""
    name: str = obj["metadata"].get("name", "")
    return name


def condition(obj_status: Mapping[str, JSONValue], kind: str) -> JSONObject | None:
    """The first condition of a type."""
    conditions: Iterable[JSONObject] = obj_status.get("conditions") or ()
    return next((one for one in conditions if one.get("type") == kind), None)
