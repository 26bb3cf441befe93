"""
The store in another process: one storage process has the backend, and each front process has a connection to it.

L{StorageServer} serves a backend, L{RemoteStorage} is the backend of a front. The protocol is described in
L{kubetwist.storage.remote._frames} and L{kubetwist.storage.remote._messages}.
"""

from ._server import StorageServer
from ._sockets import connect
from ._storage import RemoteStorage

__all__ = ["RemoteStorage", "StorageServer", "connect"]
