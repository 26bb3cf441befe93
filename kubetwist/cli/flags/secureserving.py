"""Flags of how this server is served, and of what browsers are told of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...api.patterns import PatternError, compiled
from ...http.connection.ciphers import openssl_ciphers
from ...server.credentials.namedcertificates import parse_named_files
from ..flagtypes import BOOLEAN, DURATION, NATURAL, STRINGS, Kind

Row = tuple[str, Kind, Any, str]


def _checked(check: Callable[[tuple[str, ...]], object]) -> Kind:
    def parse(text: str) -> Any:
        values: tuple[str, ...] = STRINGS.parse(text)
        check(values)
        return values

    return Kind(parse, STRINGS.shown, add=STRINGS.add)


def _check_directives(directives: tuple[str, ...]) -> None:
    for directive in directives:
        name, equals, value = directive.partition("=")
        if directive not in ("includeSubDomains", "preload") and not (name == "max-age" and equals and value.isdigit()):
            raise ValueError("allowed values: max-age=expireTime, includeSubDomains, preload")


def _check_origins(patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        try:
            compiled(pattern)
        except PatternError as error:
            raise ValueError(str(error)) from None
        # What is found anywhere in an origin is also found in those that somebody else has made up.
        if not any(begin in pattern for begin in ("^", "//")) or not any(end in pattern for end in ("$", ":")):
            raise ValueError("regular expression does not pin to start/end of host in the origin header")


#: By section.
ROWS: Final[dict[str, list[Row]]] = {
    "Generic": [
        (
            "cors-allowed-origins",
            _checked(_check_origins),
            (),
            "Patterns for the origins whose pages may ask this server from a browser, such as //example[.]com(:|$).",
        ),
        (
            "strict-transport-security-directives",
            _checked(_check_directives),
            (),
            "What the header Strict-Transport-Security of all answers says: max-age=31536000, includeSubDomains,"
            " preload. There is none without it.",
        ),
        (
            "livez-grace-period",
            DURATION,
            0.0,
            "How long /livez takes no offence at what the server does at its start, and has not done yet.",
        ),
        (
            "shutdown-send-retry-after",
            BOOLEAN,
            False,
            "Whether a server that stops goes on listening until open requests are answered, and tells those who come"
            " to come again: 429. Otherwise they find nobody.",
        ),
        (
            "shutdown-watch-termination-grace-period",
            DURATION,
            0.0,
            "Over how long a server that stops spreads the end of its watches, so that not all clients come to another"
            " one at once.",
        ),
    ],
    "Secure serving": [
        (
            "tls-cipher-suites",
            _checked(openssl_ciphers),
            (),
            "Suites of ciphers for TLS 1.2, by Go's names; good ones without it. Those of TLS 1.3 are always offered.",
        ),
        (
            "tls-sni-cert-key",
            Kind(parse_named_files, "namedCertKey", add=lambda one, other: one + other),
            (),
            "Another certificate for clients that come by certain names: crt,key or crt,key:name,*.name; the names in"
            " the certificate without any. May be given several times. Read again when it changes.",
        ),
    ],
    "Etcd": [
        (
            "storage-initialization-timeout",
            DURATION,
            60.0,
            "How long the start waits for etcd.",
        ),
    ],
    "Misc": [
        (
            "kubernetes-service-node-port",
            NATURAL,
            0,
            "The node port of the service kubernetes, when that is made; 0 for none.",
        ),
    ],
}
