"""C{twist kubeapi}: the service that a command line starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from twisted.application.service import IService

from .cli.kubeapi import Options

if TYPE_CHECKING:
    from .interfaces import IServerReactor

__all__ = ["Options", "makeService"]


def makeService(options: Options) -> IService:
    """
    Make what C{twist} starts; nothing happens before that.

    @return: A service whose C{ready}, a Deferred, fires when the server is, or fails when it can not be.
    """
    from twisted.internet import reactor

    from .server.service import KubeAPIService, TwistProcess

    running = cast("IServerReactor", reactor)
    service = KubeAPIService(options, running)
    if options.parent is not None:
        TwistProcess(service, running, options).install()
    return service
