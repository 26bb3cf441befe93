"""
A stand-in for etcd: it answers health checks, and names the directory in which the API server keeps its objects.

It speaks no etcd protocol. L{kubetwist.testing.envtest._kubeapiserver} recognizes it.

This file is run by its path, without site-packages, so that it starts fast: it imports only the standard library.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import socketserver
import sys
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from types import FrameType
from urllib.parse import urlsplit

#: The version of etcd in C{/version} and C{--version}.
VERSION = "3.6.0"
#: The path with the description of this program, in JSON.
DESCRIPTION_PATH = "/kubetwist"
#: Seconds until a connection without a complete request is closed.
TIMEOUT = 10.0
HELP = f"""Usage: etcd [flags]

A stand-in for etcd, by kubetwist: kube-apiserver beside it keeps its objects in --data-dir, without etcd. It answers
GET /health and GET /version, and has no other API. All flags of etcd are accepted; these have an effect:

  --data-dir 'default.etcd'
    Directory of the objects.
  --listen-client-urls 'http://localhost:2379'
    Comma-separated URLs to listen on, http only.
  --unsafe-no-fsync 'false'
    Do not wait for the disk.
  --version 'false'
    Print the version and exit.
  --help
    Print this text and exit. (etcd {VERSION} is what clients see.)
"""


class FlagError(ValueError):
    """The command line is invalid; the text is one line."""


def parse(arguments: Sequence[str]) -> dict[str, str]:
    """
    Parse flags in the syntax of Go: C{-name=value}, C{--name value}, and C{--name} for a boolean.

    @return: The values by name, the last one of repeated flags.
    @raise FlagError: There is an argument that is no flag.
    """
    values: dict[str, str] = {}
    remaining = list(arguments)
    while remaining:
        argument = remaining.pop(0)
        if not argument.startswith("-") or not argument.strip("-"):
            raise FlagError(f"{argument!r} is not a valid flag")
        name, equals, value = argument.removeprefix("-").removeprefix("-").partition("=")
        if not equals:
            value = remaining.pop(0) if remaining and not remaining[0].startswith("-") else "true"
        values[name] = value
    return values


def parse_bool(text: str) -> bool:
    """
    Parse a boolean as Go's strconv.ParseBool.

    @raise FlagError: It is none.
    """
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise FlagError(f"invalid boolean value {text!r}")


def parse_urls(text: str) -> list[tuple[str, int]]:
    """
    Return the addresses of client URLs.

    @raise FlagError: One is not C{http://HOST:PORT}.
    """
    addresses = []
    for url in text.split(","):
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = None
        if parts.scheme != "http" or not parts.hostname or port is None:
            raise FlagError(f"--listen-client-urls: want http://HOST:PORT, not {url!r}")
        addresses.append((parts.hostname, port))
    return addresses


class Server(socketserver.ThreadingTCPServer):
    """Listens on one address."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, host: str, port: int, description: bytes) -> None:
        """
        @param description: The content of L{DESCRIPTION_PATH}.
        @raise OSError: The address cannot be used.
        """
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self.address_family = family
        self.documents = {
            "/health": b'{"health":"true","reason":""}',
            "/version": json.dumps({"etcdserver": VERSION, "etcdcluster": VERSION}).encode(),
            DESCRIPTION_PATH: description,
        }
        super().__init__(address[:2], Handler)  # type: ignore[arg-type] # a host and a port


class Handler(BaseHTTPRequestHandler):
    """Answers GET."""

    server: Server
    timeout = TIMEOUT

    def do_GET(self) -> None:
        """Send a document."""
        content = self.server.documents.get(self.path.partition("?")[0])
        self.send_response(404 if content is None else 200)
        content = b"404 page not found\n" if content is None else content
        self.send_header("Content-Type", "application/json" if content.startswith(b"{") else "text/plain")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: polls are frequent."""


def stop(number: int, frame: FrameType | None) -> None:
    """End the process: there is nothing to finish."""
    os._exit(0)


def main(arguments: Sequence[str]) -> int:
    """
    Run until SIGTERM or SIGINT.

    @return: The exit code.
    """
    try:
        values = parse(arguments)
        if "help" in values or "h" in values:
            print(HELP, end="")
            return 0
        if parse_bool(values.get("version", "false")):
            print(f"etcd Version: {VERSION}\nGit SHA: kubetwist")
            return 0
        folder = os.path.abspath(values.get("data-dir") or "default.etcd")
        unsynced = parse_bool(values.get("unsafe-no-fsync", "false"))
        addresses = parse_urls(values.get("listen-client-urls") or "http://localhost:2379")
    except FlagError as error:
        print(f"etcd: {error}; see etcd --help", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    description = json.dumps({"data-dir": folder, "unsafe-no-fsync": unsynced}).encode()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        servers = [Server(host, port, description) for host, port in addresses]
    except OSError as error:
        where = folder if error.filename else values.get("listen-client-urls", "")
        print(f"etcd: cannot use {where}: {error.strerror}", file=sys.stderr)
        return 1
    for server in servers[1:]:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    servers[0].serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
