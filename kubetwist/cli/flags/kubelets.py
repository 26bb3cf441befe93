"""Flags of outgoing connections to kubelets, proxied targets, peers and egress proxies."""

from __future__ import annotations

from typing import Final

from ..compatflags import unsupported_flag
from ..flagtypes import BOOLEAN, DURATION, NATURAL, PORT, STRING, STRINGS, flag_group

_PEERS: Final = "requests are not handed on to servers of other versions"

FLAGS: Final = flag_group(
    "Kubelets and proxies",
    [
        (
            "kubelet-certificate-authority",
            STRING,
            "",
            "Authorities that kubelets' serving certificates must come from; without it any certificate will do. Read"
            " again when it changes.",
        ),
        (
            "kubelet-client-certificate",
            STRING,
            "",
            "What kubelets are shown; without it a certificate of the data directory's authority. Read again when it"
            " changes.",
        ),
        ("kubelet-client-key", STRING, "", "The key of --kubelet-client-certificate."),
        (
            "kubelet-preferred-address-types",
            STRINGS,
            ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"),
            "At which of its addresses a node's kubelet is called, best first.",
        ),
        ("kubelet-port", PORT, 10250, "The port of kubelets whose nodes do not tell it."),
        ("kubelet-timeout", DURATION, 5.0, "How long a kubelet may take to accept a connection."),
        (
            "allow-loopback-proxy",
            BOOLEAN,
            False,
            "Whether kubelets and the targets of proxies of nodes, pods and services may have addresses of this"
            " machine, such as 127.0.0.1 or those of its network interfaces: for tests, simulated kubelets, and a"
            " kubelet on the machine of the server.",
        ),
        unsupported_flag(
            "egress-selector-config-file", STRING, "others are called directly, without a proxy of connections"
        ),
        unsupported_flag("max-connection-bytes-per-sec", NATURAL, "streams are as fast as both sides are"),
        unsupported_flag("peer-ca-file", STRING, _PEERS),
        unsupported_flag("peer-advertise-ip", STRING, _PEERS),
        unsupported_flag("peer-advertise-port", STRING, _PEERS),
    ],
)
