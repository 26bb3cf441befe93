"""Public test support: servers that start fast, fakes, suites for providers."""

from ._child import ChildKubeAPI
from ._connection import Connection
from ._credentials import CredentialError
from ._inprocess import (
    InProcessServer,
    KubeAPI,
)
from ._process import (
    ServerNotReady,
    SubprocessServer,
)
from ._simulation import SimulationError
from ._waiting import WaitTimeout
from .expectations import ExpectedRequest

__all__ = [
    "ChildKubeAPI",
    "Connection",
    "CredentialError",
    "ExpectedRequest",
    "InProcessServer",
    "KubeAPI",
    "ServerNotReady",
    "SimulationError",
    "SubprocessServer",
    "WaitTimeout",
]
