"""Handles subresources that connect to another server; the registry resolves their targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...api.errors import APIStatusError
from ...api.go.url import URL
from ...api.targets import Target
from ...client.errors import AddressNotAllowed, InvalidRESTConfig, NoSuchHost
from ...http.negotiation import negotiator_with
from ...http.request import KubeRequest
from ...http.requestinfo import RequestInfo
from ...registry.core.node.kubelets import address_not_allowed
from ..capabilities import produced_responses
from ..endpoint import Endpoint
from ..views import negotiate_output
from .read import check_name

if TYPE_CHECKING:
    from ...client.streaming import StreamingClient
    from ...streams.handlers import StreamHandlers
    from ..proxy.reverseproxy import ProxyError
    from ..proxy.upstreamclients import UpstreamClientPool

#: Number of path segments before the forwarded part: resource, name, subresource.
_BEFORE: Final = 3
_PROXIED: Final = frozenset(("pods", "services", "nodes"))


class ConnectHandler:
    """Answers every method of one connecting subresource."""

    def __init__(self, endpoint: Endpoint, clients: UpstreamClientPool | None) -> None:
        self._endpoint = endpoint
        self._clients = clients

    async def connect(self, request: KubeRequest, name: str, namespace: str = "", path: str = "") -> None:
        """
        Forward a request to the target of a subresource.

        @param request: The request.
        @param name: The name of the object.
        @param namespace: Its namespace; C{""} for cluster-scoped objects.
        @param path: The path below the subresource.
        @raise APIStatusError: The target is unknown, unreachable or not allowed.
        """
        check_name(name)
        endpoint = self._endpoint
        scope = endpoint.scope(request, namespace)
        target = await endpoint.storage.connect(scope, name, subpath(request.info), request.query)
        if target is None:
            request.respond(204, b"", b"")
            return
        clients = _available(self._clients)
        client = await _client(clients, target)
        if endpoint.subresource == "proxy":
            await _proxy(request, client, target)
        else:
            await _stream(request, client, target, endpoint.subresource, clients.streams)


class GetWithOptionsHandler:
    """Answers the GETs of an endpoint whose storage provides L{kubetwist.interfaces.IGetterWithOptions}."""

    def __init__(self, endpoint: Endpoint, clients: UpstreamClientPool | None) -> None:
        self._endpoint = endpoint
        self._clients = clients
        produced = produced_responses(endpoint.storage, ("get",)).get("get")
        self._negotiate = None if produced is None else negotiator_with(produced.media_types)

    async def get_with_options(self, request: KubeRequest, name: str, namespace: str = "") -> None:
        """
        Send an object, or the text that another server returns, such as a log.

        @param request: The request.
        @param name: The name of the object.
        @param namespace: Its namespace; C{""} for cluster-scoped objects.
        @raise APIStatusError: The object does not exist, the options are invalid, or the other server cannot answer.
        """
        check_name(name)
        endpoint = self._endpoint
        output = None
        if self._negotiate is None:
            output = negotiate_output(endpoint, request, collection=False)
        else:
            self._negotiate(request.header(b"accept"))
        storage, scope = endpoint.storage, endpoint.scope(request, namespace)
        result = await storage.get_with_options(scope, name, storage.decode_options(request.query))
        if result is None:
            request.respond(204, b"", b"")
        elif isinstance(result, Target):
            from ..proxy.podlogs import send_log

            clients = _available(self._clients)
            client = await _client(clients, result)
            metrics = clients.streams.metrics
            metrics.log_requested(result.insecure)
            await send_log(request, client, target_bytes(result), name, metrics)
        else:
            output = output or negotiate_output(endpoint, request, collection=False)
            request.respond(200, await output.encode_async(result, scope), output.content_type)


def _available(clients: UpstreamClientPool | None) -> UpstreamClientPool:
    if clients is None:
        raise APIStatusError.service_unavailable("this server has no clients for other servers")
    return clients


async def _client(clients: UpstreamClientPool, target: Target) -> StreamingClient:
    try:
        return await clients.client(target)
    except NoSuchHost as error:
        raise no_such_host(error) from error
    except InvalidRESTConfig as error:
        # The addresses in nodes and pods may be invalid.
        raise APIStatusError.bad_request(str(error)) from error


def subpath(info: RequestInfo) -> str:
    """Return the path behind the subresource: C{""}, or with a leading slash; a trailing slash stays."""
    path = "/".join(info.parts[_BEFORE:])
    if path:
        path = f"/{path}"
    return f"{path}/" if info.path.endswith("/") and not path.endswith("/") else path


def target_bytes(target: Target, query: bytes = b"") -> bytes:
    """
    Return the target as bytes of a request.

    @param query: The query of the client's request, used if the target has none.
    """
    path = URL(path=target.path.encode()).escaped_path.encode() or b"/"
    if target.query is not None:
        query = target.query.encode()
    return path + b"?" + query if query else path


def is_proxy_stream(request: KubeRequest) -> bool:
    """Return whether the body of a request, of which only the head has arrived, is streamed to a proxied backend."""
    if b"/proxy" not in request.path:
        return False
    from ...http.requestinfo import UnknownRequest, request_info_of

    try:
        info = request_info_of(request.method, request.uri)
    except UnknownRequest:
        return False
    return info.subresource == "proxy" and info.resource in _PROXIED and not info.group and info.is_resource_request


async def _proxy(request: KubeRequest, client: StreamingClient, target: Target) -> None:
    """Handle C{proxy}: forward the request to the target as a reverse proxy."""
    from ..proxy.reverseproxy import is_upgrade, proxy_request, redirect_to_slash

    if not target.path and request.method in (b"GET", b"HEAD") and not is_upgrade(request):
        redirect_to_slash(request)
        return
    await proxy_request(
        request,
        client,
        target_bytes(target, request.uri.partition(b"?")[2]),
        host=request.header(b"host") or b"",
        prefix=proxy_prefix(request.info),
        redirects=not target.kubelet,
        fail=_fail,
    )


def proxy_prefix(info: RequestInfo) -> bytes:
    """Return the path that maps to the root of the proxied backend."""
    inside = ("namespaces", info.namespace) if info.namespace else ()
    path = "/".join(("", info.api_prefix, info.version, *inside, *info.parts[:_BEFORE]))
    return URL(path=path.encode()).escaped_path.encode()


def _fail(request: KubeRequest, error: ProxyError) -> None:
    """Answer with a client error if the client has named a target that is not allowed or does not exist."""
    cause = error.__cause__
    if isinstance(cause, AddressNotAllowed):
        request.fail(address_not_allowed())
    elif isinstance(cause, NoSuchHost):
        request.fail(no_such_host(cause))
    else:
        request.fail(error.as_status())


def no_such_host(error: NoSuchHost) -> APIStatusError:
    """Return the error for a host name without addresses."""
    return APIStatusError.bad_request(str(error).removeprefix("dial tcp: "))


async def _stream(
    request: KubeRequest, client: StreamingClient, target: Target, subresource: str, streams: StreamHandlers
) -> None:
    """Handle C{exec}, C{attach}, C{portforward}: upgrade both connections to a streaming protocol."""
    from ...streams.handlers import StreamMode
    from ..proxy.reverseproxy import proxy_request

    mode = streams.select_mode(request, subresource, target.features)
    uri = target_bytes(target)
    if mode is StreamMode.TRANSLATE:
        from ...streams.commands import Command

        options = target.options
        command = Command(*(bool(options.get(name)) for name in ("stdin", "stdout", "stderr", "tty")))
        await streams.translate(request, client, uri, command)
        return
    tunnel = None
    if mode is StreamMode.TUNNEL:
        tunnel = streams.tunnel(request)
        if tunnel is None:
            return
    host = request.header(b"host") or b""
    await proxy_request(request, client, uri, host=host, upgrade_required=True, tunnel=tunnel, fail=_fail)
    if tunnel is not None:
        tunnel.answered()
