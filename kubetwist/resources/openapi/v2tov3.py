"""
Converts OpenAPI v2 to v3, for servers without v3. Features that v2 cannot express are missing.

@see: kubernetes/kube-openapi, C{pkg/openapiconv/convert.go}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import orjson

from ...api.jsonpieces import decoded
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ...schema.openapi import V2_REFERENCE, V3_REFERENCE
from .compressed import CompressedDocument
from .specmerge import PARAMETERS, RemoteSpec
from .v3 import bearer_token

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_SAME: Final = ("description", "externalDocs", "tags", "summary", "deprecated", "operationId")


def v3_of_v2(spec: RemoteSpec) -> CompressedDocument:
    """Convert a document; it is built and compressed in pieces."""
    return CompressedDocument.pieces(_pieces(spec), b"application/json")


def _pieces(spec: RemoteSpec) -> Iterator[bytes]:
    parameters = {name: decoded(text) for name, text in spec.parameters.items()}
    info = {"title": "Kubernetes", "version": "unversioned"}
    yield b'{"openapi":"3.0.0","info":%b,"paths":{' % orjson.dumps(info)
    comma = b""
    for name, text in spec.paths.items():
        yield comma + orjson.dumps(name) + b":" + orjson.dumps(v3_item(decoded(text), parameters))
        comma = b","
    yield b'},"components":{"schemas":{'
    comma = b""
    for name, text in spec.definitions.items():
        yield comma + orjson.dumps(name) + b":" + orjson.dumps(v3_schema(decoded(text)))
        comma = b","
    yield b'},"securitySchemes":%b}}' % orjson.dumps({"BearerToken": bearer_token()})


def v3_item(item: JSONObject, parameters: Mapping[str, JSONObject]) -> JSONObject:
    """Convert a path item."""
    converted: JSONObject = {method: _operation(item[method], parameters) for method in _METHODS if method in item}
    shared = [_parameter(one) for one in _resolve_parameters(item.get("parameters", ()), parameters)]
    if shared:
        converted["parameters"] = shared
    return converted | _extensions(item)


def v3_schema(schema: JSONObject) -> JSONObject:
    """Convert a schema; references with more members are wrapped, as v3 requires."""
    converted: JSONObject = {}
    for name, value in schema.items():
        if name == "$ref" and isinstance(value, str) and value.startswith(V2_REFERENCE):
            converted[name] = V3_REFERENCE + value.removeprefix(V2_REFERENCE)
        elif name == "properties" and isinstance(value, dict):
            converted[name] = {one: _if_schema(part) for one, part in value.items()}
        elif name in ("items", "additionalProperties", "not"):
            converted[name] = [_if_schema(part) for part in value] if isinstance(value, list) else _if_schema(value)
        elif name in ("allOf", "anyOf", "oneOf") and isinstance(value, list):
            converted[name] = [_if_schema(part) for part in value]
        else:
            converted[name] = value
    if "$ref" in converted and len(converted) > 1:
        converted["allOf"] = [{"$ref": converted.pop("$ref")}]
    return converted


def _if_schema(value: JSONValue) -> JSONValue:
    return v3_schema(value) if isinstance(value, dict) else value


def _operation(operation: JSONObject, parameters: Mapping[str, JSONObject]) -> JSONObject:
    converted = {name: operation[name] for name in _SAME if name in operation} | _extensions(operation)
    converted_parameters = []
    for parameter in _resolve_parameters(operation.get("parameters", ()), parameters):
        if parameter.get("in") == "body":
            converted["requestBody"] = _content(operation.get("consumes"), parameter.get("schema", {}))
            if parameter.get("required"):
                converted["requestBody"]["required"] = True
        else:
            converted_parameters.append(_parameter(parameter))
    if converted_parameters:
        converted["parameters"] = converted_parameters
    converted["responses"] = {
        code: _response(response, operation.get("produces")) if isinstance(response, dict) else response
        for code, response in operation.get("responses", {}).items()
    }
    return converted


def _response(response: JSONObject, produces: JSONValue) -> JSONObject:
    converted: JSONObject = {"description": response.get("description", "")} | _extensions(response)
    if "schema" in response:
        converted |= _content(produces, response["schema"])
    return converted


def _content(media_types: JSONValue, schema: JSONObject) -> JSONObject:
    written = v3_schema(schema)
    return {"content": {media: {"schema": written} for media in media_types or ()}}


def _parameter(parameter: JSONObject) -> JSONObject:
    names = ("name", "in", "description", "required", "allowEmptyValue")
    converted = {name: parameter[name] for name in names if name in parameter} | _extensions(parameter)
    schema = parameter.get("schema")
    if schema is None:
        schema = {name: parameter[name] for name in ("type", "format", "uniqueItems", "items") if name in parameter}
    converted["schema"] = v3_schema(schema)
    return converted


def _resolve_parameters(uses: Iterable[JSONObject], parameters: Mapping[str, JSONObject]) -> list[JSONObject]:
    """Return the parameters, with references resolved."""
    found = []
    for use in uses:
        target = use.get("$ref")
        one = parameters.get(target.removeprefix(PARAMETERS)) if isinstance(target, str) else use
        if one is not None:
            found.append(one)
    return found


def _extensions(part: JSONObject) -> JSONObject:
    return {name: value for name, value in part.items() if name.startswith("x-")}
