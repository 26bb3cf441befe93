"""Controller flags: which controllers run in the server."""

from __future__ import annotations

from typing import Final

from ..flagtypes import NATURAL, STRINGS, flag_group

FLAGS: Final = flag_group(
    "Controllers",
    [
        (
            "controllers",
            STRINGS,
            ("*",),
            "Which controllers run here, by kube-controller-manager's names: * means all that are on by default, name"
            " or +name that one, -name all but that one. An empty list switches all off.",
        ),
        (
            "pretend-nodes",
            NATURAL,
            0,
            "How many nodes there are that run pods in appearance only, for tests; pods are scheduled to them. At most"
            " 1000.",
        ),
    ],
)
