"""Fake aggregated servers, for tests of what is fetched from them; no connections are opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from attrs import define, field

from twisted.internet.defer import Deferred

from kubetwist.api.resource import GroupVersion
from kubetwist.client.errors import CallError
from kubetwist.client.httpclient import Response
from kubetwist.registry.kinds import Priority

_USUAL = Priority(1000, 15)
AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def answer(content: Any, code: int = 200, **headers: str) -> Response:
    """Return a response; underscores in header names become dashes."""
    body = content if isinstance(content, bytes) else orjson.dumps(content)
    fields = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(code, fields, body)


@define(eq=False)
class FakeServer:
    """
    A fake server.

    @ivar answers: By path: an L{Response}, an error to raise, a Deferred of one of them, or a function that returns one
    of these for the C{If-None-Match} of a request. Other paths are answered 404.
    @ivar calls: The received requests: path, C{If-None-Match}, user.
    """

    name: str
    answers: dict[str, Any] = field(factory=dict)
    calls: list[tuple[str, str, str]] = field(factory=list)

    async def fetch(self, path: str, *, accept: str = "", etag: str = "", timeout: float = 5.0, user: str = "") -> Any:
        """Return the response for a path."""
        self.calls.append((path, etag, user))
        found = self.answers.get(path, answer({}, 404))
        if callable(found):
            found = found(etag)
        if isinstance(found, Deferred):
            found = await found
        if isinstance(found, Exception):
            raise found
        return found

    def paths(self) -> list[str]:
        """Return the paths of the requests since the last call."""
        paths = [path for path, _, _ in self.calls]
        self.calls.clear()
        return paths


@define(eq=False)
class FakeRemote:
    """A group-version of a fake server."""

    server: FakeServer
    group_version: GroupVersion
    priority: Priority = _USUAL
    available: bool = True

    @property
    def name(self) -> str:
        """Return the name of its APIService."""
        return f"{self.group_version.version}.{self.group_version.group}"

    @property
    def service(self) -> str:
        """Return the key of its service."""
        return self.server.name

    @property
    def fetch(self) -> Any:
        """Fetch a document from the fake server."""
        return self.server.fetch


class FakeRemotes:
    """All fake group-versions."""

    def __init__(self) -> None:
        self.aggregated_servers: dict[GroupVersion, FakeRemote] = {}
        self._listeners: list[Callable[[GroupVersion, Any], None]] = []

    def subscribe(self, listener: Callable[[GroupVersion, Any], None]) -> Callable[[], None]:
        """Add a listener for changes."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def add(
        self, server: FakeServer, group: str, version: str, priority: Priority = _USUAL, up: bool = True
    ) -> FakeRemote:
        """Add a group-version to a server."""
        group_version = GroupVersion(group, version)
        remote = self.aggregated_servers[group_version] = FakeRemote(server, group_version, priority, up)
        self.notify(group_version)
        return remote

    def remove(self, group: str, version: str) -> None:
        """Remove a group-version from a server."""
        del self.aggregated_servers[GroupVersion(group, version)]
        self.notify(GroupVersion(group, version))

    def notify(self, group_version: GroupVersion) -> None:
        """Notify the listeners of a change."""
        for listener in list(self._listeners):
            listener(group_version, self.aggregated_servers.get(group_version))


def refused() -> CallError:
    """Raise: the connection is refused."""
    return CallError("GET", "https://far.ns.svc:443/apis", "dial tcp 10.0.0.7:443: connect: connection refused")
