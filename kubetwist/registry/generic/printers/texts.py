"""Texts of cells for many kinds: selectors, containers, truncated lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ....api.jsontypes import JSONValue
from ....api.resource import JSONObject

NONE = "<none>"
UNSET = "<unset>"


class InvalidSelector(ValueError):
    """The error for a label selector with an unknown operator."""


def selector_text(selector: Mapping[str, JSONValue] | None) -> str:
    """
    Return a label selector in the syntax of queries: C{"app=web,tier in (a,b)"}.

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
    """Return the cell of a label selector: C{<none>} for an empty one, and C{<error>} for an invalid one."""
    try:
        return selector_text(selector) or NONE
    except InvalidSelector:
        return "<error>"


def labels_cell(labels: Mapping[str, str] | None) -> str:
    """Return the cell of labels, sorted."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def container_cells(template: Mapping[str, JSONValue] | None) -> tuple[str, str]:
    """Return the cells with the names and the images of the containers of a pod template."""
    containers = ((template or {}).get("spec") or {}).get("containers") or ()
    return (
        ",".join(container.get("name", "") for container in containers),
        ",".join(container.get("image", "") for container in containers),
    )


def first_few(texts: Sequence[str], limit: int, *, empty: str = UNSET) -> str:
    """Return the first C{limit} texts, and the number of the remaining ones."""
    listed = ",".join(texts[:limit])
    if len(texts) > limit:
        return f"{listed} + {len(texts) - limit} more..."
    return listed or empty


def join_host_port(host: str, port: object) -> str:
    """Return an address with its port; an IPv6 address is in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def go_bool(value: JSONValue) -> str:
    """Return the text of a boolean as in Go's printers: C{True}, C{False} or C{<unset>}."""
    return UNSET if value is None else "True" if value else "False"


def spec_of(obj: JSONObject) -> JSONObject:
    """Return the spec of an object, or an empty one."""
    return obj.get("spec") or {}


def status_of(obj: JSONObject) -> JSONObject:
    """Return the status of an object, or an empty one."""
    return obj.get("status") or {}


def name_of(obj: JSONObject) -> str:
    """Return the name of an object; C{""} in the zero objects of bookmarks."""
    name: str = obj["metadata"].get("name", "")
    return name


def condition(obj_status: Mapping[str, JSONValue], kind: str) -> JSONObject | None:
    """Return the first condition of a type; L{None} if there is none."""
    conditions: Iterable[JSONObject] = obj_status.get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == kind), None)
