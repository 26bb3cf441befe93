"""
Functions on URLs.

See kubernetes/apiserver, C{pkg/cel/library/urls.go}.
"""

from __future__ import annotations

from typing import Final

from kubetwist.api.go.url import (
    URL,
    URLError,
    parse_request_uri,
    parse_url,
)
from kubetwist.cel.errors import CelError
from kubetwist.cel.functions import Library, Overload, function, member, overload
from kubetwist.cel.types import BOOL, STRING, ObjectType, list_of, map_of
from kubetwist.cel.values import OpaqueValue, Value

URL_TYPE: Final = ObjectType("kubernetes.URL")


class URLValue(OpaqueValue):
    """A URL."""

    __slots__ = ("url",)
    cel_type = URL_TYPE

    def __init__(self, url: URL) -> None:
        self.url = url

    def equals(self, other: Value) -> bool:
        """Compare URLs as strings."""
        return isinstance(other, URLValue) and str(self.url) == str(other.url)


def _url(text: str) -> URLValue:
    try:
        # parse_request_uri() validates, but does not parse fragments.
        parse_request_uri(text)
        return URLValue(parse_url(text))
    except URLError as error:
        raise CelError(f"URL parse error during conversion from string: {error}") from None


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except URLError:
        return False
    return True


def _scheme(value: URLValue) -> str:
    return value.url.scheme


def _host(value: URLValue) -> str:
    return value.url.host


def _hostname(value: URLValue) -> str:
    return value.url.hostname


def _port(value: URLValue) -> str:
    return value.url.port


def _escaped_path(value: URLValue) -> str:
    return value.url.escaped_path


def _query(value: URLValue) -> dict[str, list[str]]:
    return value.url.query()


def _getter(id: str, call: object) -> Overload:
    return member(id, (URL_TYPE,), STRING, call)  # type: ignore[arg-type]


URLS: Final = Library(
    "kubernetes.urls",
    [
        function("url", overload("string_to_url", (STRING,), URL_TYPE, _url)),
        function("getScheme", _getter("url_get_scheme", _scheme)),
        function("getHost", _getter("url_get_host", _host)),
        function("getHostname", _getter("url_get_hostname", _hostname)),
        function("getPort", _getter("url_get_port", _port)),
        function("getEscapedPath", _getter("url_get_escaped_path", _escaped_path)),
        function("getQuery", member("url_get_query", (URL_TYPE,), map_of(STRING, list_of(STRING)), _query)),
        function("isURL", overload("is_url_string", (STRING,), BOOL, _is_url)),
    ],
)
