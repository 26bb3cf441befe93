"""The Twisted plugin C{twist kubeapi}: options and service."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from twisted.application.service import IService

from .cli.kubeapi import Options

if TYPE_CHECKING:
    from .interfaces import IServerReactor

__all__ = ["Options", "makeService"]


def makeService(options: Options) -> IService:
    """
    Return the service that C{twist} starts. Nothing is started by this function.

    @return: A service. Its C{ready}, a Deferred, fires when the server is ready, or fails with the startup error.
    """
    from twisted.internet import reactor

    from .server.service import KubeAPIService, TwistProcess

    running = cast("IServerReactor", reactor)
    worker = 0
    if not options["workers"] or options.parent is None:
        service = KubeAPIService(options, running)
    else:
        from .server.workers.description import take_description

        description = take_description()
        if description is None:
            from .server.workers.storageprocess import StorageService

            service = StorageService(options, running)
        else:
            from .server.workers.front import FrontService

            worker = description.number
            service = FrontService(options, running, description)
    if options.parent is not None:
        TwistProcess(service, running, options, worker).install()
    return service
