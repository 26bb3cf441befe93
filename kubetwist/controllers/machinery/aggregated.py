"""Aggregated API servers, as controllers use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ...api.resource import GroupVersion, UserInfo

if TYPE_CHECKING:
    from ...client.httpclient import Response


class IAggregatedServer(Protocol):
    """
    The server behind an APIService.

    L{kubetwist.controllers.aggregation.apiservices.AggregatedServer} provides it.
    """

    @property
    def group_version(self) -> GroupVersion:
        """The group and version that it serves."""

    @property
    def available(self) -> bool:
        """Whether its APIService has the condition C{Available}."""

    @property
    def path(self) -> str:
        """The path of its resource list."""

    async def fetch(self, path: str, *, timeout: float) -> Response:
        """
        Get a document in the name of this server.

        @param timeout: In seconds.
        """

    async def call(
        self,
        method: str,
        path: str,
        user: UserInfo,
        *,
        headers: Mapping[str, Sequence[str]],
        body: bytes = b"",
        query: str = "",
    ) -> Response:
        """
        Send a request in the name of a user.

        @param path: Escaped, as is C{query}.
        """


class IServedVersions(Protocol):
    """The groups and versions of all APIServices."""

    def group_versions(self) -> Sequence[GroupVersion]:
        """Return them in order of priority."""


class IAggregation(Protocol):
    """All servers behind APIServices; L{kubetwist.controllers.aggregation.apiservices.Aggregation} provides it."""

    @property
    def aggregated_servers(self) -> Mapping[GroupVersion, IAggregatedServer]:
        """The servers, by group and version."""

    @property
    def api_services(self) -> IServedVersions:
        """The groups and versions of all APIServices, those of this server included."""
