"""The resources of a server over HTTP in memory: with a clock instead of a reactor, and string transports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import orjson

from twisted.internet.defer import Deferred, execute
from twisted.internet.task import Clock

from kubetwist.admission.chain import AdmissionChain
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.resource import UserInfo
from kubetwist.filters.handlerchain import build_handler_chain
from kubetwist.http.site import traverse
from kubetwist.registry.assembly import AdmissionFactory, RegistryOptions, ResourceRegistry
from kubetwist.registry.core.servercontext import ServerContext
from kubetwist.registry.generic.resourceinfo import ResourceInfo
from kubetwist.registry.kinds import kinds_for
from kubetwist.registry.rbac.ruleresolver import RuleResolver
from kubetwist.resources.documents import install_group_not_found
from kubetwist.resources.handlers.watch import WatchFlusher
from kubetwist.resources.install import Installer
from kubetwist.resources.mux import DelegatingMux, NotFound
from kubetwist.schema.definitions import Definitions
from kubetwist.storage.memory import MemoryStorage
from tests.http.harness import Allow, Answer, Client, Everyone, make_site

ADMIN = UserInfo("admin", groups=("system:masters", "system:authenticated"))


@cache
def definitions() -> Definitions:
    """Return the types of one release, loaded once for all tests."""
    return Definitions.load("1.36")


@cache
def all_kinds() -> tuple[ResourceInfo, ...]:
    """Return every resource of that release."""
    return tuple(kinds_for(definitions().gvks(), FeatureGates()))


class Plugins(AdmissionChain):
    """An admission chain whose plugins tests can replace."""

    def use(self, *plugins: Any) -> None:
        """Use these plugins for all further writes."""
        super().__init__(plugins, self._reactor)


def configured(*plugins: Any) -> AdmissionFactory:
    """Return a factory of a chain of plugins without configuration, given as classes."""
    return lambda context: Plugins([one.configured(context, None) for one in plugins], context.reactor)


class Server:
    """
    Some resources, without the rest of a server.

    @ivar clock: The reactor's time.
    @ivar registry: The stores, and their shared dependencies.
    @ivar done_in_threads: The functions that a real server runs in threads.
    """

    def __init__(
        self,
        *resources: str,
        user: UserInfo = ADMIN,
        authenticator: Any = None,
        authorizer: Any = None,
        grants: RuleResolver | None = None,
        admission: AdmissionFactory | None = None,
        outgoing: Any = None,
        types: Definitions | None = None,
        authenticate_token: Callable[[str, Sequence[str]], Any] = lambda token, audiences: None,
        token_issuer: Any = None,
        traced: bool = False,
        **options: Any,
    ) -> None:
        """
        @param resources: The names of the served resources.
        @param user: The user of all requests, unless there is an authenticator.
        @param authorizer: The authorizer; by default it allows everything.
        @param grants: The rule resolver, if the authorizer is RBAC.
        @param admission: Creates the admission chain; L{None} enables no plugin.
        @param types: The types of the release, for field ownership of objects that the server writes.
        @param traced: Whether requests are traced.
        @param options: Options of L{RegistryOptions}.
        """
        self.clock = Clock()
        self.clock.advance(1_800_000_000)
        self.backend = MemoryStorage(self.clock)
        self.infos = [info for info in all_kinds() if info.resource in resources]
        self.authorizer = authorizer or Allow()
        self.registry = ResourceRegistry(
            self.backend,
            self.clock,
            self.infos,
            definitions=types,
            options=RegistryOptions(**options),
            grants=grants,
            authorizer=self.authorizer,
            outgoing=outgoing,
            admission=admission or configured(),
        )
        self.stores = self.registry.stores
        self.context = ServerContext(
            self.stores,
            self.registry.environment,
            self.authorizer,
            authenticate_token,
            token_issuer,
            outgoing,
        )
        self.done_in_threads: list[Callable[..., Any]] = []
        mux = DelegatingMux("test", NotFound())
        self.installer = Installer(
            mux,
            self.context,
            types or definitions(),
            self.clock,
            WatchFlusher(self.clock),
            defer_to_thread=self._in_thread,
            traced=traced,
        )
        self.installer.install(self.infos)
        install_group_not_found(mux, self.installer.served_resources)
        handler = build_handler_chain(
            traverse(mux),
            reactor=self.clock,
            authenticator=authenticator or Everyone(user),
            authorizer=self.authorizer,
        )
        self.site = make_site(handler, self.clock)
        self.site.features = self.registry.environment.features
        Deferred.fromCoroutine(self._open())

    async def _open(self) -> None:
        await self.backend.open()
        await self.registry.start()

    def admit(self, *plugins: Any) -> None:
        """Use admission plugins for all further writes."""
        assert isinstance(self.registry.admission, Plugins), "the chain of this server does not change"
        self.registry.admission.use(*plugins)

    def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        self.done_in_threads.append(function)
        return execute(function, *arguments)

    def client(self) -> JSONClient:
        """Connect a client."""
        return JSONClient(self.site)


class JSONClient(Client):
    """A client connection that sends and accepts JSON."""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """
        Send a request.

        @param body: Bytes, or a value to send as JSON.
        @return: The status, and the decoded body.
        """
        answer = self.answer(method, path, body, **headers)
        return answer.code, orjson.loads(answer.body) if answer.body else None

    def answer(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request; return the complete response."""
        if body is not None and not isinstance(body, bytes):
            body = orjson.dumps(body)
        if body is not None:
            headers.setdefault("Content_Type", "application/json")
        return self.request(method, path, body or b"", **headers)

    def begin(self, path: str, **headers: str) -> bytes:
        """Begin a watch; return the head of the response and the data that arrives immediately."""
        fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n".encode())
        return self.taken()

    def taken(self) -> bytes:
        """Return the data since the last call."""
        data = bytes(self.transport.value())
        self.transport.clear()
        return data

    def disconnect(self) -> None:
        """Disconnect the client."""
        self.channel.connectionLost(RuntimeError("gone"))


def chunks(data: bytes) -> list[bytes]:
    """Return the chunks of a chunked body so far, including the empty one at its end."""
    found = []
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        found.append(data[:length])
        data = data[length + 2 :]
    return found


def events(data: bytes) -> list[Any]:
    """Return the watch events in a chunked body, without the head."""
    return [orjson.loads(line) for line in b"".join(chunks(data)).splitlines()]


def config_map(name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    obj: dict[str, Any] = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace},
    }
    if data:
        obj["data"] = data
    return obj


def pod(name: str, **more: Any) -> dict[str, Any]:
    """Return a Pod of one container."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default", **more},
        "spec": {"containers": [{"name": "main", "image": "example.org/main:1"}]},
    }
