"""A key management service for tests: gRPC on a Unix socket, as in plugins of kube-apiserver."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from kubetwist.schema.protobuf.fields import (
    Fields,
    octets,
    pairs,
)


class KMSPlugin:
    """
    A service that encrypts by reversing bytes, with a configurable key id.

    @ivar key_id: The id of the key for encryption.
    @ivar lost: The ids of keys that are not available.
    @ivar calls: The names of the called methods, and the requested key ids.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.key_id = "key-1"
        self.healthz = "ok"
        self.lost: set[str] = set()
        self.calls: list[str] = []
        self._server: Any = None

    @property
    def endpoint(self) -> str:
        """Return the endpoint for a configuration."""
        return f"unix://{self.path}"

    def start(self) -> None:
        """Start listening."""
        methods = {
            name: grpc.unary_unary_rpc_method_handler(getattr(self, f"_{name.lower()}"))
            for name in ("Status", "Encrypt", "Decrypt")
        }
        self._server = grpc.server(ThreadPoolExecutor(4))
        handler = grpc.method_handlers_generic_handler("v2.KeyManagementService", methods)
        self._server.add_generic_rpc_handlers((handler,))
        self._server.add_insecure_port(f"unix:{self.path}")
        self._server.start()

    def stop(self) -> None:
        """Stop listening, and remove the socket."""
        if self._server is not None:
            self._server.stop(0).wait()
            self._server = None
            self.path.unlink(missing_ok=True)

    def _status(self, request: bytes, context: Any) -> bytes:
        self.calls.append("status")
        return octets(1, b"v2") + octets(2, self.healthz.encode()) + octets(3, self.key_id.encode())

    def _encrypt(self, request: bytes, context: Any) -> bytes:
        self.calls.append(f"encrypt {self.key_id}")
        message = Fields(request)
        assert len(message.octets(1)) == 32 and len(message.text(2)) == 36
        note = (("note.example.com", self.key_id.encode()),)
        return octets(1, message.octets(1)[::-1]) + octets(2, self.key_id.encode()) + pairs(3, note)

    def _decrypt(self, request: bytes, context: Any) -> bytes:
        message = Fields(request)
        key_id = message.text(3)
        self.calls.append(f"decrypt {key_id}")
        if key_id in self.lost:
            context.abort(grpc.StatusCode.NOT_FOUND, f"{key_id} is lost")
        assert message.annotations(4) == (("note.example.com", key_id.encode()),)
        return octets(1, message.octets(1)[::-1])
