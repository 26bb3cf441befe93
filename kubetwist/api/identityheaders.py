"""
Headers that carry user identities: those of impersonation and of authenticating proxies.

A proxy in front of the server and the server must read such a header alike. So ambiguous headers are refused: repeated
fields, control characters, bytes that are not UTF-8, and names that equal another field's once underscores are
replaced by dashes, as gateways do.
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
    """A header can be understood in several ways, or in none; the text says which one and how."""


def shown(name: bytes) -> str:
    """Return the name of a field as it is usually written: C{X-Remote-User}."""
    return name.decode("latin-1").title()


def text(name: bytes, value: bytes) -> str:
    """
    Return one value of a field as text.

    @raise AmbiguousHeaderError: It is not text.
    """
    if _CONTROL.search(value):
        raise AmbiguousHeaderError(f"the header {shown(name)} has control characters")
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise AmbiguousHeaderError(f"the header {shown(name)} is not UTF-8") from None


def single(fields: Fields, name: bytes) -> str:
    """
    Return the value of a field that may be there once; C{""} without it.

    @raise AmbiguousHeaderError: It is repeated, or no text.
    """
    values = fields.get(name)
    if not values:
        return ""
    if len(values) > 1:
        raise AmbiguousHeaderError(f"the header {shown(name)} is repeated")
    return text(name, values[0])


def extra_key(name: bytes, prefix: bytes) -> str:
    """
    Return a field name without C{prefix}, in lower case and percent-decoded; unchanged if badly encoded.

    @raise AmbiguousHeaderError: It is not text.
    """
    key = name[len(prefix) :].decode("latin-1").lower()
    if "%" not in key or _BAD_ESCAPE.search(key):
        return key
    try:
        return unquote(key, errors="strict")
    except UnicodeDecodeError:
        raise AmbiguousHeaderError(f"the header {shown(name)} is not UTF-8") from None


def check_names(fields: Iterable[bytes], exact: Collection[bytes], prefixes: Sequence[bytes]) -> None:
    """
    Reject fields that other servers may mistake for known ones.

    @param exact: Names of ours, in lower case.
    @param prefixes: The prefixes of other known names.
    @raise AmbiguousHeaderError: There is one.
    """
    for name in fields:
        if b"_" not in name or name in exact:
            continue
        dashed = name.replace(b"_", b"-")
        if dashed in exact or any(dashed.startswith(ours) and not name.startswith(ours) for ours in prefixes):
            raise AmbiguousHeaderError(f"the header {shown(name)} can be taken for {shown(dashed)}")


def identity_fields(user: UserInfo) -> list[tuple[bytes, bytes]]:
    """
    Return the header fields that name the requesting user to another server, in their usual names.

    Keys of extra values are percent-encoded where names of fields cannot have their characters.

    @raise AmbiguousHeaderError: Something about the user cannot stand in a field.
    """
    found = [(b"X-Remote-User", user.name)]
    if user.uid:
        found.append((b"X-Remote-Uid", user.uid))
    found += [(b"X-Remote-Group", group) for group in user.groups]
    for key, values in user.extra.items():
        name = b"X-Remote-Extra-" + quote(key, safe=_IN_NAMES).encode()
        found += [(name, value) for value in values]
    return [(name, _value(name, value)) for name, value in found]


def _value(name: bytes, value: str) -> bytes:
    encoded = value.encode("utf-8", "surrogateescape")
    if _CONTROL.search(encoded):
        raise AmbiguousHeaderError(f"net/http: invalid header field value for {quoted(shown(name))}")
    return encoded
