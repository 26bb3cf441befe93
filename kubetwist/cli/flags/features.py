"""Feature flags: profiling and debugging."""

from __future__ import annotations

from typing import Final

from ..compatflags import unsupported_flag
from ..flagtypes import BOOLEAN, STRING, flag_group

FLAGS: Final = flag_group(
    "Features",
    [
        (
            "profiling",
            BOOLEAN,
            True,
            "Serve profiles at /debug/pprof, and /debug/flags/v, which sets -v.",
        ),
        unsupported_flag(
            "contention-profiling", BOOLEAN, "one thread serves the requests, so there is no lock contention"
        ),
        unsupported_flag("debug-socket-path", STRING, "/debug/pprof is served at the secure port, to authorized users"),
    ],
)
