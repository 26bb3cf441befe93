"""The handler for subresources that lead to another process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .endpoint import Endpoint
from .reads import check_name

if TYPE_CHECKING:
    from ..server.site import KubeRequest


class Connects:
    """Answers every method of one such subresource."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def connect(self, request: KubeRequest, name: str, namespace: str = "", path: str = "") -> None:
        """Hand the request on."""
        check_name(name)
        endpoint = self._endpoint
        await endpoint.storage.connect(endpoint.scope(request, namespace), name, path, request)
