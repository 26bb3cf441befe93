"""Interfaces of aggregated API servers for controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ...api.resource import GroupVersion, UserInfo

if TYPE_CHECKING:
    from ...client.httpclient import Response


class IAggregatedServer(Protocol):
    """
    The API server behind an APIService.

    Provided by L{kubetwist.controllers.aggregation.apiservices.AggregatedServer}.
    """

    @property
    def group_version(self) -> GroupVersion:
        """The group and version of the APIService."""

    @property
    def available(self) -> bool:
        """Whether its APIService has the condition C{Available}."""

    @property
    def path(self) -> str:
        """The path of the resource list: C{"/apis/GROUP/VERSION"}."""

    async def fetch(self, path: str, *, timeout: float) -> Response:
        """
        Get a document with the credentials of this server.

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
        timeout: float = 30.0,
    ) -> Response:
        """
        Send a request on behalf of a user.

        @param method: The HTTP method.
        @param path: The path, escaped.
        @param user: The user, who is already authorized.
        @param query: The query string, escaped.
        @param body: The body of the request.
        @param timeout: In seconds.
        """


class IServedVersions(Protocol):
    """The groups and versions of all APIServices."""

    def group_versions(self) -> Sequence[GroupVersion]:
        """Return all group-versions in order of priority."""


class IAggregation(Protocol):
    """All aggregated API servers. Provided by L{kubetwist.controllers.aggregation.apiservices.Aggregation}."""

    @property
    def aggregated_servers(self) -> Mapping[GroupVersion, IAggregatedServer]:
        """The servers, by group and version."""

    @property
    def api_services(self) -> IServedVersions:
        """The groups and versions of all APIServices, including local ones."""
