"""Checks of a running server by its kubeconfig, and of the port of one that does not run."""

from __future__ import annotations

import base64
import errno
import socket
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import Any, Final

import yaml
from attrs import frozen

from .findings import Finding, error, ok
from .http import Answer, RequestFailed, make_context, request

#: Maximum size, in bytes, of a kubeconfig.
_MOST: Final = 1 << 20


@frozen
class ServerFacts:
    """
    What a running server has answered.

    @ivar url: Its URL.
    @ivar problem: Why it did not answer; C{""} if it did.
    @ivar status: The status of C{/readyz}.
    @ivar failed: The names of failed checks.
    @ivar skew: Seconds by which this clock is ahead of the one of the server; L{None} if it is not known.
    """

    url: str
    problem: str = ""
    status: int = 0
    failed: tuple[str, ...] = ()
    skew: float | None = None


def read_server(kubeconfig: Path) -> ServerFacts:
    """
    Ask the server of the admin's kubeconfig whether it is ready.

    @param kubeconfig: The file, as the server writes it.
    """
    try:
        with kubeconfig.open("rb") as file:
            content: Any = yaml.safe_load(file.read(_MOST))
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        url = str(cluster["server"])
        authority, certificate, key = (
            base64.b64decode(entry[name])
            for entry, name in (
                (cluster, "certificate-authority-data"),
                (user, "client-certificate-data"),
                (user, "client-key-data"),
            )
        )
    except OSError as failure:
        return ServerFacts("", problem=f"{kubeconfig} cannot be read: {failure.strerror}")
    except (yaml.YAMLError, LookupError, TypeError, ValueError):
        return ServerFacts("", problem=f"{kubeconfig} is damaged")
    try:
        answer = request(url, "/readyz?verbose", _context(authority, certificate, key))
    except (OSError, ValueError) as failure:
        return ServerFacts(url, problem=str(failure))
    except RequestFailed as failure:
        return ServerFacts(url, problem=str(failure))
    return facts_of(url, answer, time())


def facts_of(url: str, answer: Answer, now: float) -> ServerFacts:
    """
    Return the facts of a response of C{/readyz?verbose}.

    @param now: The time of its arrival, in seconds since 1970.
    """
    lines = answer.body.decode("utf-8", "replace").splitlines()
    failed = tuple(line[3:].partition(" ")[0] for line in lines if line.startswith("[-]"))
    return ServerFacts(url, "", answer.status, failed, None if answer.date is None else now - answer.date)


def _context(authority: bytes, certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Return a context with a client certificate, which Python reads from files only; the file is removed."""
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(key + b"\n" + certificate)
        file.flush()
        return make_context(None, file.name, data=authority.decode("ascii"))


def judge_server(facts: ServerFacts) -> Iterator[Finding]:
    """Judge the facts."""
    if facts.problem:
        yield error(
            "server/reachable",
            f"the server does not answer at {facts.url or 'its address'}: {facts.problem}",
            "look at the log of the server",
        )
    elif facts.status == 200:
        yield ok("server/ready", f"the server at {facts.url} is ready")
    elif facts.failed:
        yield error(
            "server/ready",
            f"the server at {facts.url} is not ready: {', '.join(facts.failed)}",
            "the path /readyz/<check> has the reason",
        )
    else:
        yield error(
            "server/ready", f"the server at {facts.url} answers {facts.status}", "look at the log of the server"
        )


def check_port(address: str, port: int, *, shared: bool) -> Iterator[Finding]:
    """
    Check that the address can be bound.

    @param port: The port; nothing is checked for 0.
    @param shared: C{--permit-port-sharing}.
    """
    if not port:
        yield ok("server/port", "the server selects a free port")
        return
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            probe.bind((address, port))
        except OSError as failure:
            message = f"the server cannot listen on {address} port {port}: {failure.strerror}"
            if failure.errno == errno.EADDRINUSE:
                yield error("server/port", message, f"find the program with ss -ltnp 'sport = :{port}'")
            elif failure.errno == errno.EACCES:
                yield error("server/port", message, "use a port from 1024 on, or give the capability to bind it")
            else:
                yield error("server/port", message, "set --bind-address to an address of this machine")
            return
    yield ok("server/port", f"port {port} of {address} is free")
