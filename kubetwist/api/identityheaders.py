"""
Headers with user identities: for impersonation and from authenticating proxies.

The server and the proxies in front of it must interpret such headers alike. Therefore ambiguous headers are rejected:
repeated fields, control characters, bytes that are not UTF-8, and names that equal another field's name with
underscores replaced by dashes, as gateways do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import quote, unquote

from .go.quote import quoted
from .resource import UserInfo

_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
#: Characters other than letters and digits that are allowed unescaped in field names.
_IN_NAMES: Final = "!#$&'*+-.^_`|~"
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")

Fields = Mapping[bytes, Sequence[bytes]]


class AmbiguousHeaderError(ValueError):
    """A header that is invalid, or that servers may interpret differently; the text is the reason."""


def canonical_field_name(name: bytes) -> str:
    """Return the canonical form of a field name: C{X-Remote-User}."""
    return name.decode("latin-1").title()


def decode_field_value(name: bytes, value: bytes) -> str:
    """
    Return one value of a field as text.

    @raise AmbiguousHeaderError: The value is not text.
    """
    if _CONTROL.search(value):
        raise AmbiguousHeaderError(f"the header {canonical_field_name(name)} has control characters")
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise AmbiguousHeaderError(f"the header {canonical_field_name(name)} is not UTF-8") from None


def optional_field(fields: Fields, name: bytes) -> str:
    """
    Return the value of an optional field; C{""} without it.

    @raise AmbiguousHeaderError: The field is repeated, or is not text.
    """
    values = fields.get(name)
    if not values:
        return ""
    if len(values) > 1:
        raise AmbiguousHeaderError(f"the header {canonical_field_name(name)} is repeated")
    return decode_field_value(name, values[0])


def extra_key(name: bytes, prefix: bytes) -> str:
    """
    Return a field name without C{prefix}, in lower case and percent-decoded; unchanged if badly encoded.

    @raise AmbiguousHeaderError: The name is not text.
    """
    key = name[len(prefix) :].decode("latin-1").lower()
    if "%" not in key or _BAD_ESCAPE.search(key):
        return key
    try:
        return unquote(key, errors="strict")
    except UnicodeDecodeError:
        raise AmbiguousHeaderError(f"the header {canonical_field_name(name)} is not UTF-8") from None


def check_names(fields: Iterable[bytes], exact: Collection[bytes], prefixes: Sequence[bytes]) -> None:
    """
    Reject field names that other servers may mistake for known ones.

    @param fields: The names of all fields.
    @param exact: Known names, in lower case.
    @param prefixes: Prefixes of known names.
    @raise AmbiguousHeaderError: There is such a field.
    """
    for name in fields:
        if b"_" not in name or name in exact:
            continue
        dashed = name.replace(b"_", b"-")
        if dashed in exact or any(dashed.startswith(known) and not name.startswith(known) for known in prefixes):
            raise AmbiguousHeaderError(
                f"the header {canonical_field_name(name)} can be taken for {canonical_field_name(dashed)}"
            )


def identity_fields(user: UserInfo, *, with_uid: bool = True) -> list[tuple[bytes, bytes]]:
    """
    Return the standard header fields that identify the user to another server.

    Characters that are invalid in field names are percent-encoded in keys of extra values.

    @param with_uid: Whether the uid is sent: the feature gate RemoteRequestHeaderUID.
    @raise AmbiguousHeaderError: A value is invalid in a header.
    """
    fields = [(b"X-Remote-User", user.name)]
    if user.uid and with_uid:
        fields.append((b"X-Remote-Uid", user.uid))
    fields += [(b"X-Remote-Group", group) for group in user.groups]
    for key, values in user.extra.items():
        name = b"X-Remote-Extra-" + quote(key, safe=_IN_NAMES).encode()
        fields += [(name, value) for value in values]
    return [(name, _value(name, value)) for name, value in fields]


def _value(name: bytes, value: str) -> bytes:
    encoded = value.encode("utf-8", "surrogateescape")
    if _CONTROL.search(encoded):
        raise AmbiguousHeaderError(f"net/http: invalid header field value for {quoted(canonical_field_name(name))}")
    return encoded
