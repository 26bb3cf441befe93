"""Audit flags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...api.flagvalues import FlagValues
from ...api.go.quote import quoted
from ...audit.modes import BATCH, FORMATS, MODES, VERSION
from ..flagtypes import BOOLEAN, DURATION, FLOAT, INTEGER, STRING, Row, flag_group


def _backend(
    name: str, mode: str, most: int, wait: float, throttled: bool, rate: float, burst: int, where: str
) -> list[Row]:
    """What both places have where events go."""
    batch = f"audit-{name}-batch-"
    only = " Only in batch mode."
    return [
        (
            f"audit-{name}-mode",
            STRING,
            mode,
            "Whether answers wait until their events are written: blocking. Also requests fail whose first event can"
            " not be: blocking-strict. Events are collected, and nobody waits: batch.",
        ),
        (f"{batch}buffer-size", INTEGER, 10000, f"How many events are held at most; more are lost.{only}"),
        (f"{batch}max-size", INTEGER, most, f"How many events are written together.{only}"),
        (f"{batch}max-wait", DURATION, wait, f"How long events wait for others to be written with.{only}"),
        (f"{batch}throttle-enable", BOOLEAN, throttled, f"Whether there are limits to how many batches come.{only}"),
        (f"{batch}throttle-qps", FLOAT, rate, f"How many batches come in a second, on average.{only}"),
        (f"{batch}throttle-burst", INTEGER, burst, f"How many batches may come at once where none came before.{only}"),
        (f"audit-{name}-truncate-enabled", BOOLEAN, False, "Whether there are limits to the size of events."),
        (
            f"audit-{name}-truncate-max-batch-size",
            INTEGER,
            10 * 1024 * 1024,
            "How many bytes of events are written together.",
        ),
        (
            f"audit-{name}-truncate-max-event-size",
            INTEGER,
            100 * 1024,
            "Events of more bytes are told without the objects of request and answer, and not at all if that does not"
            " help.",
        ),
        (f"audit-{name}-version", STRING, "audit.k8s.io/v1", f"The version of events in {where}."),
    ]


FLAGS: Final = flag_group(
    "Auditing",
    [
        (
            "audit-policy-file",
            STRING,
            "",
            "A file with an audit.k8s.io/v1 Policy: which requests are told of, and how much. Without it, nothing is."
            " Read again when it changes.",
        ),
        ("audit-log-path", STRING, "", "The file that events are written to; - is the standard output."),
        ("audit-log-format", STRING, "json", "json, or legacy for lines of text."),
        (
            "audit-log-maxsize",
            INTEGER,
            100,
            "The megabytes that a log may have before another is begun; 0 for any number.",
        ),
        ("audit-log-maxage", INTEGER, 366, "The days after which full logs are removed; 0 for never."),
        ("audit-log-maxbackup", INTEGER, 100, "How many full logs are kept; 0 for all."),
        ("audit-log-compress", BOOLEAN, False, "Whether full logs are compressed with gzip."),
        *_backend("log", "blocking", 1, 0.0, False, 0.0, 0, "the log"),
        ("audit-webhook-config-file", STRING, "", "A kubeconfig that says which server events are sent to."),
        (
            "audit-webhook-initial-backoff",
            DURATION,
            10.0,
            "How long to wait before events are sent again, after the first time that this failed.",
        ),
        ("audit-webhook-batch-initial-backoff", DURATION, 10.0, "The old name of --audit-webhook-initial-backoff."),
        *_backend("webhook", "batch", 400, 30.0, True, 10.0, 15, "what is sent"),
    ],
)


def check_flags(options: FlagValues) -> None:
    """
    Check them, before anything is read or made.

    @raise ValueError: They make no sense; the text tells everything that is wrong.
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
    for what, flag in checked:
        value = options[f"audit-{name}-batch-{flag}"]
        if value <= 0:
            return f"invalid audit batch {name} {what} {value:g}, must be a positive number"
    return ""


def _log_problems(options: FlagValues) -> Iterator[str]:
    chosen = options["audit-log-format"]
    if chosen not in FORMATS:
        yield f"invalid audit log format {chosen}, allowed formats are {quoted(','.join(FORMATS))}"
    for flag in ("audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize"):
        if options[flag] < 0:
            yield f"--{flag} {options[flag]} can't be a negative number"
