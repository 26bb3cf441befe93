"""Flags that kube-apiserver lists as miscellaneous."""

from __future__ import annotations

from typing import Final

from ..compatflags import unsupported_flag
from ..flagtypes import BOOLEAN, DURATION, NATURAL, NETWORKS, PORT_RANGE, POSITIVE, STRING, flag_group, one_of

FLAGS: Final = flag_group(
    "Misc",
    [
        ("enable-logs-handler", BOOLEAN, False, "Whether /logs shows the files of --logs-directory."),
        ("logs-directory", STRING, "/var/log", "What --enable-logs-handler shows; links in it are not followed."),
        (
            "aggregator-reject-forwarding-redirect",
            BOOLEAN,
            True,
            "Whether redirects of other API servers are answered as errors. They always are.",
        ),
        ("allow-privileged", BOOLEAN, False, "Whether containers may be privileged."),
        (
            "enable-aggregator-routing",
            BOOLEAN,
            False,
            "Connect to the endpoints of services that API servers are behind, not to their cluster IPs.",
        ),
        (
            "endpoint-reconciler-type",
            one_of("lease", "master-count", "none"),
            "lease",
            "How servers that share a storage are found behind the service kubernetes: lease, while they live;"
            " master-count, as many as --apiserver-count says, dead or alive; or none, to leave its endpoints alone.",
        ),
        ("apiserver-count", POSITIVE, 1, "How many servers there are, for --endpoint-reconciler-type=master-count."),
        ("event-ttl", DURATION, 3600.0, "How long events are kept."),
        (
            "proxy-client-cert-file",
            STRING,
            "",
            "The certificate by which other API servers know this one, when it hands requests on to them; one of the"
            " data directory without it.",
        ),
        ("proxy-client-key-file", STRING, "", "The key of --proxy-client-cert-file."),
        (
            "service-account-signing-key-file",
            STRING,
            "",
            "The private key that signs service account tokens; that of the data directory without it.",
        ),
        ("service-cluster-ip-range", NETWORKS, ("10.0.0.0/24",), "Where the addresses of services come from."),
        ("service-node-port-range", PORT_RANGE, (30000, 32767), "Where the node ports of services come from."),
        (
            "kubernetes-service-node-port",
            NATURAL,
            0,
            "The node port of the service kubernetes, when that is made; 0 for none.",
        ),
        unsupported_flag(
            "service-account-signing-endpoint", STRING, "--service-account-signing-key-file has the key that signs"
        ),
        *(
            (
                f"coordinated-leadership-{name}",
                DURATION,
                default,
                "Of the feature CoordinatedLeaderElection, which is not there: nothing goes by it.",
            )
            for name, default in (("lease-duration", 15.0), ("renew-deadline", 10.0), ("retry-period", 2.0))
        ),
    ],
)
