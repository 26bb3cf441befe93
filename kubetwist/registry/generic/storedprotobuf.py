"""
The codec of objects that are stored as protobuf, the default of kube-apiserver for built-in kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.resource import GroupVersion, GroupVersionKind, JSONObject
from ...schema.protobuf.codec import read_envelope
from ...schema.protobuf.encoding import envelope
from ...schema.protobuf.wire import WireError
from ...storage.errors import UnknownFormatError

if TYPE_CHECKING:
    from ...schema.definitions import Definitions

#: Maximum length of an unknown name in an error.
_MAX_QUOTED_LENGTH: Final = 80


def decode_stored(definitions: Definitions, value: bytes) -> JSONObject:
    """
    Decode a stored value into the object, in the version in which it is stored.

    @return: The object, with C{kind}, C{apiVersion} and C{metadata}.
    @raise UnknownFormatError: The kind or version has no type definition, or the object has no name.
    @raise BodyError: The value is corrupt; L{WireError} and L{DecodeError} are raised for corrupt content.
    """
    envelope_fields = read_envelope(value)
    try:
        gvk = GroupVersionKind(*GroupVersion.parse(envelope_fields.api_version), envelope_fields.kind)
    except ValueError:
        gvk = None
    if gvk is None or not definitions.has_kind(gvk):
        raise unknown_format_error(envelope_fields.kind, envelope_fields.api_version)
    content = definitions.protobuf.decode(definitions.definition_of(gvk), envelope_fields.raw)
    obj = definitions.type_for(gvk).decode(content, [])
    if not (obj.get("metadata") or {}).get("name"):
        raise UnknownFormatError(f"it is a {gvk.kind} without a name")
    return {**obj, "kind": gvk.kind, "apiVersion": gvk.api_version}


def encode_stored(definitions: Definitions, gvk: GroupVersionKind, body: bytes) -> bytes:
    """
    Encode an object, byte for byte as kube-apiserver stores it.

    @param body: The object as JSON, without a resourceVersion.
    @raise WireError: The object cannot be encoded.
    """
    message = definitions.protobuf.encode(definitions.definition_of(gvk), orjson.loads(body))
    return envelope(gvk.api_version, gvk.kind, message)


class StoredProtobuf:
    """The codec of objects that are stored as protobuf, for the types of a release."""

    def __init__(self, definitions: Definitions) -> None:
        """
        @param definitions: The type definitions of the release.
        """
        self._definitions = definitions

    def decode(self, value: bytes) -> JSONObject:
        """See L{decode_stored}."""
        return decode_stored(self._definitions, value)

    def encode(self, gvk: GroupVersionKind, body: bytes) -> bytes:
        """
        See L{encode_stored}.

        @raise APIStatusError: The object cannot be encoded (500).
        """
        try:
            return encode_stored(self._definitions, gvk, body)
        except WireError as error:
            raise APIStatusError.internal(str(error)) from error


def unknown_format_error(kind: str, api_version: str) -> UnknownFormatError:
    """Return the error for a stored value of an unknown kind or version, whose names may be arbitrary texts."""
    return UnknownFormatError(f"it is a {_format_name(kind)} of {_format_name(api_version)}, which is not known here")


def _format_name(name: str) -> str:
    if len(name) <= _MAX_QUOTED_LENGTH and name.isascii() and name.isprintable():
        return name
    return quoted(name[:_MAX_QUOTED_LENGTH])
