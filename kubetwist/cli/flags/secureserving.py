"""Secure serving flags: the port and TLS."""

from __future__ import annotations

from typing import Final

from ...http.connection.ciphers import openssl_ciphers
from ...http.connection.curves import parse_curves
from ...server.credentials.namedcertificates import parse_named_files
from ..compatflags import ineffective_flag
from ..flagtypes import (
    ADDRESS,
    BOOLEAN,
    NATURAL,
    PORT,
    STRING,
    STRINGS,
    FlagType,
    flag_group,
    one_of,
    validated_strings,
)

_CURVES: Final = FlagType(
    lambda text: parse_curves(STRINGS.parse(text)),
    "int32Slice",
    merge=lambda one, other: tuple(dict.fromkeys((*one, *other))),
)

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
        ineffective_flag(
            "permit-address-sharing",
            BOOLEAN,
            False,
            "the port is always bound although connections in TIME_WAIT use it",
        ),
        (
            "permit-port-sharing",
            BOOLEAN,
            False,
            "Bind the port with SO_REUSEPORT: other servers on this machine may listen on it, too, and the kernel"
            " distributes the connections among them.",
        ),
        (
            "tls-curve-preferences",
            _CURVES,
            (),
            "Groups of the key exchange by the numbers of Go's tls.CurveID, the preferred one first:"
            " 23 (P-256), 24 (P-384), 25 (P-521), 29 (X25519), 4587, 4588 (X25519MLKEM768), 4589. Those with"
            " ML-KEM need OpenSSL 3.5. Default: the groups of OpenSSL.",
        ),
    ],
)
