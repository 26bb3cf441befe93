"""Audit flags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...api.flagvalues import FlagValues
from ...api.go.quote import quoted
from ...audit.modes import BATCH, FORMATS, MODES, VERSION
from ..flagtypes import BOOLEAN, DURATION, FLOAT, INTEGER, STRING, Row, flag_group


def _backend(
    name: str, mode: str, max_size: int, wait: float, throttled: bool, rate: float, burst: int, destination: str
) -> list[Row]:
    """Return the flags of one audit backend."""
    batch = f"audit-{name}-batch-"
    only = " Only in batch mode."
    return [
        (
            f"audit-{name}-mode",
            STRING,
            mode,
            "Strategy for writing events: blocking delays responses until their events are written; blocking-strict"
            " also fails requests whose first event cannot be written; batch buffers events and writes them"
            " asynchronously.",
        ),
        (f"{batch}buffer-size", INTEGER, 10000, f"Maximum number of buffered events; more are dropped.{only}"),
        (f"{batch}max-size", INTEGER, max_size, f"Maximum size of a batch, in events.{only}"),
        (f"{batch}max-wait", DURATION, wait, f"Maximum time to wait for a batch to fill.{only}"),
        (f"{batch}throttle-enable", BOOLEAN, throttled, f"Limit the rate of batches.{only}"),
        (f"{batch}throttle-qps", FLOAT, rate, f"Maximum average number of batches per second.{only}"),
        (
            f"{batch}throttle-burst",
            INTEGER,
            burst,
            f"Maximum number of batches sent at once after an idle period.{only}",
        ),
        (f"audit-{name}-truncate-enabled", BOOLEAN, False, "Truncate large events and batches."),
        (
            f"audit-{name}-truncate-max-batch-size",
            INTEGER,
            10 * 1024 * 1024,
            "Maximum size of a batch in bytes.",
        ),
        (
            f"audit-{name}-truncate-max-event-size",
            INTEGER,
            100 * 1024,
            "Maximum size of an event in bytes. Larger events lose their request and response objects; events that are"
            " still too large are dropped.",
        ),
        (f"audit-{name}-version", STRING, "audit.k8s.io/v1", f"API version of events in {destination}."),
    ]


FLAGS: Final = flag_group(
    "Auditing",
    [
        (
            "audit-policy-file",
            STRING,
            "",
            "File with an audit.k8s.io/v1 Policy: which requests are logged, at which level. Without it nothing is"
            " logged. Reloaded when it changes.",
        ),
        ("audit-log-path", STRING, "", "File that events are written to; - for standard output."),
        ("audit-log-format", STRING, "json", "json, or legacy for lines of text."),
        (
            "audit-log-maxsize",
            INTEGER,
            100,
            "Maximum size of a log file in megabytes before it is rotated; 0 for no limit.",
        ),
        ("audit-log-maxage", INTEGER, 366, "Maximum age of rotated log files in days; 0 for no limit."),
        ("audit-log-maxbackup", INTEGER, 100, "Maximum number of rotated log files to retain; 0 for no limit."),
        ("audit-log-compress", BOOLEAN, False, "Compress rotated log files with gzip."),
        *_backend("log", "blocking", 1, 0.0, False, 0.0, 0, "the log"),
        ("audit-webhook-config-file", STRING, "", "Kubeconfig of the server that events are sent to."),
        (
            "audit-webhook-initial-backoff",
            DURATION,
            10.0,
            "Delay before the first retry of a failed request.",
        ),
        ("audit-webhook-batch-initial-backoff", DURATION, 10.0, "Deprecated alias of --audit-webhook-initial-backoff."),
        *_backend("webhook", "batch", 400, 30.0, True, 10.0, 15, "webhook requests"),
    ],
)


def check_flags(options: FlagValues) -> None:
    """
    Validate the audit flags before files are read or created.

    @raise ValueError: Flags are invalid; the text lists all problems.
    """
    problems = []
    if options["audit-log-path"]:
        problems += [*_backend_problems("log", options), *_log_problems(options)]
    if options["audit-webhook-config-file"]:
        problems += _backend_problems("webhook", options)
    if problems:
        raise ValueError("; ".join(problems))


def _backend_problems(name: str, options: FlagValues) -> Iterator[str]:
    problem = _batch_problem(name, options)
    if problem:
        yield problem
    event, batch = options[f"audit-{name}-truncate-max-event-size"], options[f"audit-{name}-truncate-max-batch-size"]
    if event <= 0:
        yield f"invalid audit truncate {name} max event size {event}, must be a positive number"
    elif batch < event:
        yield f"invalid audit truncate {name} max batch size {batch}, must be greater than max event size ({event})"
    version = options[f"audit-{name}-version"]
    if version.count("/") > 1:
        yield f"unexpected GroupVersion string: {version}"
    elif version != VERSION:
        yield f"invalid group version, allowed versions are [{quoted(VERSION)}]"


def _batch_problem(name: str, options: FlagValues) -> str:
    mode = options[f"audit-{name}-mode"]
    if mode not in MODES:
        return f"invalid audit {name} mode {mode}, allowed modes are {quoted(','.join(MODES))}"
    if mode != BATCH:
        return ""
    checked = [("buffer size", "buffer-size"), ("max batch size", "max-size")]
    if options[f"audit-{name}-batch-throttle-enable"]:
        checked += [("throttle QPS", "throttle-qps"), ("throttle burst", "throttle-burst")]
    for setting, flag in checked:
        value = options[f"audit-{name}-batch-{flag}"]
        if value <= 0:
            return f"invalid audit batch {name} {setting} {value:g}, must be a positive number"
    return ""


def _log_problems(options: FlagValues) -> Iterator[str]:
    log_format = options["audit-log-format"]
    if log_format not in FORMATS:
        yield f"invalid audit log format {log_format}, allowed formats are {quoted(','.join(FORMATS))}"
    for flag in ("audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize"):
        if options[flag] < 0:
            yield f"--{flag} {options[flag]} can't be a negative number"
