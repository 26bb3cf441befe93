"""Log flags: format and verbosity."""

from __future__ import annotations

from typing import Final

from ..compatflags import unsupported_flag
from ..flagtypes import BOOLEAN, DURATION, LEVEL, MODULES, STRING, flag_group, one_of

_LOGS: Final = "log lines are written at once, and to one place"

FLAGS: Final = flag_group(
    "Logs",
    [
        ("logging-format", one_of("text", "json"), "text", "How log lines are written."),
        (
            "v",
            LEVEL,
            0,
            "How much is logged: from 3 on a line about every request, from 4 on what is for debugging. Bodies never.",
        ),
        ("vmodule", MODULES, (), "How much single modules log, as pattern=N,...; httplog tells of requests."),
        (
            "log-flush-frequency",
            DURATION,
            5.0,
            "How long log lines may wait until they are written. They are written at once.",
        ),
        unsupported_flag("log-json-split-stream", BOOLEAN, _LOGS),
        unsupported_flag("log-json-info-buffer-size", STRING, _LOGS),
        unsupported_flag("log-text-split-stream", BOOLEAN, _LOGS),
        unsupported_flag("log-text-info-buffer-size", STRING, _LOGS),
    ],
)
