"""Clients of the servers that proxies, logs and streams lead to; connections are kept for the next request."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from attrs import evolve, field, frozen

from ...client.errors import NoSuchHost
from ...client.restconfig import RESTConfig

if TYPE_CHECKING:
    from ...api.targets import Target
    from ...client.factory import ClientFactory
    from ...client.streaming import StreamingClient
    from ...streams.handlers import Streams

#: Clients that are kept; those that were not used the longest go first.
_KEPT: Final = 512
#: What may stand in a URL as a name or an address; nodes can say that they are called anything.
_host = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45}").fullmatch


#: Scheme, host and port of a target, whether its certificate is not verified, and whether it is a kubelet.
_Key = tuple[str, str, int, bool, bool]


@frozen
class KubeletTLS:
    """
    What kubelets are shown, and must show; PEM.

    @ivar certificate: C{b""} for none.
    @ivar ca: C{b""} when kubelets may show any certificate.
    """

    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    ca: bytes = b""

    def check(self) -> None:
        """
        Try them.

        @raise InvalidRESTConfig: They cannot be used.
        """
        from ...client.tls import ClientTLS

        settings = RESTConfig(
            url="https://kubelet/", certificate=self.certificate, key=self.key, ca=self.ca, insecure=not self.ca
        )
        ClientTLS(settings, "kubelet")


class UpstreamClientPool:
    """
    All clients of one server for what its objects lead to.

    @ivar streams: Handles requests for streams.
    """

    def __init__(
        self,
        outgoing: ClientFactory,
        kubelet_tls: Callable[[], Awaitable[KubeletTLS]],
        streams: Streams,
        *,
        loopback: bool = False,
        patience: float = 5.0,
    ) -> None:
        """
        @param outgoing: L{kubetwist.client.factory.ClientFactory}.
        @param kubelet_tls: Tells what kubelets are shown now.
        @param loopback: Whether addresses of this machine are called.
        @param patience: Seconds that a kubelet is given to take a connection; 0 for those that all are given.
        """
        self.streams = streams
        self._outgoing = outgoing
        self._kubelet_tls = kubelet_tls
        self._loopback = loopback
        self._patience = patience
        self._clients: OrderedDict[_Key, StreamingClient] = OrderedDict()
        self._shown = KubeletTLS()

    async def client(self, target: Target) -> StreamingClient:
        """
        The L{kubetwist.client.streaming.StreamingClient} of a target.

        @raise NoSuchHost: Nothing can be called as its host is.
        """
        if not _host(target.host):
            raise NoSuchHost(f"dial tcp: lookup {target.host}: no such host")
        tls = KubeletTLS()
        if target.kubelet:
            tls = await self._kubelet_tls()
            if tls != self._shown:
                self._shown = tls
                self._retire(lambda key: key[-1])
        key = target.scheme, target.host, target.port, target.insecure, target.kubelet
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = self._outgoing.stream_client(self._settings(target, tls))
            oldest = next(iter(self._clients)) if len(self._clients) > _KEPT else None
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
            guarded=True,
            loopback=self._loopback,
            interfaces=True,
        )
        return evolve(settings, patience=self._patience) if target.kubelet and self._patience else settings

    def _retire(self, which: Callable[[_Key], bool]) -> None:
        """Let go of some, once they have nothing more to do."""
        for key in [key for key in self._clients if which(key)]:
            self._clients.pop(key).retire()
