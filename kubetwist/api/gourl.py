"""
URLs as Go's C{net/url} takes them apart, with its words for those that are none.

The rules are those of Go 1.26, where a host's first colon begins the port and brackets hold nothing but IPv6.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import evolve, frozen

from .goquote import quoted
from .netip import AddressError, parse_address

# Escaping is done on bytes. Each part of a URL has its own set of those that stand for themselves.

_UNRESERVED: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~"
_IN_PATH: Final = frozenset(_UNRESERVED + b"$&+,/:;=@")
_IN_HOST: Final = frozenset(_UNRESERVED + b"!$&'()*+,;=:[]<>\"")
_IN_USER: Final = frozenset(_UNRESERVED + b"$&+,;=")
_IN_FRAGMENT: Final = frozenset(_UNRESERVED + b"$&+,/:;=?@!()*")

#: What may stand in a path or fragment as it was written, though escaping would write it otherwise.
_KEPT: Final = frozenset(b"!$&'()*+,;=:@[]%")

_control = re.compile("[\x00-\x1f\x7f]").search
_scheme = re.compile("([a-zA-Z][a-zA-Z0-9+.-]*):").match
_port = re.compile("(?::[0-9]*)?").fullmatch
_user_info = re.compile("[a-zA-Z0-9._:~!$&'()*+,;=%@-]*").fullmatch
_bad_escape = re.compile("%(?![0-9a-fA-F]{2})").search
_escape = re.compile(b"%([0-9a-fA-F]{2})").sub

#: More parameters than these make a query that nobody meant; Go takes none of it then.
_MOST_PARAMETERS: Final = 10_000


class URLError(ValueError):
    """A text that is no URL."""


@frozen
class URL:
    """
    A URL's parts, unescaped but for those that are named raw.

    @ivar user: Name and password; L{None} for the password when there is none.
    @ivar omit_host: There were no slashes for a host: C{file:/path}.
    @ivar force_query: There was a question mark, and nothing behind it.
    @ivar raw_path: The path as it was written where escaping it again would write it otherwise.
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
        """The host without a port and brackets."""
        return self._split_host()[0]

    @property
    def port(self) -> str:
        """Digits, or C{""}."""
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
        """The path as it goes into a URL: as it was written, if that is a way to write it."""
        return "*" if self.path == b"*" and not self.raw_path else _written(self.raw_path, self.path, _IN_PATH)

    def query(self) -> dict[str, list[str]]:
        """The parameters, unescaped; pairs that make no sense are left out."""
        values: dict[str, list[str]] = {}
        if self.raw_query.count("&") >= _MOST_PARAMETERS:
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
            text += f"#{_written(self.raw_fragment, self.fragment, _IN_FRAGMENT)}"
        return text

    def _authority(self) -> str:
        if not (self.scheme or self.host or self.user):
            return ""
        if self.omit_host and not self.host and not self.user:
            return ""
        text = "//" if self.host or self.path or self.user else ""
        if self.user:
            name, password = self.user
            text += _escaped(name.encode(), _IN_USER)
            text += "@" if password is None else f":{_escaped(password.encode(), _IN_USER)}@"
        return text + _escaped(self.host.encode(), _IN_HOST)


def parse_url(text: str) -> URL:
    """
    Read a URL or a reference to one, with a fragment.

    @raise URLError: It is none.
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
    kept = "" if _escaped(unescaped, _IN_FRAGMENT) == fragment else fragment
    return evolve(url, fragment=unescaped, raw_fragment=kept)


def parse_request_uri(text: str) -> URL:
    """
    Read what stands in an HTTP request: an absolute URI or path, whose C{#} means nothing.

    @raise URLError: It is none.
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
    found = _scheme(text)
    if found:
        scheme, rest = found[1].lower(), text[found.end() :]
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
    return evolve(url, path=unescaped, raw_path="" if _escaped(unescaped, _IN_PATH) == rest else rest)


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
    """
    A host, or the zone of an address, in which only a few characters of ASCII may stand.

    A host may escape none of ASCII but the percent sign, a zone what it may hold unescaped, and blanks.
    """
    for index, character in enumerate(text):
        if character == "%":
            escape = text[index : index + 3]
            if _bad_escape(escape):
                break
            byte = int(escape[1:], 16)
            allowed = byte == 0x20 or byte in _IN_HOST if zone else byte >= 0x80
            if escape != "%25" and not allowed:
                raise URLError(f"invalid URL escape {quoted(escape)}")
        elif character < "\x80" and ord(character) not in _IN_HOST:
            raise URLError(f"invalid character {quoted(character)} in host name")
    return _text(_unescaped(text))


def _unescaped(text: str) -> bytes:
    bad = _bad_escape(text)
    if bad:
        # Three bytes are shown, of which a character may be cut.
        shown = text[bad.start() :].encode("utf-8", "replace")[:3]
        raise URLError(f"invalid URL escape {quoted(_text(shown))}")
    return _escape(lambda match: bytes((int(match[1], 16),)), text.encode("utf-8", "replace"))


def _escaped(part: bytes, plain: frozenset[int]) -> str:
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in part)


def _written(raw: str, part: bytes, plain: frozenset[int]) -> str:
    """A part as it was written, if nothing in it would have to be escaped."""
    if raw and all(byte in plain or byte in _KEPT for byte in raw.encode("utf-8", "replace")):
        return raw
    return _escaped(part, plain)


def _form_text(text: str) -> str:
    return _text(_unescaped(text.replace("+", " ")))


def _text(part: bytes) -> str:
    return part.decode("utf-8", "replace")
