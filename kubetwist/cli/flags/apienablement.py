"""API enablement flags: which groups, versions and resources are served."""

from __future__ import annotations

from typing import Final

from ..flagtypes import MAPPING, flag_group

FLAGS: Final = flag_group(
    "API enablement",
    [
        (
            "runtime-config",
            MAPPING,
            {},
            "Switches API groups, versions and resources on and off: <group>/<version>[/<resource>]=true|false,"
            " api/all, api/ga, api/beta, api/alpha.",
        ),
    ],
)
