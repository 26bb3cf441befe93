"""Small blocking requests of checks, to members of etcd and to a running server."""

from __future__ import annotations

import http.client
import json
import ssl
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import frozen

#: Seconds for a connection, and for each read.
TIMEOUT: Final = 5.0
#: Maximum size, in bytes, of a response.
_MOST: Final = 1 << 20


class RequestFailed(Exception):
    """There was no response; the text is the reason."""


@frozen
class Answer:
    """
    A response.

    @ivar status: The HTTP status.
    @ivar body: The body, of 1 MiB at most.
    @ivar date: Seconds since 1970 of the Date header; L{None} without one.
    """

    status: int
    body: bytes
    date: float | None = None

    def json(self) -> dict[str, Any]:
        """Return the body as a JSON object; an empty one if it is none."""
        try:
            content = json.loads(self.body)
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}


def make_context(
    authority: str | None = None, certificate: str = "", key: str = "", *, data: str = ""
) -> ssl.SSLContext:
    """
    Return a TLS context of a client.

    @param authority: The file of the authorities; L{None} or C{""} for the authorities of the system.
    @param certificate: The file of the client certificate; C{""} for none.
    @param key: The file of its key.
    @param data: Authorities as PEM, instead of a file.
    @raise OSError: A file cannot be read or used.
    """
    context = ssl.create_default_context(cafile=authority or None, cadata=data or None)
    if certificate:
        context.load_cert_chain(certificate, key or None)
    return context


def request(
    url: str,
    path: str,
    context: ssl.SSLContext | None,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """
    Send one request, a POST if it has a body.

    @param url: Scheme, host and port.
    @param path: The path and query.
    @param context: The TLS context for https.
    @param headers: Additional header fields.
    @raise RequestFailed: There is no response.
    """
    connection: http.client.HTTPConnection
    try:
        parts = urlsplit(url)
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=TIMEOUT, context=context)
        else:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT)
        try:
            connection.request("GET" if body is None else "POST", path, body, headers or {})
            response = connection.getresponse()
            date = response.getheader("Date")
            return Answer(response.status, response.read(_MOST), _seconds(date))
        finally:
            connection.close()
    except ssl.SSLCertVerificationError as error:
        raise RequestFailed(f"its certificate cannot be verified: {error.verify_message}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise RequestFailed(str(error) or type(error).__name__) from error


def _seconds(date: str | None) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() if date else None
    except ValueError:
        return None
