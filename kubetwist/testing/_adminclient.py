"""A blocking HTTP client of a server's administrator, which keeps its connection."""

from __future__ import annotations

import http.client
import json
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from ..api.jsontypes import JSONValue
from ._connection import Connection


class AdminClient:
    """
    A client for many requests in a row; a context manager, at whose end the connection is closed.

    L{Connection.request} makes a connection for each request.
    """

    def __init__(self, connection: Connection) -> None:
        """
        @param connection: The server.
        """
        self._headers = {"Content-Type": "application/json"}
        if connection.token:
            self._headers["Authorization"] = f"Bearer {connection.token}"
        self._http = http.client.HTTPSConnection(
            urlsplit(connection.url).hostname or "",
            connection.port,
            context=connection.credentials_context(),
            timeout=60,
        )

    def request(self, method: str, path: str, body: JSONValue = None) -> tuple[int, Any]:
        """
        Send a request.

        @param body: Sent as JSON; L{None} for no body.
        @return: The HTTP status, and the decoded body; if it is not JSON, a dictionary with the text as C{message}.
        """
        self._http.request(method, path, None if body is None else json.dumps(body), self._headers)
        response = self._http.getresponse()
        content = response.read()
        try:
            return response.status, json.loads(content)
        except ValueError:
            return response.status, {"message": content.decode("utf-8", "replace")}

    def __enter__(self) -> AdminClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.close()
