"""
Calls of a key management service over gRPC and a Unix socket.

The threads of gRPC deliver answers, which are passed to the reactor's thread. It is an optional dependency, C{kms},
and is imported when the first service is configured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from twisted.internet.defer import Deferred

from ...schema.protobuf.fields import (
    Fields,
    octets,
    pairs,
)
from ...schema.protobuf.wire import WireError
from ..worker import ThreadedReactor
from ._configuration import KeyService
from ._envelope import (
    SEED,
    DEKSource,
)
from ._kms import (
    ServiceError,
    ServiceStatus,
)

T = TypeVar("T")

_SERVICE: Final = "/v2.KeyManagementService/"
_OPTIONS: Final = (
    ("grpc.default_authority", "localhost"),
    ("grpc.enable_http_proxy", 0),
    # Servers of one process share no connections, and closing a channel closes its connection.
    ("grpc.use_local_subchannel_pool", 1),
    # A plugin that starts late is found soon.
    ("grpc.initial_reconnect_backoff_ms", 250),
    ("grpc.min_reconnect_backoff_ms", 250),
    ("grpc.max_reconnect_backoff_ms", 5000),
)
_UNAVAILABLE: Final = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED")


class GRPCKMSService:
    """L{kubetwist.storage.encryption._kms.KMSService} over gRPC."""

    def __init__(self, service: KeyService, reactor: ThreadedReactor) -> None:
        """
        @raise ValueError: gRPC is not installed.
        """
        try:
            import grpc
        except ImportError:
            raise ValueError(
                f"KMS provider {service.name} needs grpcio, which is not installed: pip install 'kubetwist[kms]'"
            ) from None
        path = service.path
        address = f"unix-abstract:{path[1:]}" if path.startswith("@") else f"unix:{path}"
        self._timeout = service.timeout
        self._reactor = reactor
        self._channel = grpc.insecure_channel(address, _OPTIONS)
        self._status = self._channel.unary_unary(f"{_SERVICE}Status")
        self._encrypt = self._channel.unary_unary(f"{_SERVICE}Encrypt")
        self._decrypt = self._channel.unary_unary(f"{_SERVICE}Decrypt")

    def status(self) -> Deferred[ServiceStatus]:
        """See L{kubetwist.storage.encryption._kms.KMSService.status}."""

        def read(response: Fields) -> ServiceStatus:
            return ServiceStatus(response.text(1), response.text(2), response.text(3))

        return self._call(self._status, b"", read)

    def encrypt(self, uid: str, plaintext: bytes) -> Deferred[DEKSource]:
        """See L{kubetwist.storage.encryption._kms.KMSService.encrypt}."""

        def read(response: Fields) -> DEKSource:
            return DEKSource(response.text(2), response.octets(1), response.annotations(3), SEED)

        return self._call(self._encrypt, octets(1, plaintext) + octets(2, uid.encode()), read)

    def decrypt(self, uid: str, source: DEKSource) -> Deferred[bytes]:
        """See L{kubetwist.storage.encryption._kms.KMSService.decrypt}."""
        request = (
            octets(1, source.encrypted)
            + octets(2, uid.encode())
            + octets(3, source.key_id.encode())
            + pairs(4, source.annotations)
        )
        return self._call(self._decrypt, request, lambda response: response.octets(1))

    def close(self) -> None:
        """See L{kubetwist.storage.encryption._kms.KMSService.close}."""
        self._channel.close()

    def _call(self, method: Any, request: bytes, read: Callable[[Fields], T]) -> Deferred[T]:
        response: Deferred[T] = Deferred()
        try:
            # A plugin that is not running may start before the timeout.
            call = method.future(request, timeout=self._timeout, wait_for_ready=True)
        except ValueError as error:
            response.errback(ServiceError(str(error), unavailable=True))
            return response
        call.add_done_callback(lambda call: self._reactor.callFromThread(_answered, response, call, read))
        return response


def _answered(response: Deferred[Any], call: Any, read: Callable[[Fields], Any]) -> None:
    code = "CANCELLED" if call.cancelled() else call.code().name
    if code == "OK":
        try:
            value = read(Fields(call.result()))
        except WireError as error:
            response.errback(ServiceError(f"rpc error: code = Internal desc = {error}", status="Internal"))
        else:
            response.callback(value)
        return
    camel = "".join(word.capitalize() for word in code.split("_"))
    camel = {"Cancelled": "Canceled"}.get(camel, camel)
    details = "context deadline exceeded" if code == "DEADLINE_EXCEEDED" else call.details()
    text = f"rpc error: code = {camel} desc = {details}"
    response.errback(ServiceError(text, unavailable=code in _UNAVAILABLE, status=camel))
