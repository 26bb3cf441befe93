"""
C{python -m kubetwist.testing.envtest._kubeapiserver}: C{twist kubeapi} under the command line of kube-apiserver.

If --etcd-servers is the stand-in of L{kubetwist.testing.envtest}, the objects are stored in its data directory, with
the certificates of the server. A server that starts again finds them, as it would in etcd.
"""

from __future__ import annotations

import http.client
import json
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attrs import frozen

from ...cli.flagtypes import FlagError
from ...cli.kubeapi import Options
from ._etcd import DESCRIPTION_PATH

#: Flags of a server that is part of a test. The command line overrides them.
DEFAULTS = ("--enable-ui=false",)
#: The directory of this server in the one of the stand-in, and in --cert-dir.
DATA_DIRECTORY = "kubetwist"
#: Seconds that the etcd of the command line has for an answer.
TIMEOUT = 10.0
#: Maximum size of the description of a stand-in, in bytes.
MAX_DESCRIPTION = 65536


@frozen
class StandIn:
    """
    The stand-in for etcd that a server uses.

    @ivar data_dir: Its data directory.
    @ivar synced: Whether writes are acknowledged when they are on the disk.
    """

    data_dir: Path
    synced: bool


def find_stand_in(url: str) -> StandIn | None:
    """
    Ask an etcd whether it is our stand-in. Blocking, at most L{TIMEOUT} seconds.

    @param url: One of C{--etcd-servers}.
    @return: L{None} for a real etcd, or none at all: the server reports that.
    """
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        return None
    try:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT)
        try:
            connection.request("GET", DESCRIPTION_PATH)
            response = connection.getresponse()
            content = response.read(MAX_DESCRIPTION)
        finally:
            connection.close()
        if response.status != 200:
            return None
        description: Any = json.loads(content)
        return StandIn(Path(description["data-dir"]), not description["unsafe-no-fsync"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None


def without_flag(arguments: Sequence[str], name: str) -> list[str]:
    """
    Return a command line without one flag, which has a value.

    @param name: The name, without dashes in front.
    """
    kept: list[str] = []
    remaining = list(arguments)
    while remaining:
        argument = remaining.pop(0)
        flag, equals, _ = argument.partition("=")
        if flag.removeprefix("--").replace("_", "-") != name:
            kept.append(argument)
        elif not equals and remaining:
            remaining.pop(0)
    return kept


def command_line(arguments: Sequence[str]) -> list[str]:
    """
    Return the arguments of C{twist kubeapi} for a command line of kube-apiserver.

    @raise FlagError: A flag is unknown or invalid, or --etcd-servers is missing.
    """
    options = Options()
    options.read(arguments)
    result = [*DEFAULTS, *arguments]
    if options["in-memory"]:
        return result
    if not options["etcd-servers"]:
        raise FlagError("--etcd-servers must be specified")
    stand_in = find_stand_in(options["etcd-servers"][0])
    if stand_in is None:
        if "data-dir" not in options.changed and options["cert-dir"]:
            # Several servers may share a directory of certificates.
            folder = f"{DATA_DIRECTORY}-{options['secure-port']}"
            result.append(f"--data-dir={Path(options['cert-dir'], folder)}")
        return result
    result = without_flag(without_flag(result, "etcd-servers"), "storage-media-type")
    if options["storage-backend"] == "etcd3":
        result = without_flag(result, "storage-backend")
    if "data-dir" not in options.changed:
        result.append(f"--data-dir={stand_in.data_dir / DATA_DIRECTORY}")
    if not stand_in.synced:
        result.append("--unsafe-no-fsync")
    return result


def version(options: Options) -> str:
    """Return the line of C{--version}."""
    from ...server.version import check_kubernetes_version, git_version

    return f"Kubernetes {git_version(check_kubernetes_version(options['kubernetes-version']))}"


def main(arguments: Sequence[str]) -> None:
    """
    Run until SIGTERM.

    @raise SystemExit: With an exit code.
    """
    if {"--help", "-h"}.intersection(arguments):
        print(Options())
        return
    try:
        if {"--version", "--version=true"}.intersection(arguments):
            options = Options()
            options.read([one for one in arguments if one.partition("=")[0] != "--version"])
            print(version(options))
            return
        sys.argv[1:] = ["kubeapi", *command_line(arguments)]
    except ValueError as error:
        print(f"kube-apiserver: {error}; see kube-apiserver --help", file=sys.stderr)
        raise SystemExit(1) from None
    runpy.run_module("twisted", run_name="__main__", alter_sys=False)


if __name__ == "__main__":
    main(sys.argv[1:])
