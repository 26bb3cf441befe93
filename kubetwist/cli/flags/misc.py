"""Flags that kube-apiserver lists as miscellaneous."""

from __future__ import annotations

from typing import Final

from ..compatflags import ineffective_flag, restrict_values, unsupported_flag
from ..flagtypes import BOOLEAN, DURATION, NATURAL, NETWORKS, PORT_RANGE, POSITIVE, STRING, flag_group, one_of

FLAGS: Final = flag_group(
    "Misc",
    [
        ("enable-logs-handler", BOOLEAN, False, "Serve the files of --logs-directory at /logs."),
        ("logs-directory", STRING, "/var/log", "Directory of --enable-logs-handler; symbolic links are not followed."),
        (
            "aggregator-reject-forwarding-redirect",
            restrict_values(BOOLEAN, True, reason="redirects of other API servers are never passed on"),
            True,
            "Reject redirects of aggregated API servers; always true.",
        ),
        ("allow-privileged", BOOLEAN, False, "Allow privileged containers."),
        (
            "enable-aggregator-routing",
            BOOLEAN,
            False,
            "Route aggregator requests to endpoint IPs rather than cluster IPs.",
        ),
        (
            "endpoint-reconciler-type",
            one_of("lease", "master-count", "none"),
            "lease",
            "How servers that share a storage maintain the endpoints of the service kubernetes: lease, by leases of"
            " live servers; master-count, up to --apiserver-count addresses; or none, to leave the endpoints alone.",
        ),
        ("apiserver-count", POSITIVE, 1, "Number of API servers, for --endpoint-reconciler-type=master-count."),
        ("event-ttl", DURATION, 3600.0, "Time to live of events."),
        (
            "proxy-client-cert-file",
            STRING,
            "",
            "Client certificate of the aggregator for requests to aggregated API servers. Default: a certificate of the"
            " data directory.",
        ),
        ("proxy-client-key-file", STRING, "", "The key of --proxy-client-cert-file."),
        (
            "service-account-signing-key-file",
            STRING,
            "",
            "Private key that signs service account tokens. Default: a key of the data directory.",
        ),
        ("service-cluster-ip-range", NETWORKS, ("10.0.0.0/24",), "IP ranges of service cluster IPs."),
        ("service-node-port-range", PORT_RANGE, (30000, 32767), "Port range of service node ports."),
        (
            "kubernetes-service-node-port",
            NATURAL,
            0,
            "Node port of the service kubernetes when it is created; 0 for none.",
        ),
        unsupported_flag("service-account-signing-endpoint", STRING, "use --service-account-signing-key-file"),
        *(
            ineffective_flag(
                f"coordinated-leadership-{name}",
                DURATION,
                default,
                "CoordinatedLeaderElection is not implemented",
            )
            for name, default in (("lease-duration", 15.0), ("renew-deadline", 10.0), ("retry-period", 2.0))
        ),
    ],
)
