"""Clients of the servers behind proxies, logs and streams, with pooled connections."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from attrs import evolve, field, frozen

from ...client.errors import NoSuchHost
from ...client.restconfig import RESTConfig

if TYPE_CHECKING:
    from twisted.internet.interfaces import IStreamClientEndpoint

    from ...api.targets import Target
    from ...client.factory import ClientFactory
    from ...client.streaming import StreamingClient
    from ...streams.handlers import StreamHandlers


#: Maximum number of cached clients; the least recently used go first.
_MAX_CLIENTS: Final = 512
#: Matches a name or an address that is valid in a URL; nodes may report anything.
_host = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45}").fullmatch


#: Scheme, host and port of a target; whether its certificate is not verified, it is simulated, it is a kubelet.
_Key = tuple[str, str, int, bool, bool, bool]
#: Returns the endpoint of a simulated kubelet or pod, by host and port.
SimulatedEndpoints = Callable[[str, int], "IStreamClientEndpoint"]


@frozen
class KubeletTLS:
    """
    The TLS settings for kubelets, PEM.

    @ivar certificate: The client certificate; C{b""} for none.
    @ivar ca: The CA of kubelets; C{b""} accepts any certificate.
    """

    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    ca: bytes = b""

    def check(self) -> None:
        """
        Check the settings.

        @raise InvalidRESTConfig: They are not usable.
        """
        from ...client.tls import ClientTLS

        settings = RESTConfig(
            url="https://kubelet/", certificate=self.certificate, key=self.key, ca=self.ca, insecure=not self.ca
        )
        ClientTLS(settings, "kubelet")


class UpstreamClientPool:
    """
    All clients of one server for the targets of its objects.

    @ivar streams: Handles requests for streams.
    """

    def __init__(
        self,
        outgoing: ClientFactory,
        kubelet_tls: Callable[[], Awaitable[KubeletTLS]],
        streams: StreamHandlers,
        *,
        loopback: bool = False,
        patience: float = 5.0,
        simulated: SimulatedEndpoints | None = None,
    ) -> None:
        """
        @param outgoing: L{kubetwist.client.factory.ClientFactory}.
        @param kubelet_tls: Returns the current TLS settings for kubelets.
        @param loopback: Whether requests to addresses of this machine are allowed.
        @param patience: Timeout of connections to kubelets in seconds; 0 for the default.
        @param simulated: Connects to simulated kubelets and pods; L{None} if there are none.
        """
        self.streams = streams
        self._outgoing = outgoing
        self._kubelet_tls = kubelet_tls
        self._loopback = loopback
        self._patience = patience
        self._simulated = simulated
        self._clients: OrderedDict[_Key, StreamingClient] = OrderedDict()
        self._last_kubelet_tls = KubeletTLS()

    async def client(self, target: Target) -> StreamingClient:
        """
        Return the L{kubetwist.client.streaming.StreamingClient} of a target.

        @raise NoSuchHost: The host is neither a valid name nor an address.
        """
        if not _host(target.host):
            raise NoSuchHost(f"dial tcp: lookup {target.host}: no such host")
        tls = KubeletTLS()
        if target.simulated and self._simulated is None:
            raise NoSuchHost(f"dial tcp: lookup {target.host}: no such host")
        if target.kubelet and not target.simulated:
            tls = await self._kubelet_tls()
            if tls != self._last_kubelet_tls:
                self._last_kubelet_tls = tls
                self._retire(lambda key: key[-1])
        key = target.scheme, target.host, target.port, target.insecure, target.simulated, target.kubelet
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = self._outgoing.stream_client(
                self._settings(target, tls),
                self._simulated(target.host, target.port) if target.simulated and self._simulated else None,
            )
            oldest = next(iter(self._clients)) if len(self._clients) > _MAX_CLIENTS else None
            self._retire(lambda key: key == oldest)
        self._clients.move_to_end(key)
        return client

    def _settings(self, target: Target, tls: KubeletTLS) -> RESTConfig:
        host = f"[{target.host}]" if ":" in target.host else target.host
        insecure = target.insecure or not tls.ca
        settings = RESTConfig(
            url=f"{target.scheme}://{host}:{target.port}",
            certificate=tls.certificate,
            key=tls.key,
            ca=b"" if insecure else tls.ca,
            insecure=insecure,
            deny_internal=True,
            allow_loopback=self._loopback,
            interfaces_are_loopback=True,
        )
        return evolve(settings, dial_timeout=self._patience) if target.kubelet and self._patience else settings

    def _retire(self, matches: Callable[[_Key], bool]) -> None:
        """Remove the clients with matching keys; they close once they are idle."""
        for key in [key for key in self._clients if matches(key)]:
            self._clients.pop(key).retire()
