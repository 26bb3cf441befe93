"""Admission flags: which plugins run, their configuration, limits of webhooks."""

from __future__ import annotations

import ipaddress
from typing import Final

from ..compatflags import unsupported_flag
from ..flagtypes import CIDRS, INTEGER, STRING, STRINGS, flag_group

#: Link-local networks, and addresses of cloud metadata services outside of them.
METADATA_SERVICES: Final = tuple(
    ipaddress.ip_network(one)
    for one in ("169.254.0.0/16", "fe80::/10", "100.100.100.200/32", "fd00:ec2::254/128", "fd20:ce::254/128")
)

FLAGS: Final = flag_group(
    "Admission",
    [
        ("enable-admission-plugins", STRINGS, (), "Admission plugins to enable in addition to the default ones."),
        ("disable-admission-plugins", STRINGS, (), "Admission plugins to disable."),
        (
            "admission-control-config-file",
            STRING,
            "",
            "File with an AdmissionConfiguration: the configurations of admission plugins.",
        ),
        (
            "webhook-url-denied-cidrs",
            CIDRS,
            METADATA_SERVICES,
            "Networks that URLs of admission and conversion webhooks must not resolve to. Default: link-local"
            " addresses and metadata services of clouds; empty for no restriction.",
        ),
        (
            "default-not-ready-toleration-seconds",
            INTEGER,
            300,
            "Toleration in seconds for not-ready nodes, for pods without such a toleration.",
        ),
        (
            "default-unreachable-toleration-seconds",
            INTEGER,
            300,
            "Toleration in seconds for unreachable nodes, for pods without such a toleration.",
        ),
        unsupported_flag(
            "admission-control",
            STRING,
            "use --enable-admission-plugins and --disable-admission-plugins",
        ),
    ],
)
