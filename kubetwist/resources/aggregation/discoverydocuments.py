"""
Reads the discovery documents of aggregated servers, and converts them to entries of aggregated discovery.

The documents are not trusted: a wrong type or an exceeded limit makes the whole document invalid, and unknown fields
are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import orjson

from ...api.jsontypes import JSONValue
from ...api.resource import GroupVersion, JSONObject
from ..remotedocuments import BadDocument

#: Maximum bytes of a document.
MAX_SIZE: Final = 2 * 1024 * 1024
#: Maximum resources and subresources of a document.
MAX_RESOURCES: Final = 5000
#: Maximum names, verbs and similar items of one resource.
MAX_ITEMS: Final = 64
#: Maximum characters of such an item.
MAX_ITEM_LENGTH: Final = 256
#: The accepted media types: aggregated discovery, preferably in its newest version.
AGGREGATED: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)


def is_aggregated(content_type: str) -> bool:
    """Return whether a response is aggregated discovery; servers without it answer with their plain C{/apis}."""
    media, *rest = (part.strip() for part in content_type.split(";"))
    params = dict(part.partition("=")[::2] for part in rest)
    return (
        media == "application/json"
        and params.get("g") == "apidiscovery.k8s.io"
        and params.get("v") in ("v2", "v2beta1")
        and params.get("as") == "APIGroupDiscoveryList"
    )


def read_aggregated(body: bytes) -> dict[GroupVersion, list[JSONObject]]:
    """
    Read the resources of each group-version from an C{APIGroupDiscoveryList}.

    @raise BadDocument: The body is not such a list.
    """
    document = _decoded(body, "APIGroupDiscoveryList")
    entries: dict[GroupVersion, list[JSONObject]] = {}
    counter = _ResourceCounter()
    for group in _objects(document, "items"):
        name = _text(_object(group, "metadata"), "name")
        for version in _objects(group, "versions"):
            group_version = GroupVersion(name, _text(version, "version"))
            entries[group_version] = [_resource(one, counter) for one in _objects(version, "resources")]
            counter.add()
    return entries


def read_resource_list(body: bytes) -> list[JSONObject]:
    """
    Read the resources of one group-version from an C{APIResourceList}.

    @raise BadDocument: The body is not such a list.
    """
    lines = _objects(_decoded(body, "APIResourceList"), "resources")
    counter = _ResourceCounter()
    resources: dict[str, JSONObject] = {}
    names = [_text(line, "name") for line in lines]
    for name, line in zip(names, lines, strict=True):
        if "/" not in name:
            counter.add()
            resources[name] = {
                "resource": name,
                "responseKind": _kind(line),
                "scope": _scope_of(line),
                "singularResource": _text(line, "singularName"),
                "verbs": _texts(line, "verbs"),
                **_optional_fields(line),
            }
    for name, line in zip(names, lines, strict=True):
        resource, slash, subresource = name.partition("/")
        if not slash:
            continue
        counter.add()
        scope = _scope_of(line)
        parent = resources.get(resource)
        if parent is None:
            no_kind = {"group": "", "version": "", "kind": ""}
            parent = {
                "resource": resource,
                "responseKind": no_kind,
                "scope": scope,
                "singularResource": "",
                "verbs": [],
            }
            resources[resource] = parent
        if parent["scope"] != scope:
            raise BadDocument(f"{resource} is {parent['scope']}, and {name} is {scope}")
        parent.setdefault("subresources", []).append(
            {"subresource": subresource, "responseKind": _kind(line), "verbs": _texts(line, "verbs")}
        )
    return list(resources.values())


def entry(version: str, resources: Sequence[JSONObject], current: bool) -> JSONObject:
    """Return the entry of a version in the aggregated document."""
    result: JSONObject = {"version": version}
    if resources:
        result["resources"] = list(resources)
    result["freshness"] = "Current" if current else "Stale"
    return result


class _ResourceCounter:
    """Counts the resources of a document, to enforce the limit."""

    def __init__(self) -> None:
        self._remaining = MAX_RESOURCES

    def add(self) -> None:
        self._remaining -= 1
        if self._remaining < 0:
            raise BadDocument(f"more than {MAX_RESOURCES} resources")


def _resource(line: JSONObject, counter: _ResourceCounter) -> JSONObject:
    counter.add()
    result: JSONObject = {
        "resource": _text(line, "resource"),
        "responseKind": _kind(_object(line, "responseKind")),
        "scope": _text(line, "scope"),
        "singularResource": _text(line, "singularResource"),
        "verbs": _texts(line, "verbs"),
        **_optional_fields(line),
    }
    subresources = [_subresource(one, counter) for one in _objects(line, "subresources")]
    if subresources:
        result["subresources"] = subresources
    return result


def _subresource(line: JSONObject, counter: _ResourceCounter) -> JSONObject:
    counter.add()
    result: JSONObject = {
        "subresource": _text(line, "subresource"),
        "responseKind": _kind(_object(line, "responseKind")),
    }
    accepted = [_kind(one) for one in _objects(line, "acceptedTypes")]
    if len(accepted) > MAX_ITEMS:
        raise BadDocument(f"more than {MAX_ITEMS} acceptedTypes")
    if accepted:
        result["acceptedTypes"] = accepted
    result["verbs"] = _texts(line, "verbs")
    return result


def _optional_fields(line: JSONObject) -> JSONObject:
    """Return the optional fields of a resource."""
    words = {name: _texts(line, name) for name in ("shortNames", "categories")}
    return {name: value for name, value in words.items() if value}


def _kind(line: JSONObject) -> dict[str, str]:
    return {name: _text(line, name) for name in ("group", "version", "kind")}


def _scope_of(line: JSONObject) -> str:
    namespaced = line.get("namespaced")
    if not (namespaced is None or isinstance(namespaced, bool)):
        raise BadDocument("namespaced is not a boolean")
    return "Namespaced" if namespaced else "Cluster"


def _decoded(body: bytes, kind: str) -> JSONObject:
    if len(body) > MAX_SIZE:
        raise BadDocument(f"longer than {MAX_SIZE} bytes")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadDocument(f"not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("kind", kind) != kind:
        raise BadDocument(f"not of kind {kind}")
    return document


def _text(line: Mapping[str, JSONValue], name: str) -> str:
    value = line.get(name)
    return "" if value is None else _item(value, name)


def _texts(line: Mapping[str, JSONValue], name: str) -> list[str]:
    values = line.get(name)
    if values is None:
        return []
    if not isinstance(values, list) or len(values) > MAX_ITEMS:
        raise BadDocument(f"{name} is not a list of at most {MAX_ITEMS} items")
    return [_item(value, name) for value in values]


def _item(value: JSONValue, name: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_ITEM_LENGTH:
        raise BadDocument(f"{name} is not a string of at most {MAX_ITEM_LENGTH} characters")
    return value


def _object(line: Mapping[str, JSONValue], name: str) -> JSONObject:
    value = line.get(name)
    if not (value is None or isinstance(value, dict)):
        raise BadDocument(f"{name} is not an object")
    return value or {}


def _objects(line: Mapping[str, JSONValue], name: str) -> Sequence[JSONObject]:
    values = line.get(name)
    if values is None:
        return ()
    if not isinstance(values, list) or not _all_objects(values):
        raise BadDocument(f"{name} is not a list of objects")
    return values


def _all_objects(values: Iterable[JSONValue]) -> bool:
    return all(isinstance(value, dict) for value in values)
