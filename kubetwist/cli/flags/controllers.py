"""Controller flags: which controllers run in the server."""

from __future__ import annotations

from typing import Final

from ..flagtypes import NATURAL, RATE, STRING, STRINGS, flag_group

FLAGS: Final = flag_group(
    "Controllers",
    [
        (
            "controllers",
            STRINGS,
            ("*",),
            "Controllers to run, by kube-controller-manager's names: * enables all on-by-default controllers, name or"
            " +name enables one, -name disables one. An empty list disables all.",
        ),
        (
            "fake-nodes",
            NATURAL,
            0,
            "Number of simulated nodes for tests; pods are scheduled to them and their status is simulated. At most"
            " 1000.",
        ),
        (
            "fake-images",
            STRING,
            "",
            "File with the behavior of images on simulated nodes (YAML): logs, commands, ports, exit codes, probes and"
            " resource usage. It is reloaded when it changes.",
        ),
        (
            "node-eviction-rate",
            RATE,
            0.1,
            "Number of nodes per second on which pods are deleted in case of node failure when a zone is healthy or"
            " entirely unready. As in kube-controller-manager, like the next three flags.",
        ),
        (
            "secondary-node-eviction-rate",
            RATE,
            0.01,
            "Number of nodes per second on which pods are deleted in case of node failure when a zone is unhealthy."
            " It is 0 if the zone has at most --large-cluster-size-threshold nodes.",
        ),
        (
            "unhealthy-zone-threshold",
            RATE,
            0.55,
            "Fraction of nodes in a zone that must be unready, at least 3 nodes, for the zone to be unhealthy.",
        ),
        (
            "large-cluster-size-threshold",
            NATURAL,
            50,
            "Number of nodes in a zone above which it is large for --secondary-node-eviction-rate.",
        ),
    ],
)
