"""
Discovery documents, and Status objects for their errors, in protobuf.

As in the reference, a field is written even where it has no value, as empty as it is; of a list there is as much as
there are items.

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
    put_counted,
    put_key,
    put_varint,
)

#: Writes a field from its value, or from L{None} where there is none.
Field = Callable[[JSONValue], bytes]
#: The fields of a message, in the order of their numbers.
Fields = Mapping[str, Field]


def encode_protobuf(document: JSONObject) -> bytes:
    """
    Return a document as a C{runtime.Unknown}.

    @raise KeyError: The kind is not supported here.
    """
    body = _message(_KINDS[document["kind"]], document)
    return envelope(document.get("apiVersion", ""), document["kind"], body)


def text(number: int) -> Field:
    """Return a text."""
    return lambda value: put_counted(number, (value or "").encode())


def texts(number: int) -> Field:
    """Return a list of texts."""
    return lambda values: b"".join([put_counted(number, value.encode()) for value in values or ()])


def whole(number: int) -> Field:
    """Encode a number or a boolean."""
    return lambda value: put_key(number, VARINT) + put_varint(int(value or 0))


def one(number: int, fields: Fields) -> Field:
    """Return a message."""
    return lambda value: put_counted(number, _message(fields, value))


def perhaps(number: int, fields: Fields) -> Field:
    """Return a message that may be missing."""
    return lambda value: b"" if value is None else put_counted(number, _message(fields, value))


def each(number: int, fields: Fields) -> Field:
    """Return a list of messages."""
    return lambda values: b"".join([put_counted(number, _message(fields, value)) for value in values or ()])


def _message(fields: Fields, value: JSONObject | None) -> bytes:
    value = value or {}
    return b"".join([write(value.get(name)) for name, write in fields.items()])


def _verbs(verbs: JSONValue) -> bytes:
    """Encode verbs, which have a message type of their own."""
    return b"" if verbs is None else put_counted(4, texts(1)(verbs))


_LIST_META: Final = {"selfLink": text(1), "resourceVersion": text(2), "continue": text(3)}
_OBJECT_META: Final = {
    "name": text(1),
    "generateName": text(2),
    "namespace": text(3),
    "selfLink": text(4),
    "uid": text(5),
    "resourceVersion": text(6),
    "generation": whole(7),
    "creationTimestamp": one(8, {}),
}
_CAUSE: Final = {"reason": text(1), "message": text(2), "field": text(3)}
_STATUS: Final = {
    "metadata": one(1, _LIST_META),
    "status": text(2),
    "message": text(3),
    "reason": text(4),
    "details": perhaps(
        5,
        {
            "name": text(1),
            "group": text(2),
            "kind": text(3),
            "causes": each(4, _CAUSE),
            "retryAfterSeconds": whole(5),
            "uid": text(6),
        },
    ),
    "code": whole(6),
}

_ADDRESS: Final = {"clientCIDR": text(1), "serverAddress": text(2)}
_VERSION: Final = {"groupVersion": text(1), "version": text(2)}
_GROUP: Final = {
    "name": text(1),
    "versions": each(2, _VERSION),
    "preferredVersion": one(3, _VERSION),
    "serverAddressByClientCIDRs": each(4, _ADDRESS),
}
_RESOURCE: Final = {
    "name": text(1),
    "namespaced": whole(2),
    "kind": text(3),
    "verbs": _verbs,
    "shortNames": texts(5),
    "singularName": text(6),
    "categories": texts(7),
    "group": text(8),
    "version": text(9),
    "storageVersionHash": text(10),
}

_KIND: Final = {"group": text(1), "version": text(2), "kind": text(3)}
_DISCOVERED_SUBRESOURCE: Final = {
    "subresource": text(1),
    "responseKind": perhaps(2, _KIND),
    "acceptedTypes": each(3, _KIND),
    "verbs": texts(4),
}
_DISCOVERED_RESOURCE: Final = {
    "resource": text(1),
    "responseKind": perhaps(2, _KIND),
    "scope": text(3),
    "singularResource": text(4),
    "verbs": texts(5),
    "shortNames": texts(6),
    "categories": texts(7),
    "subresources": each(8, _DISCOVERED_SUBRESOURCE),
}
_DISCOVERED_VERSION: Final = {"version": text(1), "resources": each(2, _DISCOVERED_RESOURCE), "freshness": text(3)}

_KINDS: Final[Mapping[str, Fields]] = {
    "Status": _STATUS,
    "APIVersions": {"versions": texts(1), "serverAddressByClientCIDRs": each(2, _ADDRESS)},
    "APIGroup": _GROUP,
    "APIGroupList": {"groups": each(1, _GROUP)},
    "APIResourceList": {"groupVersion": text(1), "resources": each(2, _RESOURCE)},
    "APIGroupDiscoveryList": {
        "metadata": one(1, _LIST_META),
        "items": each(2, {"metadata": one(1, _OBJECT_META), "versions": each(2, _DISCOVERED_VERSION)}),
    },
}
