"""Log flags: format and verbosity."""

from __future__ import annotations

from typing import Final

from ..compatflags import ineffective_flag, unsupported_flag
from ..flagtypes import BOOLEAN, DURATION, LEVEL, MODULES, STRING, flag_group, one_of

_LOGS: Final = "log lines are written at once, and to one place"

FLAGS: Final = flag_group(
    "Logs",
    [
        ("logging-format", one_of("text", "json"), "text", "Format of log lines."),
        (
            "v",
            LEVEL,
            0,
            "Log verbosity: 3 logs every request, 4 adds debug messages. Bodies are never logged.",
        ),
        ("vmodule", MODULES, (), "Verbosity of single modules, as pattern=N,...; httplog logs requests."),
        ineffective_flag("log-flush-frequency", DURATION, 5.0, "log lines are written immediately"),
        unsupported_flag("log-json-split-stream", BOOLEAN, _LOGS),
        unsupported_flag("log-json-info-buffer-size", STRING, _LOGS),
        unsupported_flag("log-text-split-stream", BOOLEAN, _LOGS),
        unsupported_flag("log-text-info-buffer-size", STRING, _LOGS),
    ],
)
