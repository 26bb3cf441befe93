"""Support for C{unittest}: test cases with a server, for any runner of C{unittest} tests."""

from __future__ import annotations

import atexit
import unittest
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from ._child import ChildKubeAPI
    from ._inprocess import KubeAPI

#: The running servers, by whether they run in a child process, and their flags.
_servers: dict[tuple[bool, tuple[str, ...]], KubeAPI | ChildKubeAPI] = {}


class KubeAPITestCase(unittest.TestCase):
    """
    A test case with a server. Each test begins with the state after the start of the server.

    Test cases with the same flags share a server, which starts with the first of them and runs until the process ends.
    Clients find it by its kubeconfig during each test, as L{kubetwist.testing.Connection.use_kubeconfig} describes.

    @cvar kube_api_arguments: Flags of C{twist kubeapi}.
    @cvar kube_api_child: Whether the server runs in a child process, for tests that use Twisted's reactor or gevent.
    @cvar kube_api: The server: see L{kubetwist.testing.KubeAPI}.
    """

    kube_api_arguments: ClassVar[Sequence[str]] = ()
    kube_api_child: ClassVar[bool] = False
    kube_api: ClassVar[KubeAPI | ChildKubeAPI]

    @classmethod
    def setUpClass(cls) -> None:
        """Start the server, unless it runs."""
        super().setUpClass()
        cls.kube_api = _server(cls.kube_api_child, tuple(cls.kube_api_arguments))

    def setUp(self) -> None:
        """Reset the server."""
        super().setUp()
        self.kube_api.reset()
        self.enterContext(self.kube_api.connection.use_kubeconfig())
        # The next test may use another server, which has the same clock.
        self.addCleanup(self.kube_api.reset_clock)


def _server(child: bool, arguments: tuple[str, ...]) -> KubeAPI | ChildKubeAPI:
    """Return a running server."""
    from ._child import ChildKubeAPI
    from ._inprocess import KubeAPI

    server = _servers.get((child, arguments))
    if server is None:
        server = ChildKubeAPI(*arguments) if child else KubeAPI(*arguments)
        server.start()
        if child:
            # The reactor in a thread ends before the functions of atexit are called, and its servers with it.
            atexit.register(server.stop)
        # The first test may need what controllers make, such as service accounts.
        server.settle()
        _servers[child, arguments] = server
    return server
