"""Support for trial test cases: a server on trial's reactor for the time of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._inprocess import InProcessServer

if TYPE_CHECKING:
    from twisted.trial.unittest import TestCase as _TestCase

    from .manifests import Sources
else:
    _TestCase = object


class KubeAPIMixin(_TestCase):
    """Mix into a L{twisted.trial.unittest.TestCase}, in front of it."""

    async def startKubeAPI(self, *arguments: str, load: Sources = ()) -> InProcessServer:
        """
        Start a server that is stopped after the test.

        @param arguments: Flags of C{twist kubeapi}.
        @param load: What is loaded: paths, glob patterns and objects.
        """
        server = InProcessServer(*arguments, load=load)

        async def stop() -> None:
            await server.stop()

        self.addCleanup(stop)
        return await server.start()
