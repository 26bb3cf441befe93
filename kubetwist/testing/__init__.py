"""What the tests of users import: servers that start fast, fakes, suites for providers."""

from .child import ChildKubeAPI
from .connection import Connection
from .inprocess import InProcessServer, KubeAPI
from .process import ServerNotReady, SubprocessServer

__all__ = ["ChildKubeAPI", "Connection", "InProcessServer", "KubeAPI", "ServerNotReady", "SubprocessServer"]
