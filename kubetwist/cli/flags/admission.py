"""Admission flags: which plugins run, their configuration, limits of webhooks."""

from __future__ import annotations

import ipaddress
from typing import Final

from ..compatflags import unsupported_flag
from ..flagtypes import CIDRS, INTEGER, STRING, STRINGS, flag_group

#: The link, where clouds have their metadata services, and those of them that are elsewhere.
METADATA_SERVICES: Final = tuple(
    ipaddress.ip_network(one)
    for one in ("169.254.0.0/16", "fe80::/10", "100.100.100.200/32", "fd00:ec2::254/128", "fd20:ce::254/128")
)

FLAGS: Final = flag_group(
    "Admission",
    [
        ("enable-admission-plugins", STRINGS, (), "Admission plugins to switch on besides the default ones."),
        ("disable-admission-plugins", STRINGS, (), "Admission plugins to switch off."),
        (
            "admission-control-config-file",
            STRING,
            "",
            "An AdmissionConfiguration, which has the configurations of admission plugins.",
        ),
        (
            "webhook-url-denied-cidrs",
            CIDRS,
            METADATA_SERVICES,
            "Networks that the URL of a webhook in an object of the API may not lead to: one for admission, or for"
            " the conversion of custom resources. By default the link, and metadata services of clouds; empty for"
            " none.",
        ),
        (
            "default-not-ready-toleration-seconds",
            INTEGER,
            300,
            "How long pods that do not say so themselves stay on a node that is not ready.",
        ),
        (
            "default-unreachable-toleration-seconds",
            INTEGER,
            300,
            "How long pods that do not say so themselves stay on a node that can not be reached.",
        ),
        unsupported_flag(
            "admission-control",
            STRING,
            "--enable-admission-plugins and --disable-admission-plugins say which there are",
        ),
    ],
)
