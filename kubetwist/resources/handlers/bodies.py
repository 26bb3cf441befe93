"""Decodes the body of a request within limits, as an object of the endpoint's kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import orjson

from ...api.decoding import BodyError, Decoded, decode_cbor, decode_json, decode_yaml
from ...api.jsontypes import JSONValue
from ...api.listoptions import bad_delete_options
from ...api.resource import JSONObject
from ...http.negotiation import body_media
from ...http.request import KubeRequest
from ...registry.generic.codec import report_strict_errors
from ..endpoint import Endpoint

T = TypeVar("T")

#: YAML of more bytes is decoded and encoded in a thread, so as not to block the reactor.
YAML_IN_REACTOR = 16 * 1024
#: The same for JSON. Common documents take a few milliseconds per megabyte; a slower parser decodes those with
#: repeated keys.
JSON_IN_REACTOR = 64 * 1024
#: Documents of more bytes are indented in a thread.
PRETTY_IN_REACTOR = 512 * 1024
#: The same for protobuf, which takes as long as YAML of a tenth of its size.
PROTOBUF_IN_REACTOR = 256 * 1024
#: The same for CBOR.
CBOR_IN_REACTOR = 32 * 1024


async def read_document(request: KubeRequest, endpoint: Endpoint) -> tuple[Decoded, bytes]:
    """
    Parse the body.

    @return: The document, and the bytes that it was; for CBOR the same document in JSON, which is how errors quote it.
    @raise APIStatusError: Another media type (415), or not parsable (400).
    """
    media = body_media(request.header(b"content-type"), request.site.serves_cbor)
    data = request.read_body()
    try:
        if media == "json":
            if len(data) <= JSON_IN_REACTOR:
                return decode_json(data), data
            return await decode_large(endpoint, decode_json, data, JSON_IN_REACTOR), data
        if media == "yaml":
            return await decode_large(endpoint, decode_yaml, data, YAML_IN_REACTOR), data
        if media == "cbor":
            return await decode_large(endpoint, _cbor_as_json, data, CBOR_IN_REACTOR)
        return await decode_large(endpoint, endpoint.codec.read_protobuf, data, PROTOBUF_IN_REACTOR), data
    except BodyError as error:
        raise endpoint.codec.unrecognized(error.as_body_of_object(), data) from None


async def read_delete_body(request: KubeRequest, endpoint: Endpoint, data: bytes) -> JSONValue:
    """
    Parse the body of a DELETE.

    @return: The value, which should be C{DeleteOptions}.
    @raise APIStatusError: Another media type (415), or not parsable (400).
    """
    media = body_media(request.getHeader(b"content-type"), request.site.serves_cbor)
    try:
        if media == "json":
            return (await decode_large(endpoint, decode_json, data, JSON_IN_REACTOR)).value
        if media == "yaml":
            return (await decode_large(endpoint, decode_yaml, data, YAML_IN_REACTOR)).value
        if media == "cbor":
            return (await decode_large(endpoint, _cbor_as_json, data, CBOR_IN_REACTOR))[0].value
        return await decode_large(endpoint, endpoint.codec.read_delete_options, data, PROTOBUF_IN_REACTOR)
    except BodyError as error:
        raise bad_delete_options(error.as_body_of_object()) from None


def _cbor_as_json(data: bytes) -> tuple[Decoded, bytes]:
    """Decode CBOR to a JSON document; the reference reports its errors when it reads the kind."""
    try:
        document = decode_cbor(data)
    except BodyError as error:
        raise BodyError(f"unable to determine group/version/kind: {error}", json=False) from None
    return document, orjson.dumps(document.value)


async def decode_large(endpoint: Endpoint, decode: Callable[[bytes], T], data: bytes, limit: int) -> T:
    """
    Decode a body, in a thread if it is large.

    @param endpoint: Provides the thread.
    @param decode: The decoder.
    @param data: The body.
    @param limit: Maximum size in bytes of bodies that are decoded in the reactor's thread.
    @return: The result of C{decode}.
    """
    if len(data) <= limit:
        return decode(data)
    decoded: T = await endpoint.defer_to_thread(decode, data)
    return decoded


def decode_object(
    request: KubeRequest, endpoint: Endpoint, document: Decoded, data: bytes, field_validation: str
) -> JSONObject:
    """
    Decode a document to an object in the endpoint's version.

    @raise APIStatusError: It is another kind, badly typed, or has fields that strict validation forbids (400).
    """
    errors: list[str] = []
    obj = endpoint.codec.decode(document.value, errors, data, json=not document.by_map)
    if errors or document.duplicates:
        gvk = endpoint.gvk
        errors = endpoint.codec.strict_decoding_errors(document, errors, data)
        report_strict_errors(errors, field_validation, request.warn, gvk.kind, gvk.version)
    return obj


def namespace_mismatch(namespace: str, body_namespace: JSONValue) -> str | None:
    """Return the mismatch between the namespace in a body and the one in the path; L{None} if they agree."""
    if namespace and body_namespace and body_namespace != namespace:
        return "the namespace of the provided object does not match the namespace sent on the request"
    return None


def name_mismatch(name: str, body_name: JSONValue) -> str | None:
    """Return the mismatch between the name in a body and the one in the path; L{None} if they agree."""
    if not body_name:
        return f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
    if body_name != name:
        return f"the name of the object ({body_name}) does not match the name on the URL ({name})"
    return None
