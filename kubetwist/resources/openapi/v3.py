"""OpenAPI v3: one document for each group and version, and for each discovery document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...api.resource import GroupVersion, JSONObject
from ...schema.openapi import V3_REFERENCE
from .operations import STRING, Operation, Path, types_of
from .parameters import Parameter
from .schemas import reachable


def v3_document(
    paths: Iterable[Path], schemas: Mapping[str, JSONObject], release: str, group_version: GroupVersion | None = None
) -> JSONObject:
    """
    Return a document.

    @param schemas: The available types; the document contains those that its paths need.
    @param release: Major and minor version: C{"1.36"}.
    @param group_version: The group and version of the document, if it describes one.
    """
    paths = list(paths)
    types = types_of(paths)
    needed = reachable(schemas, types, group_version)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": release},
        "paths": {path.path: path_item(path) for path in paths},
        "components": {
            **({"schemas": needed} if needed else {}),
            "securitySchemes": {"BearerToken": bearer_token()},
        },
    }


def bearer_token() -> JSONObject:
    """Return the security scheme of clients."""
    return {
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    }


def path_item(path: Path) -> JSONObject:
    """Return the path item of a document."""
    item: JSONObject = {operation.method: _operation(operation, path) for operation in path.operations}
    common = path.common()
    if common:
        item["parameters"] = [_parameter(one) for one in common]
    return item


def _operation(operation: Operation, path: Path) -> JSONObject:
    result: JSONObject = {
        "tags": [operation.tag],
        "description": operation.description,
        "operationId": operation.name,
    }
    specific = path.specific(operation)
    if specific:
        result["parameters"] = [_parameter(one) for one in specific]
    if operation.body:
        body: JSONObject = {"content": _content(operation.consumes, operation.body)}
        if operation.body_required:
            body["required"] = True
        result["requestBody"] = body
    responses: JSONObject = {
        str(code): {"description": meaning, "content": _content(operation.produces, operation.answer)}
        for code, meaning in operation.answers
    }
    responses["401"] = {"description": "Unauthorized"}
    result["responses"] = responses
    return result | extensions(operation)


def extensions(operation: Operation) -> JSONObject:
    """Return the extensions by which Kubernetes clients find an operation."""
    result: dict[str, Any] = {}
    if operation.action:
        result["x-kubernetes-action"] = operation.action
    if operation.kind is not None:
        result["x-kubernetes-group-version-kind"] = operation.kind._asdict()
    return result


def _content(media_types: Iterable[str], kind: str) -> JSONObject:
    schema = {"type": "string"} if kind == STRING else {"$ref": V3_REFERENCE + kind}
    return {media_type: {"schema": schema} for media_type in sorted(media_types)}


def _parameter(parameter: Parameter) -> JSONObject:
    result: JSONObject = {"name": parameter.name, "in": parameter.place, "description": parameter.description}
    if parameter.place == "path":
        result["required"] = True
    return result | {"schema": {"type": parameter.type, "uniqueItems": True}}
