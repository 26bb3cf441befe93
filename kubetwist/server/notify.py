"""Notify the service manager, as C{sd_notify(3)} does."""

from __future__ import annotations

import os
import socket

from twisted.logger import Logger

_log = Logger()


def notify(state: str) -> None:
    """Send C{state}, such as C{"READY=1"}, to C{$NOTIFY_SOCKET}; do nothing if it is not set."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notified:
            notified.sendto(state.encode(), address)
    except OSError as error:
        _log.warn("cannot notify the service manager: {error}", error=str(error))
