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
        (
            "debug-socket-path",
            STRING,
            "",
            "Serve /debug/pprof and /debug/flags/v on this Unix socket, too, without authentication and also with"
            " --profiling=false. Only the user of the server can connect. Workers append their numbers to the path.",
        ),
    ],
)
