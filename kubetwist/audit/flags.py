"""What can be wrong about the flags of the audit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..api.go.quote import quoted

BATCH: Final = "batch"
BLOCKING: Final = "blocking"
BLOCKING_STRICT: Final = "blocking-strict"
MODES: Final = (BATCH, BLOCKING, BLOCKING_STRICT)
FORMATS: Final = ("legacy", "json")
_VERSION: Final = "audit.k8s.io/v1"


def check_flags(options: Any) -> None:
    """
    Check them, before anything is read or made.

    @param options: L{kubetwist.cli.kubeapi.Options}.
    @raise ValueError: They make no sense; the text tells everything that is wrong.
    """
    problems = []
    if options["audit-log-path"]:
        problems += [*_backend("log", options), *_log(options)]
    if options["audit-webhook-config-file"]:
        problems += _backend("webhook", options)
    if problems:
        raise ValueError("; ".join(problems))


def _backend(name: str, options: Any) -> Iterator[str]:
    problem = _batch(name, options)
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
    elif version != _VERSION:
        yield f"invalid group version, allowed versions are [{quoted(_VERSION)}]"


def _batch(name: str, options: Any) -> str:
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


def _log(options: Any) -> Iterator[str]:
    chosen = options["audit-log-format"]
    if chosen not in FORMATS:
        yield f"invalid audit log format {chosen}, allowed formats are {quoted(','.join(FORMATS))}"
    for flag in ("audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize"):
        if options[flag] < 0:
            yield f"--{flag} {options[flag]} can't be a negative number"
