"""Blocking methods of a server that runs on the reactor of this process, for code in another thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._inprocess import KubeAPI

if TYPE_CHECKING:
    from ._inprocess import InProcessServer


class RunningKubeAPI(KubeAPI):
    """The methods of L{KubeAPI} for a server that runs already. They must not be called in the reactor's thread."""

    def __init__(self, server: InProcessServer) -> None:
        """
        @param server: The server, which its owner stops.
        """
        self._server = server
        self._reactor = server._reactor
        self._connection = server.connection
