"""
A blocking client that follows the objects of one resource: LIST, then WATCH from its resource version.

Its requests have the user agent L{USER_AGENT}: faults and logs of tests do not affect them.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import urlencode, urlsplit

from ..api.jsontypes import JSONObject, JSONValue
from ._connection import Connection
from ._references import ACCEPT_DISCOVERY, Resource

#: The user agent of requests that tests do not count as requests of their code.
USER_AGENT: Final = "kubetwist-testing"
#: Seconds between attempts to reach a server that does not answer, or answers with an error that may pass.
RETRY_DELAY: Final = 0.05
#: Seconds for one response that is not a watch.
_TIMEOUT: Final = 30.0
_MAX_LINE: Final = 64 * 1024 * 1024

#: Statuses of requests that may succeed later.
_TEMPORARY: Final = frozenset({429, 500, 502, 503, 504})


class RequestRefusedError(Exception):
    """The server refused a request of the client; the text has its message."""

    def __init__(self, path: str, code: int, answer: JSONValue) -> None:
        message = answer.get("message", "") if isinstance(answer, Mapping) else str(answer)[:200]
        super().__init__(f"GET {path}: {code} {message}")
        self.code = code


class DeadlineError(Exception):
    """The deadline passed before an answer."""


class ObjectClient:
    """
    One connection to a server, which is made again when it breaks.

    @ivar deadline: When all requests end, by L{time.monotonic}.
    """

    def __init__(self, connection: Connection, deadline: float) -> None:
        self.deadline = deadline
        self._connection = connection
        self._context = connection.credentials_context()
        self._http: http.client.HTTPSConnection | None = None
        self._closed = False

    def get(self, path: str, accept: str = "application/json") -> JSONValue:
        """
        Return the decoded document at a path; errors that may pass are tried again.

        @raise RequestRefusedError: The server refused it.
        @raise DeadlineError: There was no answer before the deadline.
        """
        while True:
            try:
                response = self._send(path, accept)
                content = response.read()
            except (OSError, http.client.HTTPException):
                self.retry()
                continue
            try:
                document = json.loads(content)
            except ValueError:
                document = content.decode("utf-8", "replace")
            if response.status == 200:
                return document
            if response.status not in _TEMPORARY:
                raise RequestRefusedError(path, response.status, document)
            self.retry()

    def discover(self, path: str) -> JSONValue:
        """Return a discovery document."""
        return self.get(path, ACCEPT_DISCOVERY)

    def watch(self, path: str) -> Iterator[JSONObject]:
        """
        Yield the events of a watch until it ends.

        @raise RequestRefusedError: The server refused it.
        @raise DeadlineError: The deadline passed.
        @raise OSError: The connection broke.
        @raise http.client.HTTPException: Likewise.
        """
        response = self._send(path, "application/json")
        if response.status != 200:
            content = response.read()
            try:
                raise RequestRefusedError(path, response.status, json.loads(content))
            except ValueError:
                raise RequestRefusedError(path, response.status, content.decode("utf-8", "replace")) from None
        while True:
            self._set_timeout(None)
            try:
                line = response.readline(_MAX_LINE)
            except TimeoutError:
                raise DeadlineError from None
            if not line:
                self.disconnect()
                return
            yield json.loads(line)

    def _send(self, path: str, accept: str) -> http.client.HTTPResponse:
        if self._http is None:
            parts = urlsplit(self._connection.url)
            self._http = http.client.HTTPSConnection(
                parts.hostname or "", parts.port, context=self._context, timeout=self._remaining(_TIMEOUT)
            )
        headers = {"Accept": accept, "User-Agent": USER_AGENT}
        if self._connection.token:
            headers["Authorization"] = f"Bearer {self._connection.token}"
        try:
            self._set_timeout(_TIMEOUT)
            self._http.request("GET", path, headers=headers)
            self._set_timeout(_TIMEOUT)
            return self._http.getresponse()
        except TimeoutError:
            self._remaining(_TIMEOUT)
            raise
        except http.client.RemoteDisconnected:
            # The server closed an idle connection.
            self.disconnect()
            raise

    def _set_timeout(self, longest: float | None) -> None:
        remaining = self._remaining(longest)
        if self._http is not None and self._http.sock is not None:
            self._http.sock.settimeout(remaining)

    def _remaining(self, longest: float | None) -> float:
        """
        Return the seconds until the deadline, at most C{longest}.

        @raise DeadlineError: The deadline passed.
        """
        remaining = self.deadline - time.monotonic()
        if remaining <= 0 or self._closed:
            raise DeadlineError
        return remaining if longest is None else min(longest, remaining)

    def retry(self) -> None:
        """
        Disconnect, and wait before the next attempt.

        @raise DeadlineError: The deadline passed.
        """
        self.disconnect()
        time.sleep(self._remaining(RETRY_DELAY))

    def disconnect(self) -> None:
        """Close the connection; the next request makes another one."""
        connection, self._http = self._http, None
        if connection is not None:
            connection.close()

    def cancel(self) -> None:
        """End the requests, from any thread."""
        self._closed = True
        connection = self._http
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(2)


class ObjectWatch:
    """
    Follows the objects of one resource.

    @ivar objects: The objects that exist, by namespace and name.
    @ivar last: The object of the newest event, also after its deletion; L{None} before the first.
    @ivar synced: Whether the objects were listed.
    """

    def __init__(self, client: ObjectClient, resource: Resource, path: str, selection: Mapping[str, str]) -> None:
        """
        @param client: Used by this watch only.
        @param resource: The resource, whose kind is entered into the items of lists.
        @param path: The path of the objects.
        @param selection: Selectors as query parameters.
        """
        self.objects: dict[tuple[str, str], JSONObject] = {}
        self.last: JSONObject | None = None
        self.synced = False
        self._client = client
        self._resource = resource
        self._path = path
        self._selection = dict(selection)

    def changes(self) -> Iterator[None]:
        """
        List the objects and yield, then yield after each change; end never.

        Watches that end or break are continued. After 410, and after a server did not answer, objects are listed again.

        @raise RequestRefusedError: The server refused the list.
        @raise DeadlineError: The deadline of the client passed.
        """
        while True:
            revision = self._list()
            yield
            while revision:
                try:
                    for event in self._client.watch(self._url(revision)):
                        revision = self._apply(event)
                        if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                            yield
                        elif not revision:
                            break
                except ConnectionRefusedError:
                    # The server may come back with another store.
                    self._client.retry()
                    break
                except (OSError, http.client.HTTPException):
                    self._client.retry()
                except RequestRefusedError:
                    self._client.retry()
                    break
            self._client.disconnect()

    def _url(self, revision: str) -> str:
        query = {**self._selection, "watch": "1", "allowWatchBookmarks": "true", "resourceVersion": revision}
        return f"{self._path}?{urlencode(query)}"

    def _list(self) -> str:
        query = f"?{urlencode(self._selection)}" if self._selection else ""
        listed = self._client.get(f"{self._path}{query}")
        objects = {}
        for item in listed.get("items") or ():
            obj = {"apiVersion": self._resource.api_version, "kind": self._resource.kind, **item}
            objects[_key(obj)] = obj
        self.objects = objects
        self.synced = True
        for obj in objects.values():
            self.last = obj
        return str(listed["metadata"]["resourceVersion"])

    def _apply(self, event: JSONObject) -> str:
        """Apply an event; return the revision to continue at, C{""} after an error."""
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            return ""
        if kind == "DELETED":
            self.objects.pop(_key(obj), None)
            self.last = obj
        elif kind != "BOOKMARK":
            self.objects[_key(obj)] = self.last = obj
        return str(obj["metadata"]["resourceVersion"])


def _key(obj: JSONObject) -> tuple[str, str]:
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]
