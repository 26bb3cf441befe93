"""Generic flags: addresses, feature gates, limits of requests and connections, shutdown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...api.patterns import PatternError, compiled
from ..compatflags import unsupported_flag
from ..flagtypes import (
    ADDRESS,
    BOOLEAN,
    DURATION,
    FLOAT,
    MEMORY,
    NATURAL,
    STRING,
    SWITCHES,
    FlagType,
    checked,
    flag_group,
)


def _check_directives(directives: tuple[str, ...]) -> None:
    for directive in directives:
        name, equals, value = directive.partition("=")
        if directive not in ("includeSubDomains", "preload") and not (name == "max-age" and equals and value.isdigit()):
            raise ValueError("allowed values: max-age=expireTime, includeSubDomains, preload")


def _check_origins(patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        try:
            compiled(pattern)
        except PatternError as error:
            raise ValueError(str(error)) from None
        # What is found anywhere in an origin is also found in those that somebody else has made up.
        if not any(begin in pattern for begin in ("^", "//")) or not any(end in pattern for end in ("$", ":")):
            raise ValueError("regular expression does not pin to start/end of host in the origin header")


def _unit_of(most: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value: float = FLOAT.parse(text)
        if not 0 <= value <= most:
            raise ValueError(f"it must be between 0 and {most:g}")
        return value

    return parse


_RELEASE: Final = "--kubernetes-version says which release is served"

FLAGS: Final = flag_group(
    "Generic",
    [
        (
            "advertise-address",
            ADDRESS,
            "",
            "The IP address under which others reach this server; the one of --bind-address without it.",
        ),
        ("external-hostname", STRING, "", "The host name under which others reach this server."),
        ("feature-gates", SWITCHES, {}, "Switches of features, as Name=true or Name=false."),
        (
            "enable-priority-and-fairness",
            BOOLEAN,
            True,
            "Whether FlowSchemas and PriorityLevelConfigurations decide which requests go first. Requests are only"
            " counted without it.",
        ),
        ("max-requests-inflight", NATURAL, 400, "How many requests that only read may be open at a time; 0 for all."),
        (
            "max-mutating-requests-inflight",
            NATURAL,
            200,
            "How many other requests may be open at a time; 0 for all. Priority levels share the sum of both.",
        ),
        (
            "max-connections-per-address",
            NATURAL,
            0,
            "How many connections may be open from one address, or from one network of IPv6 with a prefix of 64 bits;"
            " 0 for three quarters of the files that the process may have open.",
        ),
        (
            "memory-limit",
            MEMORY,
            None,
            "Memory that the process may use, as 512Mi: requests are answered 429 before it is reached. 0 for no limit;"
            " without the flag the limit is that of the control group (cgroup), or of the address space (ulimit -v).",
        ),
        (
            "min-request-timeout",
            NATURAL,
            1800,
            "The least number of seconds that watches last which set no timeout themselves.",
        ),
        (
            "request-timeout",
            DURATION,
            60.0,
            "How long a request may take before it is answered with an error. Watches and the like are exempt.",
        ),
        (
            "shutdown-delay-duration",
            DURATION,
            0.0,
            "How long the server goes on as usual after it was told to stop, but for /readyz, which fails at once.",
        ),
        (
            "cors-allowed-origins",
            checked(_check_origins),
            (),
            "Patterns for the origins whose pages may ask this server from a browser, such as //example[.]com(:|$).",
        ),
        (
            "strict-transport-security-directives",
            checked(_check_directives),
            (),
            "What the header Strict-Transport-Security of all answers says: max-age=31536000, includeSubDomains,"
            " preload. There is none without it.",
        ),
        (
            "livez-grace-period",
            DURATION,
            0.0,
            "How long /livez takes no offence at what the server does at its start, and has not done yet.",
        ),
        (
            "shutdown-send-retry-after",
            BOOLEAN,
            False,
            "Whether a server that stops goes on listening until open requests are answered, and tells those who come"
            " to come again: 429. Otherwise they find nobody.",
        ),
        (
            "shutdown-watch-termination-grace-period",
            DURATION,
            0.0,
            "Over how long a server that stops spreads the end of its watches, so that not all clients come to another"
            " one at once.",
        ),
        (
            "goaway-chance",
            FlagType(_unit_of(0.02), "float"),
            0.0,
            "How likely connections of HTTP/2 are told to go elsewhere, at most 0.02. HTTP/1.1 is what is served, so"
            " none is.",
        ),
        unsupported_flag("emulated-version", STRING, _RELEASE),
        unsupported_flag("min-compatibility-version", STRING, _RELEASE),
        unsupported_flag("emulation-forward-compatible", BOOLEAN, _RELEASE),
        unsupported_flag("runtime-config-emulation-forward-compatible", BOOLEAN, _RELEASE),
        unsupported_flag(
            "send-retry-after-while-not-ready-once", BOOLEAN, "a server that is not ready answers as it can"
        ),
    ],
)
