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
            "Whether /debug/pprof tells what the process is busy with, and /debug/flags/v sets -v.",
        ),
        unsupported_flag(
            "contention-profiling", BOOLEAN, "one thread does everything, so none waits for another's lock"
        ),
        unsupported_flag("debug-socket-path", STRING, "/debug/pprof is served where everything is, for who may"),
    ],
)
