"""Secure serving flags: the port and TLS."""

from __future__ import annotations

from typing import Final

from ...http.connection.ciphers import openssl_ciphers
from ...server.credentials.namedcertificates import parse_named_files
from ..compatflags import unsupported_flag
from ..flagtypes import ADDRESS, BOOLEAN, NATURAL, PORT, STRING, FlagType, flag_group, one_of, validated_strings

FLAGS: Final = flag_group(
    "Secure serving",
    [
        (
            "bind-address",
            ADDRESS,
            "127.0.0.1",
            "The IP address to listen on. If --advertise-address is a non-loopback address, the default is all"
            " interfaces.",
        ),
        ("secure-port", PORT, 6443, "The port to listen on; 0 selects a free port."),
        (
            "cert-dir",
            STRING,
            "",
            "Directory of apiserver.crt and apiserver.key. They are created if missing, and used unchanged if"
            " another authority issued them. Default: the data directory.",
        ),
        ("tls-cert-file", STRING, "", "The serving certificate, followed by its intermediate certificates."),
        ("tls-private-key-file", STRING, "", "The key of --tls-cert-file."),
        (
            "tls-min-version",
            one_of("VersionTLS12", "VersionTLS13"),
            "VersionTLS12",
            "Minimum TLS version supported.",
        ),
        ("disable-http2-serving", BOOLEAN, False, "Serve HTTP/1.1 only, without HTTP/2."),
        (
            "tls-cipher-suites",
            validated_strings(openssl_ciphers),
            (),
            "Cipher suites for TLS 1.2, by Go's names. Default: secure suites. Those of TLS 1.3 are always enabled.",
        ),
        (
            "tls-sni-cert-key",
            FlagType(parse_named_files, "namedCertKey", merge=lambda one, other: one + other),
            (),
            "Certificate for clients that request certain names with SNI: crt,key or crt,key:name,*.name. Without"
            " names, the names in the certificate apply. May be repeated. Reloaded when it changes.",
        ),
        (
            "http2-max-streams-per-connection",
            NATURAL,
            0,
            "Maximum number of requests of an HTTP/2 connection at a time. 0: 100.",
        ),
        (
            "permit-address-sharing",
            BOOLEAN,
            False,
            "Bind the port although connections in TIME_WAIT use it. This is always done.",
        ),
        unsupported_flag("permit-port-sharing", BOOLEAN, "the port is not shared with other processes"),
        unsupported_flag("tls-curve-preferences", STRING, "the default curves of OpenSSL are used"),
    ],
)
