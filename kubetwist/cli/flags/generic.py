"""Generic flags: addresses, feature gates, limits of requests and connections, shutdown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...api.patterns import PatternError, compile_pattern
from ..flagtypes import (
    ADDRESS,
    BOOLEAN,
    DURATION,
    FEATURE_GATES,
    FLOAT,
    MEMORY,
    NATURAL,
    STRING,
    STRINGS,
    FlagType,
    flag_group,
    validated_strings,
)


def _check_directives(directives: tuple[str, ...]) -> None:
    for directive in directives:
        name, equals, value = directive.partition("=")
        if directive not in ("includeSubDomains", "preload") and not (name == "max-age" and equals and value.isdigit()):
            raise ValueError("allowed values: max-age=expireTime, includeSubDomains, preload")


def _check_origins(patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        try:
            compile_pattern(pattern)
        except PatternError as error:
            raise ValueError(str(error)) from None
        # An unanchored pattern also matches origins that an attacker controls.
        if not any(begin in pattern for begin in ("^", "//")) or not any(end in pattern for end in ("$", ":")):
            raise ValueError("regular expression does not pin to start/end of host in the origin header")


def _number_up_to(maximum: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value: float = FLOAT.parse(text)
        if not 0 <= value <= maximum:
            raise ValueError(f"it must be between 0 and {maximum:g}")
        return value

    return parse


FLAGS: Final = flag_group(
    "Generic",
    [
        (
            "advertise-address",
            ADDRESS,
            "",
            "The IP address on which to advertise this server to the cluster. Default: --bind-address.",
        ),
        ("external-hostname", STRING, "", "The hostname to use in URLs of this server."),
        (
            "feature-gates",
            FEATURE_GATES,
            {},
            "Settings of feature gates, separated by commas: Name=true or Name=false, with or without the component"
            " kube: in front. AllAlpha and AllBeta set the gates of a stage that are not set by name.",
        ),
        (
            "emulated-version",
            STRINGS,
            (),
            "The release whose feature gates and APIs the server has, as 1.35 or kube=1.35. Default:"
            " --kubernetes-version; one of the three releases before it is possible, too.",
        ),
        (
            "min-compatibility-version",
            STRINGS,
            (),
            "The oldest release of servers with the same storage, as 1.34 or kube=1.34: at most the emulated one."
            " Objects are stored in versions that it knows. Default: the release before the emulated one.",
        ),
        (
            "emulation-forward-compatible",
            BOOLEAN,
            False,
            "Also serve versions of resources, but for alpha versions, that are newer than the emulated release if an"
            " older version of the resource is served.",
        ),
        (
            "runtime-config-emulation-forward-compatible",
            BOOLEAN,
            False,
            "Let --runtime-config enable versions and resources that are newer than the emulated release. If false,"
            " the server does not start with these.",
        ),
        (
            "enable-priority-and-fairness",
            BOOLEAN,
            True,
            "Schedule requests by FlowSchemas and PriorityLevelConfigurations. If false, only the number of requests in"
            " flight is limited.",
        ),
        ("max-requests-inflight", NATURAL, 400, "Maximum number of non-mutating requests in flight; 0 for no limit."),
        (
            "max-mutating-requests-inflight",
            NATURAL,
            200,
            "Maximum number of mutating requests in flight; 0 for no limit. Priority levels share the sum of both"
            " limits.",
        ),
        (
            "max-connections-per-address",
            NATURAL,
            0,
            "Maximum number of open connections per IPv4 address or IPv6 /64 network; 0 for three quarters of the"
            " limit of open files.",
        ),
        (
            "memory-limit",
            MEMORY,
            None,
            "Memory limit of the process, such as 512Mi: requests are rejected with 429 before it is reached. 0 for"
            " no limit. Default: the limit of the cgroup, or of the address space (ulimit -v).",
        ),
        (
            "min-request-timeout",
            NATURAL,
            1800,
            "Minimum duration, in seconds, of watches that set no timeout.",
        ),
        (
            "request-timeout",
            DURATION,
            60.0,
            "Maximum duration of a request before it fails with a timeout. Long-running requests are exempt.",
        ),
        (
            "shutdown-delay-duration",
            DURATION,
            0.0,
            "How long the server keeps serving after the termination signal. /readyz fails immediately.",
        ),
        (
            "cors-allowed-origins",
            validated_strings(_check_origins),
            (),
            "Regular expressions of origins allowed for CORS, such as //example[.]com(:|$).",
        ),
        (
            "strict-transport-security-directives",
            validated_strings(_check_directives),
            (),
            "Directives of the Strict-Transport-Security header: max-age=31536000, includeSubDomains, preload."
            " Without them the header is not sent.",
        ),
        (
            "livez-grace-period",
            DURATION,
            0.0,
            "How long /livez ignores post-start hooks that are not finished.",
        ),
        (
            "shutdown-send-retry-after",
            BOOLEAN,
            False,
            "Keep listening during shutdown until open requests are done, and answer new requests with 429 and"
            " Retry-After. If false, the port is closed.",
        ),
        (
            "shutdown-watch-termination-grace-period",
            DURATION,
            0.0,
            "Period over which a server that shuts down ends its watches, so that clients do not reconnect to another"
            " server all at once.",
        ),
        (
            "goaway-chance",
            FlagType(_number_up_to(0.02), "float"),
            0.0,
            "Probability that the client of a request over HTTP/2 is asked to open another connection (GOAWAY), which"
            " spreads clients over the servers behind a load balancer, at most 0.02. Open requests are finished.",
        ),
        (
            "send-retry-after-while-not-ready-once",
            BOOLEAN,
            False,
            "Answer requests with 503 and Retry-After until the server has been ready once, except health checks and"
            " /metrics. If false, requests are served as soon as the server listens.",
        ),
    ],
)
