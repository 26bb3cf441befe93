"""The resources of a server over HTTP in memory: a clock instead of a reactor, connections that are strings."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import orjson

from twisted.internet.defer import Deferred, execute
from twisted.internet.task import Clock

from kubetwist.api.resource import UserInfo
from kubetwist.filters.stack import with_filters
from kubetwist.http.site import traverse
from kubetwist.registry.generic.resourceinfo import ResourceInfo
from kubetwist.registry.kinds import kinds_for
from kubetwist.registry.stores import Stores
from kubetwist.resources.apis import ServerContext
from kubetwist.resources.handlers.watch import Flusher
from kubetwist.resources.install import Installer
from kubetwist.resources.mux import Layer
from kubetwist.schema.definitions import Definitions
from kubetwist.server.chain import NotFound
from kubetwist.storage.memory import MemoryStorage
from tests.http.harness import Allow, Answer, Client, Everyone, make_site

ADMIN = UserInfo("admin", groups=("system:masters", "system:authenticated"))


@cache
def definitions() -> Definitions:
    """The types of one release, loaded once for all tests."""
    return Definitions.load("1.36")


@cache
def all_kinds() -> tuple[ResourceInfo, ...]:
    """Every resource of that release."""
    return tuple(kinds_for(definitions().gvks(), 36))


class Server:
    """
    Some resources, without the rest of a server; no admission plugin is on.

    @ivar clock: Stands for the time.
    @ivar done_in_threads: What was done where a real server has threads.
    """

    def __init__(
        self,
        *resources: str,
        user: UserInfo = ADMIN,
        **options: Any,
    ) -> None:
        """
        @param resources: Their names.
        @param options: For L{Stores}.
        """
        self.clock = Clock()
        self.clock.advance(1_800_000_000)
        self.backend = MemoryStorage(self.clock)
        self.infos = [info for info in all_kinds() if info.resource in resources]
        self.stores = Stores(self.backend, self.clock, **options)
        self.stores.add(self.infos)
        self.done_in_threads: list[Callable[..., Any]] = []
        layer = Layer("test", NotFound())
        self.authorizer = Allow()
        self.installer = Installer(
            layer,
            self.stores,
            definitions(),
            self.clock,
            Flusher(self.clock),
            context=ServerContext(self.authorizer, lambda token: None),
            in_thread=self._in_thread,
        )
        self.installer.install(self.infos)
        handler = with_filters(
            traverse(layer), reactor=self.clock, authenticator=Everyone(user), authorizer=self.authorizer
        )
        self.site = make_site(handler, self.clock)
        Deferred.fromCoroutine(self._open())

    async def _open(self) -> None:
        await self.backend.open()
        await self.stores.start()

    def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        self.done_in_threads.append(function)
        return execute(function, *arguments)

    def client(self) -> JSONClient:
        """A connection."""
        return JSONClient(self.site)


class JSONClient(Client):
    """A connection of somebody who speaks JSON."""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """
        Send a request.

        @param body: Bytes, or what is sent as JSON.
        @return: The status, and the decoded body.
        """
        answer = self.answer(method, path, body, **headers)
        return answer.code, orjson.loads(answer.body) if answer.body else None

    def answer(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request; give its answer as it is."""
        if body is not None and not isinstance(body, bytes):
            body = orjson.dumps(body)
        if body is not None:
            headers.setdefault("Content_Type", "application/json")
        return self.request(method, path, body or b"", **headers)

    def begin(self, path: str, **headers: str) -> bytes:
        """Begin a watch; give the head of its answer and what came at once."""
        fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n".encode())
        return self.taken()

    def taken(self) -> bytes:
        """What came since the last call."""
        data = bytes(self.transport.value())
        self.transport.clear()
        return data

    def gone(self) -> None:
        """Hang up."""
        self.channel.connectionLost(RuntimeError("gone"))


def chunks(data: bytes) -> list[bytes]:
    """The pieces of a chunked body, as far as it has come; the empty one at its end as well."""
    found = []
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        found.append(data[:length])
        data = data[length + 2 :]
    return found


def events(data: bytes) -> list[Any]:
    """The watch events in a chunked body, without its head."""
    return [orjson.loads(line) for line in b"".join(chunks(data)).splitlines()]


def config_map(name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    """A ConfigMap."""
    obj: dict[str, Any] = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace},
    }
    if data:
        obj["data"] = data
    return obj


def pod(name: str, **more: Any) -> dict[str, Any]:
    """A Pod of one container."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default", **more},
        "spec": {"containers": [{"name": "main", "image": "example.org/main:1"}]},
    }
