"""OpenAPI v2: one document for everything, with the parameters of many operations written once."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import orjson

from ...api.resource import JSONObject
from ...schema.openapi import V2_REFERENCE
from .operations import STRING, Operation, Path
from .parameters import Parameter
from .v3 import bearer_token, extensions

#: Names that are not shared: they differ by kind, or kubectl reads them to detect features and does not follow
#: references.
_NOT_SHARED: Final = frozenset(("name", "fieldValidation", "dryRun"))
#: Definitions whose body parameters are shared.
_GENERIC: Final = "io.k8s.apimachinery"

_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = (1 << 64) - 1


def v2_frame(
    paths: JSONObject, schemas: Mapping[str, JSONObject], shared: Mapping[str, JSONObject], release: str
) -> JSONObject:
    """
    Return a document.

    @param paths: The path items by path.
    @param schemas: The definitions by name.
    @param shared: The shared parameters by name; see L{path_item}.
    @param release: Major and minor version: C{"1.36"}.
    """
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
    Return the path item of the document.

    @param shared: Receives the shared parameters.
    """
    item: JSONObject = {operation.method: _operation(operation, path, shared) for operation in path.operations}
    common = path.common()
    if common:
        item["parameters"] = [_parameter(one, shared) for one in common]
    return item


def _operation(operation: Operation, path: Path, shared: dict[str, JSONObject]) -> JSONObject:
    parameters = [_parameter(one, shared) for one in path.specific(operation)]
    if operation.body:
        body: JSONObject = {"name": "body", "in": "body"}
        if operation.body_required:
            body["required"] = True
        body["schema"] = {"$ref": V2_REFERENCE + operation.body}
        parameters.insert(0, _shared(body, shared) if operation.body.startswith(_GENERIC) else body)
    schema = {"type": "string"} if operation.answer == STRING else {"$ref": V2_REFERENCE + operation.answer}
    responses: JSONObject = {
        str(code): {"description": meaning, "schema": schema} for code, meaning in operation.answers
    }
    responses["401"] = {"description": "Unauthorized"}
    result: JSONObject = {
        "description": operation.description,
        **({"consumes": list(operation.consumes)} if operation.consumes else {}),
        "produces": list(operation.produces),
        "schemes": ["https"],
        "tags": [operation.tag],
        "operationId": operation.name,
        "responses": responses,
    }
    if parameters:
        result["parameters"] = parameters
    return result | extensions(operation)


def _parameter(parameter: Parameter, shared: dict[str, JSONObject]) -> JSONObject:
    result: JSONObject = {
        "uniqueItems": True,
        "type": parameter.type,
        "description": parameter.description,
        "name": parameter.name,
        "in": parameter.place,
    }
    if parameter.place == "path":
        result["required"] = True
    return result if parameter.name in _NOT_SHARED else _shared(result, shared)


def _shared(result: JSONObject, shared: dict[str, JSONObject]) -> JSONObject:
    """
    Add a parameter to the shared ones, under a name with its hash, and return a reference to it.

    See k8s.io/kube-openapi, C{pkg/builder/parameters.go}: the hash is FNV-1 of 64 bits of its JSON.
    """
    key = f"{result['name']}-{_digest(orjson.dumps(result))}"
    shared[key] = result
    return {"$ref": f"#/parameters/{key}"}


@lru_cache(maxsize=256)
def _digest(text: bytes) -> str:
    digest = _OFFSET
    for byte in text:
        digest = digest * _PRIME & _MASK ^ byte
    return urlsafe_b64encode(digest.to_bytes(8, "big")[:6]).decode()
