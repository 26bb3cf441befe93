"""Base of tests with a memory guard."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.connection import memorylimit
from kubetwist.http.connection.memorylimit import MemoryGuard, Usage

MIB = 1 << 20


MAPS = "/api/v1/namespaces/default/configmaps"


class GuardCase(SynchronousTestCase):
    """A guard whose memory usage and time are set by the test."""

    def setUp(self) -> None:
        """Create a guard with a limit of 1000 MiB, of which 64 MiB are kept free."""
        self.used = Usage(100 * MIB)
        self.time = 0.0
        self.trims: list[float] = []
        self.patch(memorylimit, "trim", lambda: self.trims.append(self.time))
        self.guard = MemoryGuard(1000 * MIB, lambda: self.used, lambda: self.time)

    def use(self, mib: int, **more: int) -> None:
        """Set the used memory."""
        self.used = Usage(mib * MIB, **more)
        self.time += 1
