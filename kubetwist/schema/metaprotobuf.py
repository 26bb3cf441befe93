"""
Protobuf encoding of discovery documents and Status objects.

As in Go's generated marshalers, fields are encoded even if they are empty; lists and maps are encoded once per item.

@see: kubernetes/apimachinery, C{pkg/apis/meta/v1/generated.proto}; kubernetes/api, C{apidiscovery/v2/generated.proto}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject
from .protobuf.encoding import envelope
from .protobuf.wire import (
    VARINT,
    encode_length_delimited,
    encode_tag,
    encode_varint,
)

#: Encodes a field with a value; L{None} stands for an absent value.
Field = Callable[[JSONValue], bytes]
#: The fields of a message, in the order of their numbers.
Fields = Mapping[str, Field]


def encode_protobuf(document: JSONObject) -> bytes:
    """
    Encode a document as a C{runtime.Unknown}.

    @raise KeyError: The kind is not supported here.
    """
    body = _message(_KINDS[document["kind"]], document)
    return envelope(document.get("apiVersion", ""), document["kind"], body)


def string_field(number: int) -> Field:
    """Return an encoder of a string field."""
    return lambda value: encode_length_delimited(number, (value or "").encode())


def string_list_field(number: int) -> Field:
    """Return an encoder of a list of strings."""
    return lambda values: b"".join([encode_length_delimited(number, value.encode()) for value in values or ()])


def integer_field(number: int) -> Field:
    """Return an encoder of an integer or boolean field."""
    return lambda value: encode_tag(number, VARINT) + encode_varint(int(value or 0))


def message_field(number: int, fields: Fields) -> Field:
    """Return an encoder of a message that is always present."""
    return lambda value: encode_length_delimited(number, _message(fields, value))


def optional_message_field(number: int, fields: Fields) -> Field:
    """Return an encoder of an optional message."""
    return lambda value: b"" if value is None else encode_length_delimited(number, _message(fields, value))


def message_list_field(number: int, fields: Fields) -> Field:
    """Return an encoder of a list of messages."""
    return lambda values: b"".join([encode_length_delimited(number, _message(fields, value)) for value in values or ()])


def _message(fields: Fields, value: JSONObject | None) -> bytes:
    value = value or {}
    return b"".join([write(value.get(name)) for name, write in fields.items()])


def _verbs(verbs: JSONValue) -> bytes:
    """Encode verbs, which have a separate message type."""
    return b"" if verbs is None else encode_length_delimited(4, string_list_field(1)(verbs))


_LIST_META: Final = {"selfLink": string_field(1), "resourceVersion": string_field(2), "continue": string_field(3)}
_OBJECT_META: Final = {
    "name": string_field(1),
    "generateName": string_field(2),
    "namespace": string_field(3),
    "selfLink": string_field(4),
    "uid": string_field(5),
    "resourceVersion": string_field(6),
    "generation": integer_field(7),
    "creationTimestamp": message_field(8, {}),
}
_CAUSE: Final = {"reason": string_field(1), "message": string_field(2), "field": string_field(3)}
_STATUS: Final = {
    "metadata": message_field(1, _LIST_META),
    "status": string_field(2),
    "message": string_field(3),
    "reason": string_field(4),
    "details": optional_message_field(
        5,
        {
            "name": string_field(1),
            "group": string_field(2),
            "kind": string_field(3),
            "causes": message_list_field(4, _CAUSE),
            "retryAfterSeconds": integer_field(5),
            "uid": string_field(6),
        },
    ),
    "code": integer_field(6),
}

_ADDRESS: Final = {"clientCIDR": string_field(1), "serverAddress": string_field(2)}
_VERSION: Final = {"groupVersion": string_field(1), "version": string_field(2)}
_GROUP: Final = {
    "name": string_field(1),
    "versions": message_list_field(2, _VERSION),
    "preferredVersion": message_field(3, _VERSION),
    "serverAddressByClientCIDRs": message_list_field(4, _ADDRESS),
}
_RESOURCE: Final = {
    "name": string_field(1),
    "namespaced": integer_field(2),
    "kind": string_field(3),
    "verbs": _verbs,
    "shortNames": string_list_field(5),
    "singularName": string_field(6),
    "categories": string_list_field(7),
    "group": string_field(8),
    "version": string_field(9),
    "storageVersionHash": string_field(10),
}

_KIND: Final = {"group": string_field(1), "version": string_field(2), "kind": string_field(3)}
_DISCOVERED_SUBRESOURCE: Final = {
    "subresource": string_field(1),
    "responseKind": optional_message_field(2, _KIND),
    "acceptedTypes": message_list_field(3, _KIND),
    "verbs": string_list_field(4),
}
_DISCOVERED_RESOURCE: Final = {
    "resource": string_field(1),
    "responseKind": optional_message_field(2, _KIND),
    "scope": string_field(3),
    "singularResource": string_field(4),
    "verbs": string_list_field(5),
    "shortNames": string_list_field(6),
    "categories": string_list_field(7),
    "subresources": message_list_field(8, _DISCOVERED_SUBRESOURCE),
}
_DISCOVERED_VERSION: Final = {
    "version": string_field(1),
    "resources": message_list_field(2, _DISCOVERED_RESOURCE),
    "freshness": string_field(3),
}

_KINDS: Final[Mapping[str, Fields]] = {
    "Status": _STATUS,
    "APIVersions": {"versions": string_list_field(1), "serverAddressByClientCIDRs": message_list_field(2, _ADDRESS)},
    "APIGroup": _GROUP,
    "APIGroupList": {"groups": message_list_field(1, _GROUP)},
    "APIResourceList": {"groupVersion": string_field(1), "resources": message_list_field(2, _RESOURCE)},
    "APIGroupDiscoveryList": {
        "metadata": message_field(1, _LIST_META),
        "items": message_list_field(
            2, {"metadata": message_field(1, _OBJECT_META), "versions": message_list_field(2, _DISCOVERED_VERSION)}
        ),
    },
}
