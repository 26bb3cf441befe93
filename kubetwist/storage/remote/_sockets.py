"""
The Unix socket between a storage process and its front processes.

The directory and the socket are accessible to their owner only; the user of the other process is checked too.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from struct import Struct
from typing import Any, Final

from twisted.internet.endpoints import UNIXClientEndpoint
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import (
    IListeningPort,
    IReactorUNIX,
    IStreamClientEndpoint,
    ITransport,
)
from twisted.internet.protocol import Factory
from twisted.internet.tcp import Connection

from ..errors import StorageUnavailable

#: The name of the socket in its directory.
SOCKET_NAME: Final = "storage.sock"
#: Maximum length of the path of a socket in bytes: Linux has 108 with the final zero, other systems have 104.
MAX_PATH: Final = 103
#: The descriptors of this process as paths.
DESCRIPTORS: Final = "/proc/self/fd"
#: The descriptors of directories with long paths.
_descriptors: Final[dict[str, int]] = {}
_CREDENTIALS: Final = Struct("3i")


def socket_path(directory: str) -> str:
    """
    Return the path of the socket in a directory.

    A path that is too long for a socket is replaced, on Linux, by one through a descriptor of the directory, which is
    kept open.

    @raise StorageUnavailable: The path is too long, and cannot be replaced.
    """
    path = os.path.join(directory, SOCKET_NAME)
    if len(os.fsencode(path)) <= MAX_PATH:
        return path
    if not os.path.isdir(DESCRIPTORS):
        raise StorageUnavailable(f"the path of a socket has at most {MAX_PATH} bytes: {path}")
    descriptor = _descriptors.get(directory)
    if descriptor is None:
        try:
            descriptor = _descriptors[directory] = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise StorageUnavailable(f"{path} cannot be used: {error}") from None
    return f"{DESCRIPTORS}/{descriptor}/{SOCKET_NAME}"


def connect(reactor: IReactorUNIX, directory: str) -> IStreamClientEndpoint:
    """
    Return the endpoint of the socket in a directory.

    @raise StorageUnavailable: The directory cannot be used.
    """
    return UNIXClientEndpoint(reactor, socket_path(directory))


def listen(reactor: IReactorUNIX, directory: str, factory: Factory) -> IListeningPort:
    """
    Listen on the socket in a directory, which is created.

    A socket that an earlier process left is replaced: only one process has the storage.

    @raise StorageUnavailable: The directory belongs to another user or is a link, or the socket cannot be created.
    """
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        found = os.lstat(directory)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise StorageUnavailable(f"{directory} is not a directory of the user of this process")
        os.chmod(directory, 0o700)
        path = socket_path(directory)
        with suppress(FileNotFoundError):
            os.unlink(path)
        # The mode is set after the socket is created: until then, the directory protects it.
        return reactor.listenUNIX(path, factory, mode=0o600)
    except (OSError, CannotListenError) as error:
        raise StorageUnavailable(f"no socket can be created in {directory}: {error}") from None


def peer_user(transport: ITransport) -> int | None:
    """Return the user id of the process at the other end; L{None} if the system or the transport does not know it."""
    connection = getattr(transport, "socket", None)
    if not isinstance(connection, socket.socket) or not hasattr(socket, "SO_PEERCRED"):
        return None
    try:
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError:
        return None
    user: int = _CREDENTIALS.unpack(data)[1]
    return user


def peer_is_trusted(transport: ITransport) -> bool:
    """Return whether the process at the other end has the user of this process, if that can be known."""
    user = peer_user(transport)
    return user is None or user == os.geteuid()


def send(transport: Any, data: bytes) -> None:
    """
    Send data at once, as far as the socket accepts them; the reactor sends the rest.

    Twisted would register the socket for writing, and send in a later iteration.
    """
    if not isinstance(transport, Connection) or transport.dataBuffer or transport._tempDataLen:
        transport.write(data)
        return
    if transport.disconnecting or not transport.connected:
        return
    sent = transport.writeSomeData(data)
    if not isinstance(sent, int):
        # The other process has disconnected: the reactor detects that itself.
        sent = 0
    if sent < len(data):
        transport.write(data[sent:] if sent else data)
