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
            "CA bundle for kubelets' serving certificates; without it any certificate is accepted. Reloaded when it"
            " changes.",
        ),
        (
            "kubelet-client-certificate",
            STRING,
            "",
            "Client certificate for kubelets. Default: a certificate of the data directory's CA. Reloaded when it"
            " changes.",
        ),
        ("kubelet-client-key", STRING, "", "The key of --kubelet-client-certificate."),
        (
            "kubelet-preferred-address-types",
            STRINGS,
            ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"),
            "Preferred node address types for kubelet connections, in order.",
        ),
        ("kubelet-port", PORT, 10250, "Kubelet port of nodes without a daemon endpoint in their status."),
        ("kubelet-timeout", DURATION, 5.0, "Timeout for connections to kubelets."),
        (
            "allow-loopback-proxy",
            BOOLEAN,
            False,
            "Allow kubelets and proxied nodes, pods and services at addresses of this machine, such as 127.0.0.1 or"
            " those of its network interfaces: for tests, simulated kubelets, and a kubelet on the machine of the"
            " server.",
        ),
        unsupported_flag(
            "egress-selector-config-file", STRING, "outgoing connections are direct, without a konnectivity proxy"
        ),
        unsupported_flag("max-connection-bytes-per-sec", NATURAL, "streams are not rate limited"),
        unsupported_flag("peer-ca-file", STRING, _PEERS),
        unsupported_flag("peer-advertise-ip", STRING, _PEERS),
        unsupported_flag("peer-advertise-port", STRING, _PEERS),
    ],
)
