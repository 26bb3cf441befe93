"""
Parsing of URLs as in Go's C{net/url}, with its error messages.

The rules are the same as in Go 1.26: the first colon of a host starts the port, and brackets contain IPv6 only.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote_plus, unquote_to_bytes

from attrs import evolve, frozen

from .netip import (
    AddressError,
    parse_address,
)
from .quote import quoted

## Escaping works on bytes. Each component of a URL has a set of bytes that are not escaped.

_UNRESERVED: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~"
_PATH: Final = _UNRESERVED + b"$&+,/:;=@"
_HOST: Final = _UNRESERVED + b"!$&'()*+,;=:[]<>\""
_USER: Final = _UNRESERVED + b"$&+,;="
_FRAGMENT: Final = _UNRESERVED + b"$&+,/:;=?@!()*"


def _escapes(plain: bytes) -> dict[int, str]:
    return {byte: f"%{byte:02X}" for byte in range(256) if byte not in plain}


_PATH_ESCAPES: Final = _escapes(_PATH)
_HOST_ESCAPES: Final = _escapes(_HOST)
_USER_ESCAPES: Final = _escapes(_USER)
_FRAGMENT_ESCAPES: Final = _escapes(_FRAGMENT)


def _any_of(plain: bytes) -> str:
    """Return a pattern that matches the hex digits of these bytes, grouped by the first digit for fast compilation."""
    groups: dict[str, str] = {}
    for byte in plain:
        high = f"{byte >> 4:x}"
        groups[high] = groups.get(high, "") + f"{byte & 15:x}"
    return "|".join(f"{high}[{low}]" for high, low in groups.items())


#: ASCII characters that are invalid in a host; the opposite set takes ten times as long to compile.
_FOREIGN: Final = f"[{re.escape(bytes(byte for byte in range(128) if byte not in _HOST + b'%').decode())}]"
#: The percent sign is the only ASCII character that may be escaped in a host.
_bad_in_host = re.compile(f"%(?!25|[89a-fA-F][0-9a-fA-F])|{_FOREIGN}").search
#: A zone may escape its allowed characters and spaces.
_bad_in_zone = re.compile(f"%(?!(?i:25|20|{_any_of(_HOST)}))|{_FOREIGN}").search

#: Characters kept as written in a path or fragment although escaping would encode them.
_KEPT: Final = b"!$&'()*+,;=:@[]%"
_kept_path: Final = re.compile(b"[" + re.escape(_PATH + _KEPT) + b"]*").fullmatch
_kept_fragment: Final = re.compile(b"[" + re.escape(_FRAGMENT + _KEPT) + b"]*").fullmatch

_control = re.compile("[\x00-\x1f\x7f]").search
_scheme = re.compile("([a-zA-Z][a-zA-Z0-9+.-]*):").match
_port = re.compile("(?::[0-9]*)?").fullmatch
_user_info = re.compile("[a-zA-Z0-9._:~!$&'()*+,;=%@-]*").fullmatch
_bad_escape = re.compile("%(?![0-9a-fA-F]{2})").search

#: The maximum number of query parameters; Go rejects the whole query beyond it.
_MAX_PARAMETERS: Final = 10_000


class URLError(ValueError):
    """A text that is not a URL."""


@frozen
class URL:
    """
    The components of a URL, unescaped except for those named raw.

    @ivar user: Name and password; the password is L{None} if absent.
    @ivar omit_host: Whether there are no slashes for a host: C{file:/path}.
    @ivar force_query: Whether the query is empty, but has a question mark.
    @ivar raw_path: The original escaped path, if escaping C{path} gives another text.
    """

    scheme: str = ""
    opaque: str = ""
    user: tuple[str, str | None] | None = None
    host: str = ""
    path: bytes = b""
    raw_path: str = ""
    omit_host: bool = False
    force_query: bool = False
    raw_query: str = ""
    fragment: bytes = b""
    raw_fragment: str = ""

    @property
    def hostname(self) -> str:
        """Return the host without a port and brackets."""
        return self._split_host()[0]

    @property
    def port(self) -> str:
        """Return the digits of the port, or C{""}."""
        return self._split_host()[1]

    def _split_host(self) -> tuple[str, str]:
        host, port = self.host, ""
        before, colon, after = host.rpartition(":")
        if colon and _port(f":{after}"):
            host, port = before, after
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port

    @property
    def escaped_path(self) -> str:
        """Return the escaped path: the original text if it is a valid escaping of the path."""
        if self.raw_path and _kept_path(self.raw_path.encode("utf-8", "replace")):
            return self.raw_path
        return "*" if self.path == b"*" else _escaped(self.path, _PATH_ESCAPES)

    @property
    def escaped_fragment(self) -> str:
        """Return the escaped fragment: the original text if it is a valid escaping of the fragment."""
        if self.raw_fragment and _kept_fragment(self.raw_fragment.encode("utf-8", "replace")):
            return self.raw_fragment
        return _escaped(self.fragment, _FRAGMENT_ESCAPES)

    @property
    def user_info(self) -> str:
        """Return name and password as in a URL; C{""} without them."""
        if self.user is None:
            return ""
        name, password = self.user
        shown = _escaped(name.encode(), _USER_ESCAPES)
        return shown if password is None else f"{shown}:{_escaped(password.encode(), _USER_ESCAPES)}"

    def query(self) -> dict[str, list[str]]:
        """Return the unescaped parameters; malformed pairs are ignored."""
        values: dict[str, list[str]] = {}
        if self.raw_query.count("&") >= _MAX_PARAMETERS:
            return values
        for pair in self.raw_query.split("&"):
            if not pair or ";" in pair:
                continue
            key, _, value = pair.partition("=")
            if _bad_escape(key) or _bad_escape(value):
                continue
            values.setdefault(_form_text(key), []).append(_form_text(value))
        return values

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            text += self.opaque
        else:
            path = self.escaped_path
            text += self._authority()
            if path and path[0] != "/" and self.host:
                text += "/"
            if not text and ":" in path.partition("/")[0]:
                text = "./"
            text += path
        if self.force_query or self.raw_query:
            text += f"?{self.raw_query}"
        if self.fragment:
            text += f"#{self.escaped_fragment}"
        return text

    def _authority(self) -> str:
        if not (self.scheme or self.host or self.user):
            return ""
        if self.omit_host and not self.host and not self.user:
            return ""
        text = "//" if self.host or self.path or self.user else ""
        if self.user:
            text += f"{self.user_info}@"
        return text + _escaped(self.host.encode(), _HOST_ESCAPES)


def parse_url(text: str) -> URL:
    """
    Parse a URL or URL reference with a fragment.

    @raise URLError: The value is invalid.
    """
    before, _, fragment = text.partition("#")
    try:
        url = _parse(before, via_request=False)
    except URLError as error:
        raise URLError(f"parse {quoted(before)}: {error}") from None
    if not fragment:
        return url
    try:
        unescaped = _unescaped(fragment)
    except URLError as error:
        raise URLError(f"parse {quoted(text)}: {error}") from None
    raw_fragment = "" if _escaped(unescaped, _FRAGMENT_ESCAPES) == fragment else fragment
    return evolve(url, fragment=unescaped, raw_fragment=raw_fragment)


def parse_request_uri(text: str) -> URL:
    """
    Parse the target of an HTTP request: an absolute URI or path, in which C{#} has no meaning.

    @raise URLError: The value is invalid.
    """
    try:
        return _parse(text, via_request=True)
    except URLError as error:
        raise URLError(f"parse {quoted(text)}: {error}") from None


def _parse(text: str, via_request: bool) -> URL:
    if _control(text):
        raise URLError("net/url: invalid control character in URL")
    if not text and via_request:
        raise URLError("empty url")
    if text == "*":
        return URL(path=b"*")
    scheme, rest = "", text
    match = _scheme(text)
    if match:
        scheme, rest = match[1].lower(), text[match.end() :]
    elif text.startswith(":"):
        raise URLError("missing protocol scheme")
    force_query = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    url = URL(scheme=scheme, force_query=force_query, raw_query=query)
    if not rest.startswith("/"):
        if scheme:
            return evolve(url, opaque=rest)
        if via_request:
            raise URLError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise URLError("first path segment in URL cannot contain colon")
    if rest.startswith("//") and (scheme or not (via_request or rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        user, host = _parse_authority(authority)
        url, rest = evolve(url, user=user, host=host), slash + path
    elif scheme:
        url = evolve(url, omit_host=True)
    unescaped = _unescaped(rest)
    return evolve(url, path=unescaped, raw_path="" if _escaped(unescaped, _PATH_ESCAPES) == rest else rest)


def _parse_authority(authority: str) -> tuple[tuple[str, str | None] | None, str]:
    before, at, host = authority.rpartition("@")
    host = _parse_host(host)
    if not at:
        return None, host
    if not _user_info(before):
        raise URLError("net/url: invalid userinfo")
    name, colon, password = before.partition(":")
    return (_text(_unescaped(name)), _text(_unescaped(password)) if colon else None), host


def _parse_host(host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise URLError("invalid IP-literal")
    if bracket < 0:
        colon = host.find(":")
        if colon >= 0 and not _port(host[colon:]):
            raise URLError(f"invalid port {quoted(host[colon:])} after host")
        return _unescaped_host(host)
    end = host.rfind("]")
    if end < 0:
        raise URLError("missing ']' in host")
    port = host[end + 1 :]
    if not _port(port):
        raise URLError(f"invalid port {quoted(port)} after host")
    name, percent, zone = host[1:end].partition("%25")
    name = _unescaped_host(name) + (_unescaped_host(percent + zone, zone=True) if percent else "")
    try:
        address, _ = parse_address(name)
    except AddressError as error:
        raise URLError(f"invalid host: {error}") from None
    if address.version == 4:
        raise URLError("invalid IP-literal")
    return f"[{name}]{port}"


def _unescaped_host(text: str, zone: bool = False) -> str:
    """Return an unescaped host, or the zone of an address."""
    bad = (_bad_in_zone if zone else _bad_in_host)(text)
    if bad and bad[0] != "%":
        raise URLError(f"invalid character {quoted(bad[0])} in host name")
    if bad:
        raise _bad_escape_error(text, bad.start())
    return _text(_unescaped(text))


def _bad_escape_error(text: str, position: int) -> URLError:
    # Go shows three bytes, which may cut a character.
    shown = text[position : position + 3].encode("utf-8", "replace")[:3]
    return URLError(f"invalid URL escape {quoted(_text(shown))}")


def escape_path(path: bytes) -> str:
    """Return the escaped path of a URL."""
    return _escaped(path, _PATH_ESCAPES)


def normalized_query(raw: bytes) -> str:
    """Return a query sorted by name and escaped uniformly; malformed pairs are removed."""
    values: dict[bytes, list[bytes]] = {}
    if raw.count(b"&") >= _MAX_PARAMETERS:
        return ""
    for pair in raw.split(b"&"):
        if not pair or b";" in pair or _bad_escape(pair.decode("latin-1")):
            continue
        key, _, value = pair.replace(b"+", b" ").partition(b"=")
        values.setdefault(unquote_to_bytes(key), []).append(unquote_to_bytes(value))
    return "&".join(f"{quote_plus(key)}={quote_plus(value)}" for key in sorted(values) for value in values[key])


def _unescaped(text: str) -> bytes:
    bad = _bad_escape(text)
    if bad:
        raise _bad_escape_error(text, bad.start())
    return unquote_to_bytes(text.encode("utf-8", "replace"))


def _escaped(part: bytes, escapes: dict[int, str]) -> str:
    return part.decode("latin-1").translate(escapes)


def _form_text(text: str) -> str:
    return _text(_unescaped(text.replace("+", " ")))


def _text(part: bytes) -> str:
    return part.decode("utf-8", "replace")
