"""
Flags of kube-apiserver that are only one way here, and those that have nothing to do.

Command lines that were written for kube-apiserver stand as they are wherever what they ask for is what happens; where
it is not, the flag is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..flagtypes import (
    BOOLEAN,
    DURATION,
    FLOAT,
    NATURAL,
    PORT,
    STRING,
    Kind,
)

Row = tuple[str, Kind, Any, str]


def only(kind: Kind, *values: Any, why: str) -> Kind:
    """
    What takes C{values} and nothing else.

    @param why: What others are told.
    """

    def parse(text: str) -> Any:
        value = kind.parse(text)
        if value not in values:
            raise ValueError(why)
        return value

    return Kind(parse, kind.shown, switch=kind.switch)


def _unit_of(most: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value: float = FLOAT.parse(text)
        if not 0 <= value <= most:
            raise ValueError(f"it must be between 0 and {most:g}")
        return value

    return parse


def _off(name: str, kind: Kind, why: str) -> Row:
    """A flag for what is not there, which can at most say so."""
    default = {BOOLEAN: False, NATURAL: 0, PORT: 0}.get(kind, "")
    return name, only(kind, default, why=why), default, f"Can not be set: {why}."


_LOGS: Final = "log lines are written at once, and to one place"
_PEERS: Final = "requests are not handed on to servers of other versions"
_RELEASE: Final = "--kubernetes-version says which release is served"

#: By section.
ROWS: Final[dict[str, list[Row]]] = {
    "Generic": [
        (
            "goaway-chance",
            Kind(_unit_of(0.02), "float"),
            0.0,
            "How likely connections of HTTP/2 are told to go elsewhere, at most 0.02. HTTP/1.1 is what is served, so"
            " none is.",
        ),
        _off("emulated-version", STRING, _RELEASE),
        _off("min-compatibility-version", STRING, _RELEASE),
        _off("emulation-forward-compatible", BOOLEAN, _RELEASE),
        _off("runtime-config-emulation-forward-compatible", BOOLEAN, _RELEASE),
        _off("send-retry-after-while-not-ready-once", BOOLEAN, "a server that is not ready answers as it can"),
    ],
    "Etcd": [
        _off(
            "etcd-servers-overrides",
            STRING,
            "all resources are in one store, as one revision orders all changes; leave it out, and move what is"
            " elsewhere to --etcd-servers before",
        ),
        (
            "storage-media-type",
            only(
                STRING,
                "application/json",
                "application/vnd.kubernetes.protobuf",
                why="objects are stored as application/json or application/vnd.kubernetes.protobuf",
            ),
            "application/json",
            "As what objects are stored: application/json, or in etcd application/vnd.kubernetes.protobuf as"
            " kube-apiserver does by default. Both are read in any case. Custom resources, their definitions and"
            " APIServices are always JSON.",
        ),
        (
            "enable-garbage-collector",
            only(BOOLEAN, True, why="finalizers of deletions are always kept, whether or not the collector runs here"),
            True,
            "Whether deletions may wait for dependents: they may. --controllers says whether the collector runs here.",
        ),
    ],
    "Secure serving": [
        (
            "http2-max-streams-per-connection",
            NATURAL,
            0,
            "How many requests a connection of HTTP/2 may have. HTTP/1.1 is what is served, so nothing goes by it.",
        ),
        (
            "permit-address-sharing",
            BOOLEAN,
            False,
            "Whether the port may be taken that connections still wait on. It always may.",
        ),
        _off("permit-port-sharing", BOOLEAN, "the port is this server's alone"),
        _off("tls-curve-preferences", STRING, "the curves of OpenSSL are what is offered"),
    ],
    "Admission": [
        _off(
            "admission-control",
            STRING,
            "--enable-admission-plugins and --disable-admission-plugins say which there are",
        ),
    ],
    "Features": [
        _off("contention-profiling", BOOLEAN, "one thread does everything, so none waits for another's lock"),
        _off("debug-socket-path", STRING, "/debug/pprof is served where everything is, for who may"),
    ],
    "Logs": [
        (
            "log-flush-frequency",
            DURATION,
            5.0,
            "How long log lines may wait until they are written. They are written at once.",
        ),
        _off("log-json-split-stream", BOOLEAN, _LOGS),
        _off("log-json-info-buffer-size", STRING, _LOGS),
        _off("log-text-split-stream", BOOLEAN, _LOGS),
        _off("log-text-info-buffer-size", STRING, _LOGS),
    ],
    "Kubelets and proxies": [
        _off("egress-selector-config-file", STRING, "others are called directly, without a proxy of connections"),
        _off("max-connection-bytes-per-sec", NATURAL, "streams are as fast as both sides are"),
        _off("peer-ca-file", STRING, _PEERS),
        _off("peer-advertise-ip", STRING, _PEERS),
        _off("peer-advertise-port", STRING, _PEERS),
    ],
    "Misc": [
        _off("service-account-signing-endpoint", STRING, "--service-account-signing-key-file has the key that signs"),
        *(
            (
                f"coordinated-leadership-{name}",
                DURATION,
                default,
                "Of the feature CoordinatedLeaderElection, which is not there: nothing goes by it.",
            )
            for name, default in (("lease-duration", 15.0), ("renew-deadline", 10.0), ("retry-period", 2.0))
        ),
    ],
}
