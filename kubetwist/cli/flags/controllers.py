"""Controller flags: which controllers run in the server."""

from __future__ import annotations

from typing import Final

from ..flagtypes import NATURAL, STRING, STRINGS, flag_group

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
    ],
)
