"""The part of the server that audit backends use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..api.filewatcher import FileWatcher
from ..interfaces import IServerReactor

if TYPE_CHECKING:
    from ..client.factory import ClientFactory


class AuditDependencies(Protocol):
    """
    The parts of the server that the auditor and its backends use.

    @see: L{kubetwist.server.context.PluginContext}, which implements it.
    """

    @property
    def reactor(self) -> IServerReactor:
        """The clock and threads."""

    @property
    def outgoing(self) -> ClientFactory:
        """The factory of the client of the audit webhook."""

    @property
    def files(self) -> FileWatcher:
        """Reads the policy, and reads it again when it changes."""
