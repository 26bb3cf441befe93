"""
A server that forwards all requests to a cluster, and records the objects in the responses.

The observed responses are decoded in a thread, in the order of their arrival.
"""

from __future__ import annotations

import hmac
import json
import queue
import secrets
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from ...api.errors import APIStatusError
from ...api.jsontypes import JSONObject, JSONValue
from ...client.errors import InvalidRESTConfig, Unreachable
from ...client.factory import ClientFactory
from ...client.streaming import StreamingClient
from ...filters.requestinfo import with_request_info
from ...http.connection.coalescingtls import CoalescingTLSFactory
from ...http.request import KubeRequest
from ...http.requestinfo import RequestInfo
from ...http.site import KubeSite
from ...interfaces import IServerReactor
from ...registry.kindtable import GROUP_PRIORITIES
from ...resources.proxy.reverseproxy import is_upgrade, proxy_request, run_proxy
from ...server.credentials.certificates import CertConfig, CertificateAuthority, CertKeyPair
from ...server.credentials.kubeconfig import kubeconfig
from ...server.credentials.tlscontext import ServingContextFactory
from ._recorder import ObjectKey, Recorder, collection_path
from .cassette import Cassette, ordered_objects
from .upstream import ExecCredential, Upstream, run_exec_command

#: Maximum size of a response, and of an event of a watch, that is recorded.
MAX_RESPONSE: Final = 64 * 1024 * 1024
#: Verbs that change objects.
_WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
#: Groups whose objects are only requests: nothing is stored.
_VIRTUAL_GROUPS: Final = ("authentication.k8s.io", "authorization.k8s.io")
#: Parameters that are part of a write in a cassette; commands of exec, for example, are not.
_SHOWN_PARAMETERS: Final = ("dryRun", "fieldManager", "force", "labelSelector", "fieldSelector", "propagationPolicy")
_JSON: Final = b"application/json"


class RecordingProxy:
    """
    The server. Its clients authenticate with its token or its client certificate, and act as the user of the cluster.

    @ivar token: The bearer token of its clients.
    @ivar authority: The authority of its certificate, PEM.
    @ivar client: The certificate of its clients.
    """

    _log = Logger()

    def __init__(self, upstream: Upstream, reactor: IServerReactor, limit: int) -> None:
        """
        @param limit: Maximum size of all recorded objects as JSON, in bytes.
        """
        self.token = secrets.token_hex(16)
        authority = CertificateAuthority.make("kubetwist-recording-ca")
        self.authority = authority.pair.certificate
        self.client: CertKeyPair = authority.issue(CertConfig("kubetwist-recording", organization="system:masters"))
        self._client_certificate = x509.load_pem_x509_certificate(self.client.certificate).public_bytes(Encoding.DER)
        self._serving = authority.issue(CertConfig("kubetwist-recording", names=("127.0.0.1",), server=True))
        self._upstream = upstream
        self._path = urlsplit(upstream.config.url).path.rstrip("/").encode()
        self._reactor = reactor
        self._clients = ClientFactory(reactor, lambda namespace, name: None)
        self._client: StreamingClient | None = None
        self._credential: ExecCredential | None = None
        self._lock = DeferredLock()
        self._port: Any = None
        self._site = KubeSite(with_request_info(self._handle), reactor)
        self._recorder = Recorder(limit)
        self._observer = _Observer(self._recorder)
        self._touched_namespaces: set[str] = set()
        self._touched_objects: set[ObjectKey] = set()
        #: The newest time of the cluster.
        self._now = ""

    @property
    def url(self) -> str:
        """Return the URL."""
        return f"https://127.0.0.1:{self._port.getHost().port}"

    async def start(self) -> None:
        """
        Start to listen, after the cluster has answered.

        @raise InvalidRESTConfig: The settings or the credentials are invalid.
        @raise Unreachable: The cluster does not answer, or refuses the credentials.
        """
        code, version = await self._get("/version")
        if code != 200:
            raise Unreachable(f"{self._upstream.config.url}/version: {code}: {_message(version)}")
        self._version = str(version.get("gitVersion", "")) if isinstance(version, dict) else ""
        self._observer.start()
        context = ServingContextFactory(self._serving, "VersionTLS12", protocols=self._site.acceptableProtocols())
        factory: Any = CoalescingTLSFactory(context, self._site, self._reactor, self._site.write_events)
        self._port = self._reactor.listenTCP(0, factory, interface="127.0.0.1")

    def write_kubeconfig(self, path: Path) -> None:
        """Write a kubeconfig of this server. Blocks."""
        path.touch(mode=0o600)
        path.write_bytes(kubeconfig(self.url, self.authority, self.client))

    async def finish(self) -> Cassette:
        """
        Fetch what a server needs to load the recorded objects, and return the recording, with its secrets.

        @raise RecordingTooLarge: The limit was exceeded.
        """
        await self._settled()
        recorder = self._recorder
        for path in sorted(set(recorder.missing_dependencies())):
            await self._observe_path(path)
        known = {"", *GROUP_PRIORITIES}
        for group, resource in sorted(recorder.resources):
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{resource}.{group}"
            if "." in group and await self._observe_path(path):
                known.add(group)
        await self._settled()
        if self._observer.error is not None:
            raise self._observer.error
        objects, omitted = recorder.replayable(known)
        return Cassette(
            version=self._version,
            objects=ordered_objects(objects),
            writes=tuple(recorder.writes),
            later=tuple(sorted(recorder.later.values())),
            omitted=omitted,
        )

    async def stop(self) -> None:
        """Stop. Idempotent."""
        port, self._port = self._port, None
        if port is not None:
            await port.stopListening()
            for end in list(self._site.long_running_requests.values()):
                end()
            self._site.connections.abort_all()
        await self._clients.close()
        self._observer.stop()

    def _settled(self) -> Deferred[None]:
        """Return a Deferred that fires when all that was observed so far is recorded."""
        done: Deferred[None] = Deferred()
        self._observer.call(lambda: self._reactor.callFromThread(done.callback, None))
        return done

    # The cluster.

    async def _connected(self) -> StreamingClient:
        """Return the client of the cluster, with current credentials."""
        await self._lock.acquire()
        try:
            return await self._current_client()
        finally:
            self._lock.release()

    async def _current_client(self) -> StreamingClient:
        command, config = self._upstream.command, self._upstream.config
        if command is not None:
            credential = self._credential
            if credential is None or not credential.is_current(datetime.now(UTC)):
                pool = self._reactor.getThreadPool()
                credential = await deferToThreadPool(self._reactor, pool, run_exec_command, command)
                self._credential = credential
                if self._client is not None:
                    self._client.retire()
                    self._client = None
            config = credential.applied(config)
        if self._client is None:
            self._client = self._clients.stream_client(config)
        return self._client

    async def _get(self, path: str, accept: bytes = _JSON) -> tuple[int, JSONValue]:
        """
        Send a request of the proxy itself.

        @return: The status, and the decoded body.
        """
        client = await self._connected()
        fields = [(b"accept", accept), (b"user-agent", b"kubetwist-recording"), *self._upstream.impersonation]
        response = await client.request(b"GET", self._path + path.encode(), fields)
        date = response.field(b"date")
        if date is not None:
            self._now = _timestamp(date) or self._now
        body = await response.collect(MAX_RESPONSE)
        if len(body) > 65536:
            pool = self._reactor.getThreadPool()
            return response.code, await deferToThreadPool(self._reactor, pool, _decoded, body)
        return response.code, _decoded(body)

    async def _observe_path(self, path: str) -> bool:
        """Read and record an object or a list; return whether there is one."""
        from ...http.requestinfo import request_info_of

        info = request_info_of(b"GET", path.encode())
        try:
            code, response = await self._get(path)
        except Unreachable as error:
            self._observer.fail(f"GET {path}: {error}")
            return False
        if code != 200:
            return False
        self._observer.call(lambda: self._recorder.observe(info.group, info.resource, response))
        return True

    # Requests.

    def _handle(self, request: KubeRequest) -> None:
        request.collect_body(self._authenticated)

    def _authenticated(self, request: KubeRequest) -> None:
        if not self._is_client(request):
            request.fail(APIStatusError.unauthorized())
            return
        run_proxy(self._forward(request), request)

    def _is_client(self, request: KubeRequest) -> bool:
        kind, _, token = (request.header(b"authorization") or b"").partition(b" ")
        if kind.lower() == b"bearer" and hmac.compare_digest(token.strip(), self.token.encode()):
            return True
        certificates = request.connection.peer_certificates()
        return bool(certificates) and (
            certificates[0].to_cryptography().public_bytes(Encoding.DER) == self._client_certificate
        )

    async def _forward(self, request: KubeRequest) -> None:
        info = request.info
        identity = [(b"accept-encoding", b"identity"), *self._identity(request)]
        accept = _accepted(request)
        if accept is not None:
            identity.append((b"accept", accept))
        try:
            await self._before(request, info)
            client = await self._connected()
        except (Unreachable, InvalidRESTConfig) as error:
            request.fail(APIStatusError.service_unavailable(f"the recorded cluster: {error}"))
            return
        if info.is_resource_request and not is_upgrade(request):
            self._tap(request, info)
        await proxy_request(request, client, self._path + request.uri, identity=identity)

    def _identity(self, request: KubeRequest) -> Sequence[tuple[bytes, bytes]]:
        """Return the fields of the impersonated user: the one of the client, or else of the kubeconfig."""
        own = [
            (name, value)
            for name, values in request.fields.items()
            if name.startswith(b"impersonate-")
            for value in values
        ]
        return own or self._upstream.impersonation

    async def _before(self, request: KubeRequest, info: RequestInfo) -> None:
        """Read what the request refers to, before it can change that."""
        if not info.is_resource_request:
            return
        if info.namespace and info.namespace not in self._touched_namespaces:
            self._touched_namespaces.add(info.namespace)
            await self._observe_path(f"/api/v1/namespaces/{quote(info.namespace)}")
        write = _is_write(request, info)
        if write or info.subresource:
            await self._before_write(request, info)
        elif info.verb in ("get", "list") and _wants_parts(request):
            # A table has only parts of the objects.
            await self._observe_path(request.uri.decode("latin-1"))
        if write:
            key = _key(info, info.name or _name_in(request.read_body())) if info.verb != "deletecollection" else None
            now = self._now or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            self._observer.call(lambda: self._recorder.begin_write(key, now))

    async def _before_write(self, request: KubeRequest, info: RequestInfo) -> None:
        folder = _collection(info)
        if info.verb == "deletecollection":
            query = urlencode(
                [pair for pair in parse_qsl(request.uri.partition(b"?")[2].decode("latin-1")) if "Selector" in pair[0]]
            )
            await self._observe_path(f"{folder}?{query}" if query else folder)
            return
        name = info.name or _name_in(request.read_body())
        key = _key(info, name)
        if name and key not in self._touched_objects:
            self._touched_objects.add(key)
            await self._observe_path(f"{folder}/{quote(name)}")

    # Responses.

    def _tap(self, request: KubeRequest, info: RequestInfo) -> None:
        """Pass the response on to the recorder as well."""
        recorder, group, resource = self._recorder, info.group, info.resource
        if info.verb == "watch":
            if not _wants_parts(request):
                lines = _Lines(
                    lambda line: self._observer.call(
                        lambda: recorder.observe_event(group, resource, _decoded(line)), len(line)
                    )
                )
                _Tap(request, lines.feed, None)
            return
        write = _is_write(request, info)
        if not write and (info.verb not in ("get", "list") or info.subresource):
            return
        pieces = _Pieces()

        def finished() -> None:
            body, code = pieces.content(), int(request.code)
            if body is None:
                self._observer.fail(f"GET {info.path}: the response is larger than {MAX_RESPONSE >> 20} MiB")
                return
            if write:
                text = f"{_shown(request)}: {code}"
                new = info.verb == "create" and not info.subresource and code in (200, 201, 202)
                self._observer.call(
                    lambda: recorder.end_write(group, resource, text, _decoded(body) if new else None), len(body)
                )
            elif code == 200:
                self._observer.call(lambda: recorder.observe(group, resource, _decoded(body)), len(body))

        _Tap(request, pieces.feed, finished)


class _Observer:
    """
    A thread that runs calls one after another.

    @ivar error: The first failure, after which nothing is recorded any more.
    """

    #: Maximum size of the responses that wait.
    _MAX_WAITING: Final = 512 * 1024 * 1024

    def __init__(self, recorder: Recorder) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], object] | None, int]] = queue.SimpleQueue()
        self._recorder = recorder
        self._thread: threading.Thread | None = None
        self._waiting = 0
        self.error: Exception | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="kubetwist recorder", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the calls so far."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._calls.put((None, 0))
            thread.join()

    def call(self, function: Callable[[], object], size: int = 0) -> None:
        """
        Run a function later.

        @param size: The size of the data that it keeps in memory.
        """
        self._waiting += size
        if self._waiting > self._MAX_WAITING:
            self.fail("the responses arrive faster than they can be recorded")
            self._waiting -= size
            return
        self._calls.put((function, size))

    def fail(self, text: str) -> None:
        """Keep an error for the end of the recording."""
        if self.error is None:
            self.error = RecordingFailed(text)

    def _run(self) -> None:
        while True:
            function, size = self._calls.get()
            if function is None:
                return
            try:
                function()
            except Exception as error:
                if self.error is None:
                    self.error = error
            self._waiting -= size


class RecordingFailed(Exception):
    """Something was not recorded."""


class _Tap:
    """Passes what is written to a request on to a function as well."""

    def __init__(
        self, request: KubeRequest, written: Callable[[bytes], object], finished: Callable[[], object] | None
    ) -> None:
        """
        @param finished: Called when the whole response was written.
        """
        self._write, self._finish = request.write, request.finish
        self._written, self._finished = written, finished
        setattr(request, "write", self.write)  # noqa: B010 - mypy refuses assignments to methods
        setattr(request, "finish", self.finish)  # noqa: B010 - likewise

    def write(self, data: bytes) -> None:
        """Write to both; the recorder comes first, as the client may react at once."""
        self._written(data)
        self._write(data)

    def finish(self) -> None:
        """Record the response before the client has all of it."""
        if self._finished is not None:
            self._finished()
        self._finish()


class _Pieces:
    """The body of a response, up to the limit."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Add data."""
        self._size += len(data)
        if self._size <= MAX_RESPONSE:
            self._pieces.append(data)
        else:
            self._pieces.clear()

    def content(self) -> bytes | None:
        """Return the body; L{None} if it exceeds the limit."""
        return b"".join(self._pieces) if self._size <= MAX_RESPONSE else None


class _Lines:
    """Splits a watch into its events."""

    def __init__(self, line_received: Callable[[bytes], object]) -> None:
        self._received = line_received
        self._rest: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Pass complete lines on; longer ones than the limit are dropped."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            if self._size <= MAX_RESPONSE:
                line = b"".join((*self._rest, line))
                if line.strip():
                    self._received(line)
            self._rest, self._size = [], 0
        self._size += len(rest)
        if self._size <= MAX_RESPONSE:
            self._rest.append(rest)
        else:
            self._rest = []


def _decoded(body: bytes) -> JSONValue:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _message(response: JSONValue) -> str:
    return str(response.get("message", "")) if isinstance(response, dict) else ""


def _timestamp(date: bytes) -> str:
    try:
        return parsedate_to_datetime(date.decode("latin-1")).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return ""


def _accepted(request: KubeRequest) -> bytes | None:
    """Return the media types of the client without binary ones, which are not recorded; L{None} for no change."""
    header = b",".join(request.fields.get(b"accept", ()))
    types = [one.strip() for one in header.split(b",") if one.strip()]
    kept = [one for one in types if b"protobuf" not in one and b"cbor" not in one and b"yaml" not in one]
    if kept == types:
        return None
    return b",".join(kept) or _JSON


def _wants_parts(request: KubeRequest) -> bool:
    """Return whether the client accepts tables or metadata, instead of objects."""
    header = b",".join(request.fields.get(b"accept", ()))
    return b"as=Table" in header or b"as=PartialObjectMetadata" in header


def _is_write(request: KubeRequest, info: RequestInfo) -> bool:
    return (
        info.is_resource_request
        and info.verb in _WRITES
        and info.group not in _VIRTUAL_GROUPS
        and "dryRun" not in request.query
        and not is_upgrade(request)
        and info.subresource not in ("exec", "attach", "portforward", "proxy", "token")
    )


def _key(info: RequestInfo, name: str) -> ObjectKey:
    # A namespace is not in itself.
    namespace = "" if info.resource == "namespaces" else info.namespace
    return ObjectKey(collection_path(info.group, namespace, info.resource), name)


def _collection(info: RequestInfo) -> str:
    root = f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
    if info.namespace and info.resource != "namespaces":
        root += f"/namespaces/{quote(info.namespace)}"
    return f"{root}/{info.resource}"


def _name_in(body: bytes) -> str:
    """Return the name of the object in the body of a POST; C{""} if the server chooses it."""
    try:
        obj: JSONObject = json.loads(body)
        name = obj["metadata"]["name"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return name if isinstance(name, str) else ""


def _shown(request: KubeRequest) -> str:
    """Return a write as in a cassette."""
    path, _, query = request.uri.decode("latin-1").partition("?")
    shown = urlencode([(name, value) for name, value in parse_qsl(query, True) if name in _SHOWN_PARAMETERS])
    return f"{request.method.decode()} {path}{'?' if shown else ''}{shown}"
