"""OpenAPI v2: one document for everything, where parameters that many operations take are written once."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256

from ..api.resource import JSONObject
from ..schema.openapi import V2_REFERENCE
from .openapi_operations import STRING, Operation, Path
from .openapi_parameters import Parameter
from .openapi_v3 import bearer_token, extensions


def v2_document(paths: Iterable[Path], schemas: Mapping[str, JSONObject], release: str) -> JSONObject:
    """
    The document.

    @param schemas: The definitions that it contains.
    @param release: What it calls its version.
    """
    shared: dict[str, JSONObject] = {}
    return v2_frame({path.path: path_item(path, shared) for path in paths}, schemas, shared, release)


def v2_frame(
    paths: JSONObject, schemas: Mapping[str, JSONObject], shared: Mapping[str, JSONObject], release: str
) -> JSONObject:
    """The document, where what is said of its paths is written already, with the parameters that this refers to."""
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": release},
        "paths": paths,
        "definitions": dict(sorted(schemas.items())),
        "parameters": dict(sorted(shared.items())),
        "securityDefinitions": {"BearerToken": bearer_token()},
        "security": [{"BearerToken": []}],
    }


def path_item(path: Path, shared: dict[str, JSONObject]) -> JSONObject:
    """
    What the document says of a path.

    @param shared: Takes the parameters that are referred to.
    """
    item: JSONObject = {operation.method: _operation(operation, path, shared) for operation in path.operations}
    common = path.common()
    if common:
        item["parameters"] = [_parameter(one, shared) for one in common]
    return item


def _operation(operation: Operation, path: Path, shared: dict[str, JSONObject]) -> JSONObject:
    takes = [_parameter(one, shared) for one in path.own(operation)]
    if operation.body:
        body: JSONObject = {"name": "body", "in": "body", "schema": {"$ref": V2_REFERENCE + operation.body}}
        if operation.body_required:
            body["required"] = True
        takes.insert(0, body)
    schema = {"type": "string"} if operation.answer == STRING else {"$ref": V2_REFERENCE + operation.answer}
    responses: JSONObject = {
        str(code): {"description": meaning, "schema": schema} for code, meaning in operation.answers
    }
    responses["401"] = {"description": "Unauthorized"}
    written: JSONObject = {
        "description": operation.description,
        **({"consumes": list(operation.consumes)} if operation.consumes else {}),
        "produces": list(operation.produces),
        "schemes": ["https"],
        "tags": [operation.tag],
        "operationId": operation.name,
        "responses": responses,
    }
    if takes:
        written["parameters"] = takes
    return written | extensions(operation)


def _parameter(parameter: Parameter, shared: dict[str, JSONObject]) -> JSONObject:
    # The hash tells apart what has the same name and another meaning: the names of different kinds.
    text = f"{parameter.place} {parameter.type} {parameter.description}"
    key = f"{parameter.name}-{urlsafe_b64encode(sha256(text.encode()).digest())[:8].decode()}"
    if key not in shared:
        written: JSONObject = {
            "name": parameter.name,
            "in": parameter.place,
            "description": parameter.description,
            "type": parameter.type,
            "uniqueItems": True,
        }
        if parameter.place == "path":
            written["required"] = True
        shared[key] = written
    return {"$ref": f"#/parameters/{key}"}
