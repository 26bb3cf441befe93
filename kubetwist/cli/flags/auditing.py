"""Audit flags."""

from __future__ import annotations

from typing import Final

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
