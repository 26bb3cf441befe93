"""Secure serving flags: the port and TLS."""

from __future__ import annotations

from typing import Final

from ...http.connection.ciphers import openssl_ciphers
from ...server.credentials.namedcertificates import parse_named_files
from ..compatflags import unsupported_flag
from ..flagtypes import ADDRESS, BOOLEAN, NATURAL, PORT, STRING, FlagType, checked, flag_group, one_of

FLAGS: Final = flag_group(
    "Secure serving",
    [
        (
            "bind-address",
            ADDRESS,
            "127.0.0.1",
            "The IP address to listen on. Without it all of this machine's, where --advertise-address tells others to"
            " come.",
        ),
        ("secure-port", PORT, 6443, "The port to listen on; 0 takes a free one."),
        (
            "cert-dir",
            STRING,
            "",
            "Where apiserver.crt and apiserver.key are, and are made when missing; in the data directory without it.",
        ),
        ("tls-cert-file", STRING, "", "The serving certificate, followed by its issuers."),
        ("tls-private-key-file", STRING, "", "The key of --tls-cert-file."),
        (
            "tls-min-version",
            one_of("VersionTLS12", "VersionTLS13"),
            "VersionTLS12",
            "The lowest version of TLS that is spoken.",
        ),
        ("disable-http2-serving", BOOLEAN, True, "HTTP/1.1 is what is served; false is not possible yet."),
        (
            "tls-cipher-suites",
            checked(openssl_ciphers),
            (),
            "Suites of ciphers for TLS 1.2, by Go's names; good ones without it. Those of TLS 1.3 are always offered.",
        ),
        (
            "tls-sni-cert-key",
            FlagType(parse_named_files, "namedCertKey", merge=lambda one, other: one + other),
            (),
            "Another certificate for clients that come by certain names: crt,key or crt,key:name,*.name; the names in"
            " the certificate without any. May be given several times. Read again when it changes.",
        ),
        (
            "http2-max-streams-per-connection",
            NATURAL,
            0,
            "How many requests a connection of HTTP/2 may have. HTTP/1.1 is what is served, so nothing goes by it.",
        ),
        (
            "permit-address-sharing",
            BOOLEAN,
            False,
            "Whether the port may be taken that connections still wait on. It always may.",
        ),
        unsupported_flag("permit-port-sharing", BOOLEAN, "the port is this server's alone"),
        unsupported_flag("tls-curve-preferences", STRING, "the curves of OpenSSL are what is offered"),
    ],
)
