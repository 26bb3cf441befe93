"""
Objects stored as protobuf, the default of kube-apiserver for built-in kinds.

They become what the same objects are as JSON, and the other way round.
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

#: What is quoted of names that are not known.
_SHOWN: Final = 80


def decode_stored(definitions: Definitions, value: bytes) -> JSONObject:
    """
    The object in a stored value, as if it had been stored as JSON in the version that it is in.

    @return: It has C{kind}, C{apiVersion} and C{metadata}.
    @raise UnknownFormatError: It is of a kind or version without types, or no object of one.
    @raise BodyError: It is damaged; so are WireError and DecodeError.
    """
    found = read_envelope(value)
    try:
        gvk = GroupVersionKind(*GroupVersion.parse(found.api_version), found.kind)
    except ValueError:
        gvk = None
    if gvk is None or not definitions.knows(gvk):
        raise unknown_format_error(found.kind, found.api_version)
    content = definitions.protobuf.decode(definitions.definition_of(gvk), found.raw)
    obj = definitions.type_for(gvk).decode(content, [])
    if not (obj.get("metadata") or {}).get("name"):
        raise UnknownFormatError(f"it is a {gvk.kind} without a name")
    return {**obj, "kind": gvk.kind, "apiVersion": gvk.api_version}


def encode_stored(definitions: Definitions, gvk: GroupVersionKind, body: bytes) -> bytes:
    """
    What kube-apiserver would store, octet by octet.

    @param body: The object as JSON; it says nothing of its revision.
    @raise WireError: It cannot be encoded.
    """
    message = definitions.protobuf.encode(definitions.definition_of(gvk), orjson.loads(body))
    return envelope(gvk.api_version, gvk.kind, message)


class StoredProtobuf:
    """Converts stored objects of a release."""

    def __init__(self, definitions: Definitions) -> None:
        """
        @param definitions: The types of the release.
        """
        self._definitions = definitions

    def decode(self, value: bytes) -> JSONObject:
        """See L{decode_stored}."""
        return decode_stored(self._definitions, value)

    def encode(self, gvk: GroupVersionKind, body: bytes) -> bytes:
        """
        See L{encode_stored}.

        @raise APIStatusError: The object cannot be written (500).
        """
        try:
            return encode_stored(self._definitions, gvk, body)
        except WireError as error:
            raise APIStatusError.internal(str(error)) from error


def unknown_format_error(kind: str, api_version: str) -> UnknownFormatError:
    """The error for a sound value of something that is not known; what it says of itself may be anything."""
    return UnknownFormatError(f"it is a {_shown(kind)} of {_shown(api_version)}, which is not known here")


def _shown(name: str) -> str:
    return name if len(name) <= _SHOWN and name.isascii() and name.isprintable() else quoted(name[:_SHOWN])
